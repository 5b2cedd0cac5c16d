"""What follows from the last edits: rules and the model propose it, a ranking decides what is shown."""
