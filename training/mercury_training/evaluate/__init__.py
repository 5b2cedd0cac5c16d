"""Evaluation rows, peers, metrics and the sandbox."""
