"""`python -m bench.kernels`; when terminated, it reports what it has measured."""

import signal

from bench.kernels.command import main

signal.signal(signal.SIGTERM, signal.default_int_handler)
main()
