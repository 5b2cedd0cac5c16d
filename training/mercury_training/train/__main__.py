from mercury_training.train.run import main

main()
