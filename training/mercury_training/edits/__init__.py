"""Teaches a model to edit: commits of public repositories, as rows of edits that follow each other, on a CPU."""
