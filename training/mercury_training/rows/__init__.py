"""Turns documents and edits into rows of tokens to learn from."""
