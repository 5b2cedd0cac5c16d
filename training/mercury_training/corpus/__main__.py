from mercury_training.corpus.build import main

main()
