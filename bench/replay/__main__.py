from bench.replay.command import main

main()
