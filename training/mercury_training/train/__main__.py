from mercury_training.train.command import main

main()
