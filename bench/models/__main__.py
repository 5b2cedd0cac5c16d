from bench.models.command import main

main()
