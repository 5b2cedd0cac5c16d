"""From documents and edits to rows of tokens to learn from."""
