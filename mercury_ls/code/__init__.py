"""Source text as data: documents, positions, syntax trees, differences and edit history."""
