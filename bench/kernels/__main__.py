"""`python -m bench.kernels`."""

from bench.kernels.command import main

main()
