"""The language server's connection to the engine server."""
