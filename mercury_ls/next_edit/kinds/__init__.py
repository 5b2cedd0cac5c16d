"""The kinds of next edits, one module each.

A module has a frozen `Rule` of its own and four functions: `learn(example)` says what an edit teaches,
`find(rule, snapshot, home, project)` where else in a file that applies (`home` is the file in which it was learned, as
it is now), `suppress(rule, place, snapshot)` where it applies and nobody would want it, and `label(rule)` what to call
the edit.
"""

from types import ModuleType

from mercury_ls.next_edit.kinds import (
    align,
    arguments,
    clone,
    delete,
    extract,
    imports,
    insert,
    rename,
    replace,
    trim,
)

__all__ = ["KINDS"]

KINDS: dict[str, ModuleType] = {
    "rename": rename,
    "replace": replace,
    "argument": arguments,
    "parameter": arguments,
    "clone": clone,
    "insert": insert,
    "delete": delete,
    "extract": extract,
    "unused import": imports,
    "missing import": imports,
    "align": align,
    "trim": trim,
}
"""By the `kind` of their rules."""
