"""`python -m mercury_ls` is `mercury-ls`."""

from mercury_ls.cli import main

if __name__ == "__main__":
    main()
