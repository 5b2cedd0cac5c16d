"""Names that exist: what may stand at the cursor, as far as this machine knows."""
