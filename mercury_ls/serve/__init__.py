"""The engine server: one process per user, which holds the model."""
