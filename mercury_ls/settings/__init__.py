"""The settings, their sources, and what is wrong with them."""
