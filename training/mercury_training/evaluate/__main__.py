from mercury_training.evaluate.run import main

main()
