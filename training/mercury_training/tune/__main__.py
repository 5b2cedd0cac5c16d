from mercury_training.tune.run import main

main()
