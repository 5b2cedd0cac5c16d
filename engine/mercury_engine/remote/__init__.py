"""Servers of other people as engines."""
