"""Names that exist: what may stand at the cursor, as far as it is known locally."""
