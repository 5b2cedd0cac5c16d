"""Inline suggestions: where one may stand, what the model is told, and what is shown of its answer."""
