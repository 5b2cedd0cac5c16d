"""Where the documentation of a file names a renamed symbol as code: in code marks, a link, or a tested example."""

import re
from collections.abc import Iterable, Iterator
from itertools import takewhile

from tree_sitter import Node

from mercury_ls.code import scopes, symbols, syntax
from mercury_ls.code.brackets import unclosed, unquoted
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.parts import kind_of
from mercury_ls.code.scopes import Binding
from mercury_ls.code.symbols import type_name
from mercury_ls.next_edit.kinds.rename.uses import Uses

LONGEST_LINE = 400
MARK = re.compile(r"`++")
LINK = re.compile(r"\{@\w{1,20}[ \t]++")
EXAMPLE = re.compile(r"[ \t]*+(?:>>>|\.\.\.)[ \t]")
SEE = re.compile(r"@see[ \t]++(?:[\w$]++(?:\.|::|#))*+#?\Z")
LINKS_IN_BRACKETS = frozenset({"go", "kotlin", "rust"})
"""Languages whose documentation links to `[name]`."""
COMMENTED = re.compile(r"[ \t]*+(?://[/!]?|\*(?!/)|#)?[ \t]*+")
FENCE = "```"
HIGHEST = 100
"""Lines above that are looked through for the fence of an example."""
OF_ITS_OWN = re.compile(r"(?:^|[\s`~*\[(])[.#]\Z")
"""A mark that qualifies a name as one of the same type, without naming that."""
QUALIFIER = re.compile(r"(?<![\w$])([\w$]++)(?:\.|::|#)\Z")
FIELD = re.compile(
    r":(?:param|parameter|arg|argument|key|keyword|type)[ \t]++(?:[^\s:]++[ \t]++)*+\Z"
    r"|@param[ \t]++(?:\{[^{}@\n]*+\}[ \t]++)?\[?\Z"
)
ENTRY_BEFORE = re.compile(r"[ \t]*+(?:\*{0,2}\w++,[ \t]?)*+\*{0,2}")
ENTRY_AFTER = re.compile(r"(?:,[^:\n]*+|[ \t]*+\([^()\n]*+\))?[ \t]*+:(?:[ \t]|\Z)")
HEADINGS = frozenset({"args", "arguments", "keyword args", "other parameters", "parameters", "params"})
OTHER_HEADINGS = frozenset(
    {"attributes", "example", "examples", "note", "notes", "raises", "return", "returns", "yields"}
)
ABOVE = ("//", "/*", "*", "#")
SELF = frozenset({"cls", "self", "Self", "this"})


def documented(uses: Uses) -> Iterator[int]:
    """The offsets in the file that declares the symbol. Where its code has the name for something else as well, nobody
    can tell which of them is meant."""
    file, symbol = uses.snapshot, uses.symbol
    if symbol.local is not None and symbol.function:
        yield from _documented_parameter(uses)
    if symbol.owner is None and not symbol.module_level:
        return
    mentions = scopes.mentions(file, uses.name)[: scopes.MOST]
    in_text = [at for at in mentions if syntax.inside(file, at) is not None]
    if any(at not in in_text and not uses.is_certain(at) for at in mentions):
        return
    for at in in_text:
        if _is_documentation(file, at) and _is_named(uses, at):
            yield at


def spoken_of(file: Snapshot, local: Binding) -> tuple[int, int]:
    """Where a local may be mentioned: in its scope and the comment above."""
    row = file.line_of(local.start)
    while row and file.line(row - 1).lstrip().startswith(ABOVE):
        row -= 1
    return file.line_start(row), local.end


def _documented_parameter(uses: Uses) -> Iterator[int]:
    """The mentions of a parameter in the documentation of its function, unless that has another local of the name."""
    file, local = uses.snapshot, uses.symbol.local
    if local is None:
        return
    start, end = spoken_of(file, local)
    if any(start <= other.start < end for other in scopes.bindings(file, (uses.name,))):
        return
    for at in scopes.mentions(file, uses.name)[: scopes.MOST]:
        if start <= at < end and syntax.inside(file, at) is not None and _is_documentation(file, at):
            number = file.line_of(at)
            line, column = file.line(number), at - file.line_start(number)
            if len(line) <= LONGEST_LINE and _is_parameter(
                uses, number, line[:column], line[column + len(uses.name) :]
            ):
                yield at


def _is_parameter(uses: Uses, number: int, before: str, after: str) -> bool:
    """Whether it is named as a parameter is: in a field, as an entry of a list, in code marks or by a keyword."""
    if EXAMPLE.match(before):
        brackets = unclosed(unquoted(before))
        call = re.compile(rf"(?<!\w){re.escape(uses.symbol.function)}\(\Z")
        is_of_function = bool(brackets) and call.search(before[: brackets[-1] + 1]) is not None
        return is_of_function and re.match(r"[ \t]*+=(?!=)", after) is not None
    if FIELD.search(before):
        return re.match(r"[\w$]", after) is None
    if before.endswith((".", ":", "#")) or QUALIFIER.search(before):
        return False
    if ENTRY_BEFORE.fullmatch(before) and ENTRY_AFTER.match(after):
        rows = range(number - 1, max(number - HIGHEST, -1), -1)
        above = (uses.snapshot.line(row).strip(" \t:").lower() for row in rows)
        return next((text for text in above if text in HEADINGS | OTHER_HEADINGS), "") in HEADINGS
    return _is_marked(before, after, is_type=False)


def _is_documentation(file: Snapshot, offset: int) -> bool:
    """Whether it is a comment, or a string of Python that is a statement of its own."""
    if syntax.inside(file, offset) == "comment":
        return True
    node = scopes.node_at(file, offset)
    return (
        file.written_in.id == "python"
        and kind_of(node and node.parent and node.parent.parent) == "expression_statement"
    )


def _is_named(uses: Uses, offset: int) -> bool:
    """Whether code that is quoted there names the symbol."""
    file = uses.snapshot
    number = file.line_of(offset)
    line, column = file.line(number), offset - file.line_start(number)
    before, after = line[:column], line[column + len(uses.name) :]
    if len(line) > LONGEST_LINE or not _is_of_symbol(uses, offset, before):
        return False
    if EXAMPLE.match(line):
        return syntax.inside(file, offset) == "string" and _is_in_example(uses, offset, before, after)
    if fenced := _fenced(file, number):
        return _is_code(uses.name, fenced, before, after)
    is_linked = file.written_in.id in LINKS_IN_BRACKETS and _is_in_brackets(before, after)
    is_subject = file.written_in.id == "go" and _is_subject(uses, number, before)
    return is_linked or is_subject or _is_marked(before, after, is_type=_is_type(uses.symbol.node))


def _is_in_brackets(before: str, after: str) -> bool:
    return re.search(r"\[\*?(?:[\w$]++(?:\.|::))*+\Z", before) is not None and after.startswith("]")


def _is_subject(uses: Uses, number: int, before: str) -> bool:
    """Whether the documentation of the symbol begins with its name, as that of Go has to."""
    declared = uses.symbol.node
    if declared is None or before.strip() != "//":
        return False
    if number and _is_comment(uses.snapshot, number - 1):
        return False
    rows = range(number, min(declared.start_point.row, number + HIGHEST))
    return bool(rows) and all(_is_comment(uses.snapshot, row) for row in rows)


def _is_comment(file: Snapshot, row: int) -> bool:
    return file.line(row).lstrip().startswith("//")


def _fenced(file: Snapshot, number: int) -> list[str]:
    """The lines above of the same example between fences; none if the line is in no such example."""
    rows = range(number - 1, max(number - HIGHEST, -1), -1) if FENCE in file.text else ()
    above = [file.line(row) for row in takewhile(lambda row: syntax.inside(file, file.line_end(row)) is not None, rows)]
    fences = [at for at, line in enumerate(above) if COMMENTED.sub("", line, count=1).startswith(FENCE)]
    return above[: fences[0] + 1] if len(fences) % 2 else []


def _is_of_symbol(uses: Uses, offset: int, before: str) -> bool:
    """Whether what qualifies the name there, if anything does, is where the symbol is declared."""
    owner, file = uses.symbol.owner, uses.snapshot
    qualifier = QUALIFIER.search(before)
    if qualifier is None and OF_ITS_OWN.search(before):
        return owner is not None
    if qualifier is None and before.endswith((".", ":", "#")):
        return False
    if owner is None:
        return qualifier is None
    at = file.byte(offset)
    is_inside = owner.start_byte <= at < owner.end_byte
    if qualifier is None:
        return is_inside
    return qualifier[1] == type_name(owner) or (is_inside and qualifier[1] in SELF)


def _is_marked(before: str, after: str, *, is_type: bool) -> bool:
    """Whether code marks hold the name alone, or a call of it."""
    opened, closes = MARK.findall(before), MARK.search(after)
    is_quoted = len(opened) % 2 == 1 and closes is not None and closes[0] == opened[-1]
    links = [*LINK.finditer(before)]
    is_linked = bool(links) and "}" not in before[links[-1].end() :] and "}" in after
    if SEE.search(before):
        return True
    if not is_quoted and not is_linked:
        return False
    is_member_named = is_type and after.startswith((".", "::", "[", "<"))
    if after.startswith("(") or is_member_named:
        return re.search(r"[\w$@/\\-]\Z", before) is None
    begins = before[links[-1].end() :] if is_linked else before[before.rindex("`") + 1 :]
    is_alone = re.fullmatch(r"~?[.#]?(?:[\w$]++(?:\.|::|#))*+", begins) is not None
    return is_alone and after.startswith(("`", "}", " ") if is_linked else "`")


def _is_in_example(uses: Uses, offset: int, before: str, after: str) -> bool:
    """Whether it is a name in the code of an example that gives the name to nothing else."""
    node = scopes.node_at(uses.snapshot, offset)
    lines = [line for line in symbols.text_of(node).splitlines() if EXAMPLE.match(line)]
    return _is_code(uses.name, lines, before, after)


def _is_code(name: str, lines: Iterable[str], before: str, after: str) -> bool:
    """Whether it is a name in code, of which none of these lines gives it to something else."""
    name = re.escape(name)
    is_assigned = rf"(?<![\w.]){name}[ \t]*+(?::[^=\n]{{0,100}}+)?=(?!=)"
    is_given = re.compile(rf"{is_assigned}|\b(?:as|class|def|for|lambda)[ \t]++{name}\b")
    if any(is_given.search(line) for line in lines):
        return False
    is_quoted = any(before.count(quote) % 2 for quote in "\"'")
    return not is_quoted and "#" not in COMMENTED.sub("", before, count=1) and re.match(r"[ \t]*+=(?!=)", after) is None


def _is_type(declared: Node | None) -> bool:
    return declared is not None and declared.parent is not None and declared.parent.type in scopes.TYPES
