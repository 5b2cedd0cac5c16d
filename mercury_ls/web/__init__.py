"""The HTTP port: requests of editors and programs that do not speak LSP, answered like those of LSP clients."""
