"""The engine server: one process per user that holds the model, and what its clients need to talk to it."""
