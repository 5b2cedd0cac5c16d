"""From public repositories to a corpus with licences and provenance."""
