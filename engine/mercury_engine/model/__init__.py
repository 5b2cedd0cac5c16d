"""The network: its configuration and weights, the runtimes that execute it, and the files fitted to it."""
