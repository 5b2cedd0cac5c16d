"""Pure functions on tensors; `reference.py` is the specification."""
