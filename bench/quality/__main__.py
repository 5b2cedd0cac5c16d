from bench.quality.command import main

main()
