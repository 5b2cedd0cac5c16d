"""Models of other people: where they come from, how they are installed, what they cost on this machine."""
