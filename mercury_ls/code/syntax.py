"""Syntax at an offset: from the tree, or lexically where the code does not parse."""

import re
import sys
from bisect import bisect_right
from collections.abc import Container, Iterator, Sequence
from functools import cache, partial
from typing import Literal

from msgspec import Struct
from tree_sitter import Node, QueryCursor, Tree

from mercury_ls.code import languages
from mercury_ls.code.documents import LONGEST_MARK, TREE_LIMIT, Snapshot, cached, reparse
from mercury_ls.code.edits import TextEdit
from mercury_ls.code.languages import Language, Quote
from mercury_ls.code.parts import part_of

MAX_DEPTH = 3
LONGEST_HEADER = 400
LEXEMES_AT_ONCE = 32
"""The number of pieces of code, comments and strings to skip at a time."""
IDENTIFIER = re.compile(
    r"\b(?!(?:and|const|def|else|for|from|function|if|import|in|let|new|not|or|return|self|this|var)\b)[^\W\d]\w*"
)
NAME_AT_END = re.compile(r"(?<!\w)(?:[^\W\d]\w*+)?\Z")
IMPORTING = re.compile(r"\s*(?:import|from|use|using|package|extern|#|@import|source\b|\.\s)|.*\b(?:require|include)")
NO_SCOPE = re.compile(r"\s*(?:#|//|--|\*|/\*|\w+:\s*$)")
VARIABLES = frozenset({"variable_declaration", "variable_declarator"})


class Definition(Struct, frozen=True):
    """`start:signature_end` is the signature."""

    name: str
    start: int
    end: int
    signature_end: int


@cached
def inside(snapshot: Snapshot, offset: int) -> Literal["comment", "string"] | None:
    """The comment or string at an offset. The end of a line comment is inside it; code in an interpolation is code."""
    language = _language_of(snapshot)
    if language is None:
        return None
    if _parsed_cleanly(snapshot, offset):
        return _inside_by_tree(snapshot, language, offset)
    return open_at(snapshot.text, language, closed_before(snapshot, language, offset), offset)


def problems(tree: Tree | None, rows: Sequence[range] | None = None) -> int:
    """The number of error nodes and missing nodes, in total or within these rows."""
    if tree is None:
        return 0
    count, cursor = 0, tree.walk()
    while True:
        node = cursor.node
        if node is not None and node.has_error:
            count += (node.is_error or node.is_missing) and (
                rows is None or any(node.start_point.row < row.stop and node.end_point.row >= row.start for row in rows)
            )
            if cursor.goto_first_child():
                continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return count


def empty_blocks(tree: Tree | None, rows: Sequence[range]) -> int:
    """The number of blocks with nothing in them that are due in these rows. Where indentation makes blocks, no parser
    misses anything."""
    if tree is None:
        return 0
    rows = [range(row.start - 1, row.stop) for row in rows]
    count, stack = 0, [tree.root_node]
    while stack:
        node = stack.pop()
        count += node.type == "block" and node.start_byte == node.end_byte
        stack += [child for child in node.children if any(_reaches(child, row) for row in rows)]
    return count


def _reaches(node: Node, rows: range) -> bool:
    return node.start_point.row < rows.stop and node.end_point.row >= rows.start


def problems_after(snapshot: Snapshot, start: int, end: int, replacement: str) -> int:
    """The number of problems after an edit; `sys.maxsize` if parsing takes too long, as it does when the rest of the
    file no longer parses."""
    language = _language_of(snapshot)
    if language is None or snapshot.tree is None:
        return 0
    change = TextEdit(start, end, replacement)
    tree = reparse(snapshot.tree, language, snapshot.text, [change], snapshot.patience)
    return sys.maxsize if tree is None else problems(tree)


def headers(snapshot: Snapshot, offset: int) -> list[tuple[int, int]]:
    """The lines from `class`, `def`, `impl` … to the start of the body, for each scope around `offset`, outermost
    first.
    """
    language = _language_of(snapshot)
    if language is None or not language.scopes:
        return []
    end = _end_of_code_before(snapshot, offset) if language.indents_blocks else offset
    if snapshot.tree is None or snapshot.is_deep(end):
        return _headers_by_indentation(snapshot, language, offset)
    chain = ancestors(snapshot, end)
    if any(node.is_error for node in chain):
        return _headers_by_indentation(snapshot, language, offset)
    scopes = [node for node in reversed(chain) if node.type in language.scopes]
    ranges = [_header_range(snapshot, language, node) for node in scopes]
    if language.indents_blocks:
        column = _column_of(snapshot, offset)
        ranges = [(start, end) for start, end in ranges if _indentation(snapshot.text[start:end]) < column]
    return [*dict.fromkeys((start, end) for start, end in ranges if end < offset)]


@cached
def imports(snapshot: Snapshot) -> list[tuple[int, int]]:
    """The import statements at the top level of the file, or inside its include guard."""
    language = _language_of(snapshot)
    if language is None or snapshot.tree is None:
        return []
    import_nodes = [node for node in _top_level(snapshot.tree.root_node) if node.type in language.imports]
    ranges = map(partial(range_of, snapshot), import_nodes)
    return [(start, end) for start, end in ranges if IMPORTING.match(snapshot.text, start, end)]


@cached
def definitions(snapshot: Snapshot) -> list[Definition]:
    """Functions, classes, methods, types and constants, at most three levels deep, in the order of the text."""
    language = _language_of(snapshot)
    if language is None or snapshot.tree is None or not language.definitions:
        return []
    pattern = f"[{' '.join(f'({kind})' for kind in language.definitions)}] @definition (ERROR) @broken"
    captures = QueryCursor(languages.query(language, pattern)).captures(snapshot.tree.root_node)
    outline = [*_definitions_in(snapshot, captures.get("definition", []))]
    for node in captures.get("broken", []):
        outline += _definitions_in_broken(snapshot, language, node)
    distinct = {(snapshot.line_of(definition.start), definition.name): definition for definition in reversed(outline)}
    return sorted(distinct.values(), key=lambda definition: (definition.start, -definition.end))


def identifiers(text: str) -> list[str]:
    """All occurrences in order, without the most common keywords."""
    return IDENTIFIER.findall(text)


def block_expected(snapshot: Snapshot, offset: int) -> bool:
    """True if the cursor is at an empty body: after `:` or `{`, or on the line below."""
    language = _language_of(snapshot)
    if language is None or not language.opening:
        return False
    end = _end_of_code_before(snapshot, offset)
    line = snapshot.line_of(end)
    head = snapshot.text[snapshot.line_start(line) : end]
    remainder = snapshot.text[offset : snapshot.line_end(snapshot.line_of(offset))].strip()
    if remainder.strip(")]};,") or not _opens_block(snapshot, language, head, end, offset):
        return False
    return remainder.startswith("}") or _body_is_empty(snapshot, offset, _indentation(head))


def _language_of(snapshot: Snapshot) -> Language | None:
    """The language, unless the text is too large to parse."""
    return languages.find(snapshot.language, snapshot.path) if len(snapshot.text) <= TREE_LIMIT else None


def _parsed_cleanly(snapshot: Snapshot, offset: int) -> bool:
    """True if the statement on this line has no errors, and its node is not too deep to walk up from."""
    if snapshot.tree is None or snapshot.is_deep(offset):
        return False
    line = snapshot.line_of(offset)
    start, end = snapshot.byte(snapshot.line_start(line)), snapshot.byte(snapshot.line_end(line))
    node = snapshot.tree.root_node.descendant_for_byte_range(start, end)
    if node is None or node.has_error:
        return False
    return not any(ancestor.is_error for ancestor in upward(snapshot, node))


def outward(node: Node | None) -> Iterator[Node]:
    """The node and its ancestors, innermost first."""
    while node is not None:
        yield node
        node = node.parent


def upward(snapshot: Snapshot, node: Node | None) -> Sequence[Node]:
    """The same on one way down from the root, where each node begins anew to look for its parent."""
    if node is None or snapshot.tree is None:
        return ()
    path = [snapshot.tree.root_node]
    while path[-1] != node:
        below = path[-1].child_with_descendant(node)
        if below is None:
            return [*outward(node)]
        path.append(below)
    return path[::-1]


def range_of(snapshot: Snapshot, node: Node) -> tuple[int, int]:
    return snapshot.offset_of_byte(node.start_byte), snapshot.offset_of_byte(node.end_byte)


def innermost(node: Node | None, kinds: Container[str]) -> Node | None:
    """The first node of these kinds, from the node outward."""
    return next((ancestor for ancestor in outward(node) if ancestor.type in kinds), None)


def ancestors(snapshot: Snapshot, offset: int) -> list[Node]:
    """The nodes that start before `offset` and reach it, innermost first; none if there are too many."""
    if snapshot.tree is None or snapshot.is_deep(offset):
        return []
    byte = snapshot.byte(offset)
    node = snapshot.tree.root_node.descendant_for_byte_range(max(byte - 1, 0), byte)
    return [ancestor for ancestor in upward(snapshot, node) if ancestor.start_byte < byte <= ancestor.end_byte]


def _inside_by_tree(snapshot: Snapshot, language: Language, offset: int) -> Literal["comment", "string"] | None:
    byte = snapshot.byte(offset)
    for node in ancestors(snapshot, offset):
        if node.type in language.comments:
            return "comment" if byte < node.end_byte or _ends_with_line(node, language) else None
        if node.end_byte == byte:
            continue
        if node.type in language.interpolations:
            return None
        if node.type in language.strings:
            return None if _is_name_in_string(snapshot, language, offset) else "string"
    return None


def _is_name_in_string(snapshot: Snapshot, language: Language, offset: int) -> bool:
    """True for the `a` of "$a" in Kotlin, if the mark is not escaped."""
    mark, start = language.interpolating, snapshot.line_start(snapshot.line_of(offset))
    name = NAME_AT_END.search(snapshot.text, start, offset) if mark else None
    is_marked = name is not None and snapshot.text.endswith(mark, start, name.start())
    marked = ancestors(snapshot, name.start()) if name is not None and is_marked else []
    return bool(marked) and marked[0].text == mark.encode()


def _ends_with_line(comment: Node, language: Language) -> bool:
    text = (comment.text or b"").decode()
    return bool(language.line_comment) and text.startswith(language.line_comment) and text[-1] not in "\r\n"


def open_at_end(text: str, language: Language) -> Literal["comment", "string"] | None:
    """The string or comment still open at the end of the text."""
    closed, _ = _lexemes(language)
    return open_at(text, language, _end_of(closed, text), len(text))


def closed_before(snapshot: Snapshot, language: Language, offset: int) -> int:
    """The end of the last lexeme closed before `offset`. All callers share one pass over the text."""
    ends, patterns = snapshot.closed, _several_lexemes(language)
    while ends[-1] < offset and ends[-1] not in ends[-2:-1]:
        ends.append(_end_of(patterns, snapshot.text, ends[-1]))
    sure = bisect_right(ends, offset - LONGEST_MARK)
    if sure == len(ends) and ends[-1] in ends[-2:-1]:
        return ends[-1]
    start = ends[max(sure, 1) - 1]
    closed, _ = _lexemes(language)
    return _end_of(closed, snapshot.text, start, offset)


def _end_of(lexemes: re.Pattern[str], text: str, start: int = 0, stop: int = sys.maxsize) -> int:
    match = lexemes.match(text, start, stop)
    return start if match is None else match.end()


def open_at(text: str, language: Language, start: int, offset: int) -> Literal["comment", "string"] | None:
    """The comment or string that starts at `start` and is still open at `offset`."""
    _, opening = _lexemes(language)
    last = opening.match(text, start, offset)
    if last is None or last.lastgroup is None:
        return None
    if last.lastgroup in ("line", "block"):
        return "comment"
    quote = language.quotes[int(last.lastgroup[1:])]
    code = _open_interpolation(quote, text[max(start - 1, 0) : start], text[last.end() : offset])
    return "string" if code is None else open_at_end(code, language)


def _open_interpolation(quote: Quote, before: str, content: str) -> str | None:
    """The code of an interpolation that is still open at the end of a string's content, if any."""
    if not quote.code or (quote.after and before not in tuple(quote.after)):
        return None
    if quote.code == "{":
        content = content.replace("{{", "  ").replace("}}", "  ")
    _, opening, code = content.rpartition(quote.code)
    closing = ")" if quote.code.endswith("(") else "}"
    return code if opening and closing not in code else None


@cache
def _lexemes(language: Language) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Two patterns: all code, comments and strings that are closed; and the start of one that is not."""
    marks = [*_delimiters(language)]
    first = re.escape("".join(sorted({opening[0] for _, opening, _ in marks} | {"'"})))
    opening = "|".join(f"(?P<{name}>{_standalone(mark, marks)})" for name, mark, _ in marks) or r"(?!)"
    closed = [_standalone(mark, marks) + remainder for _, mark, remainder in marks]
    if "'" not in {quote.opening for quote in language.quotes}:
        closed.append(r"'(?:\\[^\r\n]|[^\\'\r\n])'")
    closed = "|".join([f"[^{first}]++", *closed, f"(?!{opening})(?s:.)"])
    return re.compile(f"(?:{re.sub('[?]P<[a-z0-9]+>', '?:', closed)})*+"), re.compile(opening)


@cache
def _several_lexemes(language: Language) -> re.Pattern[str]:
    closed, _ = _lexemes(language)
    return re.compile(closed.pattern.removesuffix("*+") + f"{{0,{LEXEMES_AT_ONCE}}}+")


def _delimiters(language: Language) -> Iterator[tuple[str, str, str]]:
    """For each comment and string: a group name, its opening mark, and a pattern for the rest up to its end."""
    if language.block_comment:
        opening, closing = language.block_comment
        yield "block", opening, f"(?s:.*?){re.escape(closing)}"
    for index, quote in enumerate(language.quotes):
        yield f"q{index}", quote.opening, _closing_pattern(quote)
    if language.line_comment:
        yield "line", language.line_comment, r"[^\r\n]*+[\r\n]"


def _standalone(mark: str, marks: list[tuple[str, str, str]]) -> str:
    """A pattern for the mark unless it starts a longer one; `$#` and `${#` are shell, not comments."""
    longer = [re.escape(other[len(mark) :]) for _, other, _ in marks if other.startswith(mark) and other != mark]
    before = "(?<![${[])" if mark == "#" else ""
    return before + re.escape(mark) + (f"(?!{'|'.join(longer)})" if longer else "")


def _closing_pattern(quote: Quote) -> str:
    first, second = re.escape(quote.closing[0]), re.escape(quote.closing[1:])
    excluded = first + ("" if quote.multiline else r"\r\n") + (r"\\" if quote.escapes else "")
    body = [f"[^{excluded}]++"]
    if quote.escapes:
        body.append(r"\\(?s:.)")
    if second:
        body.append(f"{first}(?!{second})")
    end = re.escape(quote.closing) if quote.multiline else rf"(?:{re.escape(quote.closing)}|(?=[\r\n]))"
    return f"(?:{'|'.join(body)})*+{end}"


def _end_of_code_before(snapshot: Snapshot, offset: int) -> int:
    """The end of the code before `offset`, ignoring whitespace and comments."""
    language = _language_of(snapshot)
    while True:
        end = len(snapshot.text[:offset].rstrip())
        chain = ancestors(snapshot, end)
        if not chain or language is None or chain[0].type not in language.comments:
            return end
        offset = snapshot.offset_of_byte(chain[0].start_byte)


def _column_of(snapshot: Snapshot, offset: int) -> int:
    """The indentation of the code on the cursor's line, or of what will be typed there."""
    line = snapshot.line(snapshot.line_of(offset))
    return _indentation(line) if line.strip() else offset - snapshot.line_start(snapshot.line_of(offset))


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def _header_range(snapshot: Snapshot, language: Language, node: Node) -> tuple[int, int]:
    first = snapshot.line_of(snapshot.offset_of_byte(node.start_byte))
    last = snapshot.line_of(_end_of_signature(snapshot, node))
    return snapshot.line_start(first), snapshot.line_end(last)


def _end_of_signature(snapshot: Snapshot, node: Node) -> int:
    """The end of the signature: before the body, or the end of the first line if there is no body."""
    start, end = range_of(snapshot, node)
    body = _body_of(node)
    before = body and body.prev_sibling
    while before is not None and (before.is_extra or before.is_error):
        before = before.prev_sibling
    if before is not None:
        return snapshot.offset_of_byte(before.end_byte)
    return min(end, snapshot.line_end(snapshot.line_of(start)))


def _body_of(node: Node) -> Node | None:
    value = part_of(node, "value")
    return part_of(node, "body") or (value and part_of(value, "body"))


def _headers_by_indentation(snapshot: Snapshot, language: Language, offset: int) -> list[tuple[int, int]]:
    """The lines above that look like headers, each indented less than the one below; a `)` or `}` leads to the line
    that it closes."""
    spans: list[tuple[int, int]] = []
    column, last = _column_of(snapshot, offset), None
    for number in range(snapshot.line_of(offset) - 1, -1, -1):
        if column == 0:
            break
        line = snapshot.line(number)
        if not line.strip() or _indentation(line) >= column or NO_SCOPE.match(line):
            continue
        column = _indentation(line)
        if line.lstrip()[0] in ")]}":
            column, last = column + 1, number
            continue
        if header_pattern(language).match(line[:LONGEST_HEADER]):
            spans.append((snapshot.line_start(number), snapshot.line_end(number if last is None else last)))
        last = None
    return spans[::-1]


@cache
def header_pattern(language: Language) -> re.Pattern[str]:
    return re.compile(language.header or r"(?!)")


def _top_level(root: Node) -> Iterator[Node]:
    for node in root.children:
        yield node
        if node.type in ("preproc_ifdef", "preproc_if", "ERROR"):
            yield from node.children


def _definitions_in(snapshot: Snapshot, nodes: list[Node]) -> Iterator[Definition]:
    around: list[Node] = []
    for node in sorted(nodes, key=lambda node: (node.start_byte, -node.end_byte)):
        while around and around[-1].end_byte <= node.start_byte:
            around.pop()
        name = _name_of(node)
        if name and len(around) < MAX_DEPTH and _is_listed(node, name, around):
            start, end = range_of(snapshot, node)
            yield Definition(name, start, end, _end_of_signature(snapshot, node))
        around.append(node)


def _name_of(node: Node) -> str:
    """The name of a definition; in C it is inside nested declarators, in C# inside that of a variable."""
    while node.type not in ("field_identifier", "identifier", "type_identifier", "constant"):
        inner = part_of(node, "name", "declarator", "left") or _variable_in(node)
        if inner is None:
            break
        node = inner
    if node.child_count and node.type.endswith("pattern"):
        return ""  # it has several names
    return (node.text or b"").decode()


def _variable_in(node: Node) -> Node | None:
    return next((child for child in node.named_children if child.type in VARIABLES), None)


def _is_listed(node: Node, name: str, around: list[Node]) -> bool:
    """True unless it is a variable that other files cannot see, or a C type without a body."""
    local = any(_is_function(outer) for outer in around)
    if node.type in ("assignment", "field_declaration", "property_declaration"):
        return name[0].isupper() and not local
    if node.type == "variable_declarator":
        return name.isidentifier() and (not around or _body_of(node) is not None)
    if node.type.endswith("_specifier"):
        return part_of(node, "body") is not None
    return name.isprintable() and not name.startswith("(")


def _is_function(node: Node) -> bool:
    named_so = "function" in node.type or "method" in node.type
    return named_so or ("declarator" in node.type and _body_of(node) is not None)


def _definitions_in_broken(snapshot: Snapshot, language: Language, node: Node) -> Iterator[Definition]:
    """The lines of an error node that look like headers."""
    first, last = (snapshot.line_of(snapshot.offset_of_byte(byte)) for byte in node.byte_range)
    for number in range(first, last + 1):
        line = snapshot.line(number)[:LONGEST_HEADER]
        match = header_pattern(language).match(line)
        if match is None or match.groupdict().get("kind") == "impl":
            continue
        name = next(match[group] for group in ("name", "function", "method") if match.groupdict().get(group))
        start = snapshot.line_start(number)
        end = start + len(line)
        yield Definition(name, start + _indentation(line), end, end)


def _opens_block(snapshot: Snapshot, language: Language, head: str, end: int, offset: int) -> bool:
    if not head or open_at_end(head, language):
        return False
    below = snapshot.line_of(offset) > snapshot.line_of(end)
    if not below and head[-1] not in ":{":
        return False
    chain = ancestors(snapshot, end)
    if head[-1] == "{" and len(chain) > 1 and not chain[1].is_error:
        return chain[1].type in language.blocks
    return re.search(language.opening, head) is not None


def _body_is_empty(snapshot: Snapshot, offset: int, column: int) -> bool:
    """True if the next line of code closes the body, or is not indented more than the line that opens it."""
    for number in range(snapshot.line_of(offset) + 1, snapshot.line_count):
        line = snapshot.line(number)
        if line.strip():
            return line.lstrip().startswith("}") or _indentation(line) <= column
    return True
