"""Autoregressive fill-in-the-middle and next-edit models, run on this machine."""
