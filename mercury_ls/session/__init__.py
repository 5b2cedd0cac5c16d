"""The state of one client: its open files, its offers, and what became of them."""
