"""Prompts as other people's models were trained on them, and what their answers mean: pure, from text to text."""
