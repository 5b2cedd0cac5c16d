"""What names and expressions refer to: what the syntax states, and what follows from it across files."""
