"""The HTTP port: what editors and programs that know no LSP ask, answered as LSP's clients are."""
