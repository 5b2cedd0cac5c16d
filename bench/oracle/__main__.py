from bench.oracle.command import main

main()
