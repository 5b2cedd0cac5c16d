from mercury_training.corpus.command import main

main()
