"""Names that exist: what may stand behind a dot, as far as this machine knows."""
