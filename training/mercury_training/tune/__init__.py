"""Learning one project on the user's machine."""
