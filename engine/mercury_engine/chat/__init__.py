"""Conversations: a model's own template, answers written in blocks, and grammars that constrain answers."""
