from mercury_training.evaluate.command import main

main()
