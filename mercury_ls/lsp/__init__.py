"""The language server: LSP in and out, for each client as it understands it."""
