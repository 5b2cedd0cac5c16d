"""The straight path of an inline completion: pure functions from a text and a cursor to an offer."""
