"""One client: its files, what it is asked for, what is on offer, and what becomes of that."""
