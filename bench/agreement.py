"""The command `python -m bench.agreement`: whether what is fast says what is slow."""

from bench.decode.agreement import main

if __name__ == "__main__":
    main()
