"""Rename: a name became another; wherever the old one refers to the same symbol, it follows, in other files as well."""

from mercury_ls.next_edit.kinds.rename.find import find
from mercury_ls.next_edit.kinds.rename.rule import label, learn
from mercury_ls.next_edit.suppress import never as suppress

__all__ = ["find", "label", "learn", "suppress"]
