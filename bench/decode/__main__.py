from bench.decode.command import main

main()
