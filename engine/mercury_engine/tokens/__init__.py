"""From text to token rows: the vocabulary, the tokenizer, and the layout shared with training."""
