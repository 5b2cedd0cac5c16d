"""`python -m bench.kernels`; asked to end, it says what it has measured."""

import signal

from bench.kernels.command import main

signal.signal(signal.SIGTERM, signal.default_int_handler)
main()
