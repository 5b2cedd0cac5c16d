"""Corpus, corruption, losses, training and evaluation of the models that ship."""
