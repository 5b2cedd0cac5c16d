from mercury_training.tune.command import main

main()
