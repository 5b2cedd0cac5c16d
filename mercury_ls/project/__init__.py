"""The files around the open ones: which may be read, and what they define."""
