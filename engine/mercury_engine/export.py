"""`python -m mercury_engine.export SOURCE TARGET` writes a model as it ships."""

from mercury_engine.model.export import main

if __name__ == "__main__":
    main()
