"""Files with a gap whose right answer is known, cut mechanically out of the files beside this one."""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from msgspec import Struct
from tree_sitter import Node

from bench.oracle.truth import NAME
from mercury_ls.code import languages

FILES = Path(__file__).with_name("files")
UNSEEN = frozenset({"test_cache.py", "events.ts", "matrix.go", "inventory.rs", "RouterTest.java", "json_writer.cpp"})
"""One file of each language: nothing is looked at there while something is made better."""

MOST_LINES = 24
"""Of an expected answer: nobody writes more at once."""

BODIES = frozenset({"block", "module", "program", "source_file", "statement_list", "translation_unit", "switch_body"})
"""Nodes that begin with their first statement, and are none."""


class Source(Struct, frozen=True):
    """A file, by its name and the language's id."""

    name: str
    language: str
    text: str


class Row(Struct, frozen=True):
    file: str
    language: str
    kind: str
    before: str
    middle: str
    behind: str


class _Gap(Struct, frozen=True):
    """`behind`: what an editor has put behind the cursor and the file has not."""

    start: int
    end: int


class _Parsed(Struct, frozen=True):
    """A source with its nodes in order, and those of comments and strings; offsets are those of characters, since the
    files are ASCII."""

    text: str
    language: languages.Language
    nodes: tuple[Node, ...]
    quiet: tuple[tuple[int, int], ...]

    def line_start(self, at: int) -> int:
        return self.text.rfind("\n", 0, at) + 1

    def line_end(self, at: int) -> int:
        stop = self.text.find("\n", at)
        return stop if stop >= 0 else len(self.text)

    def begins_line(self, node: Node) -> bool:
        return not self.text[self.line_start(node.start_byte) : node.start_byte].strip()

    def statements(self) -> Iterator[tuple[int, int]]:
        """The outermost nodes that begin their line and end another or the same, up to the end of that line."""
        taken: set[int] = set()
        for node in self.nodes:
            if node.type in BODIES or node.type in self.language.comments or not node.is_named or node.parent is None:
                continue
            start, end = node.start_byte, len(self.text[: self.line_end(node.end_byte)].rstrip())
            if start in taken or not self.begins_line(node) or self.text[node.end_byte : end].strip(";, "):
                continue
            taken.add(start)
            yield start, end

    def bodies(self) -> Iterator[list[Node]]:
        """The statements of each function, comments left out."""
        for node in self.nodes:
            body = node.child_by_field_name("body")
            if body is None or "class" in node.type or "(" not in self.text[node.start_byte : body.start_byte]:
                continue
            held = [child for child in body.named_children if child.type not in self.language.comments]
            if len(held) == 1 and held[0].type == "statement_list":
                held = held[0].named_children
            if held and all(self.begins_line(statement) for statement in held):
                yield held

    def end_of(self, node: Node) -> int:
        return len(self.text[: self.line_end(node.end_byte)].rstrip())


def lines(file: _Parsed) -> Iterator[_Gap]:
    """The rest of a line, from behind a token of its code."""
    for start, end in file.statements():
        stops = [node.end_byte for node in file.nodes if start < node.end_byte < end and not node.children]
        if "\n" not in file.text[start:end] and stops:
            yield from (_Gap(stop, end) for stop in sorted(set(stops))[:: max(len(stops) // 3, 1)][:3])


def _whole_lines(file: _Parsed) -> Iterator[_Gap]:
    yield from (_Gap(start, end) for start, end in file.statements() if "\n" not in file.text[start:end])


def _statements(file: _Parsed) -> Iterator[_Gap]:
    yield from (_Gap(start, end) for start, end in file.statements() if "\n" in file.text[start:end])


def _begun_statements(file: _Parsed) -> Iterator[_Gap]:
    """Behind the first word of it, or the first few."""
    for gap in _statements(file):
        head = file.text[gap.start : file.line_end(gap.start)]
        words = [gap.start + word.end() for word in NAME.finditer(head)]
        yield from (_Gap(word, gap.end) for word in words[:2] if word < gap.start + len(head))


def _empty_bodies(file: _Parsed) -> Iterator[_Gap]:
    yield from (_Gap(held[0].start_byte, file.end_of(held[-1])) for held in file.bodies())


def _below_docstrings(file: _Parsed) -> Iterator[_Gap]:
    for held in file.bodies():
        if len(held) > 1 and file.text.startswith('"""', held[0].start_byte):
            yield _Gap(held[1].start_byte, file.end_of(held[-1]))


def _below_first(file: _Parsed) -> Iterator[_Gap]:
    for held in file.bodies():
        if len(held) > 1 and not file.text.startswith('"""', held[0].start_byte):
            yield _Gap(held[1].start_byte, file.end_of(held[-1]))


def _below_comments(file: _Parsed) -> Iterator[_Gap]:
    starts = {file.line_start(start): (start, end) for start, end in file.statements()}
    for node in file.nodes:
        is_comment = node.type in file.language.comments and file.begins_line(node)
        if is_comment and (found := starts.get(file.line_end(node.end_byte - 1) + 1)):
            yield _Gap(*found)


def _functions(file: _Parsed) -> Iterator[_Gap]:
    """Definitions at the left margin."""
    for start, end in file.statements():
        head, _, rest = file.text[start:end].partition("\n")
        if start == file.line_start(start) and "(" in head and rest:
            yield _Gap(start, end)


def _below_decorators(file: _Parsed) -> Iterator[_Gap]:
    for node in file.nodes:
        if node.type in ("decorator", "attribute_item", "marker_annotation") and file.begins_line(node):
            whole = node.parent if node.type == "decorator" else node.next_named_sibling
            whole = node.parent.parent if node.type == "marker_annotation" and node.parent else whole
            if whole is not None and (start := file.line_end(node.end_byte) + 1) < whole.end_byte:
                indent = len(file.text[start:]) - len(file.text[start:].lstrip(" \t"))
                yield _Gap(start + indent, file.end_of(whole))


def _calls(file: _Parsed, *, closed: bool = False) -> Iterator[_Gap]:
    """The arguments of a call over several lines, with the bracket that closes it unless the editor has `closed` it."""
    for node in file.nodes:
        inside = file.text[node.start_byte : node.end_byte]
        if "argument" in node.type and inside.startswith("(\n") and inside.endswith(")"):
            yield _Gap(node.start_byte + 1, node.end_byte - 1 if closed else file.end_of(node))


def _closed_calls(file: _Parsed) -> Iterator[_Gap]:
    return _calls(file, closed=True)


KINDS: dict[str, tuple[Callable[[_Parsed], Iterator[_Gap]], int]] = {
    "rest of a line": (lines, 6),
    "line": (_whole_lines, 4),
    "statement": (_statements, 5),
    "statement begun": (_begun_statements, 5),
    "empty body": (_empty_bodies, 2),
    "below docstring": (_below_docstrings, 2),
    "below first statement": (_below_first, 2),
    "below comment": (_below_comments, 2),
    "function": (_functions, 2),
    "below decorator": (_below_decorators, 2),
    "call": (_calls, 2),
    "call closed": (_closed_calls, 2),
}
"""How each kind of gap is found, and how many of it a file gives at most."""
SINGLE = frozenset({"rest of a line", "line"})


def sources(*, unseen: bool = False) -> list[Source]:
    """The files that are looked at, or those that are not."""
    found = []
    for path in sorted(FILES.glob("*.txt")):
        language = languages.find("", path.stem)
        assert language is not None, path
        if (path.stem in UNSEEN) == unseen:
            found.append(Source(path.stem, language.id, path.read_text(encoding="ascii")))
    return found


def rows(files: Iterable[Source], *, seed: int = 0, kinds: Sequence[str] = tuple(KINDS)) -> list[Row]:
    return [row for file in files for kind in kinds for row in cut(file, kind, seed)]


def cut(file: Source, kind: str, seed: int = 0) -> list[Row]:
    """Some of the gaps of a kind, always the same ones."""
    find, most = KINDS[kind]
    parsed = parse(file)
    gaps = [gap for gap in dict.fromkeys(find(parsed)) if _is_fair(parsed, gap)]
    chosen = random.Random(f"{seed} {file.name} {kind}").sample(gaps, min(most, len(gaps)))
    text = file.text
    return [
        Row(file.name, file.language, kind, text[: gap.start], text[gap.start : gap.end], text[gap.end :])
        for gap in sorted(chosen, key=lambda gap: (gap.start, gap.end))
    ]


def _is_fair(file: _Parsed, gap: _Gap) -> bool:
    """Not a word of comments and strings, and not half of the file."""
    middle = file.text[gap.start : gap.end]
    within = any(start < gap.start < end for start, end in file.quiet)
    return not within and len(middle.strip()) > 2 and middle.count("\n") < MOST_LINES


@cache
def parse(file: Source) -> _Parsed:
    language = languages.find(file.language, file.name)
    assert language is not None, file.name
    tree = languages.parser(language).parse(file.text.encode())
    nodes, quiet = tuple(_below(tree.root_node)), (*language.comments, *language.strings)
    held = tuple((node.start_byte, node.end_byte) for node in nodes if node.type in quiet)
    return _Parsed(file.text, language, nodes, held)


def _below(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from _below(child)
