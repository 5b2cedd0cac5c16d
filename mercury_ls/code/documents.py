"""Open documents: the text as the editor has it, with its line index and syntax tree, for each version."""

import math
import re
import time
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property, lru_cache, wraps
from itertools import accumulate
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from tree_sitter import Parser, Point, Tree

from mercury_ls.code import languages, positions
from mercury_ls.code.differences import TERMINATOR
from mercury_ls.code.edits import TextEdit, difference
from mercury_ls.code.languages import Language
from mercury_ls.code.positions import Encoding

CLOSED = -1
"""The version of a file that no editor has open."""

TREE_LIMIT = 1 << 20
"""In bytes. The parser needs more than a tenth of a second for a larger text and holds the interpreter lock, so threads
would not help."""

LONGEST_MARK = 16
"""Longer than any delimiter of a string or comment: text further away cannot change where one ends."""

MAX_PENDING = 64
QUICK_BYTES, QUICK_FIRST = 1 << 15, 1 << 12
"""Texts of fewer bytes are parsed at once: after a change, and for the first time."""
QUICK_SECONDS, WHOLE_SECONDS = 0.1, 1.0
"""Of processor time, within which a short text and one of `TREE_LIMIT` are parsed as a whole: usual code takes a
quarter of that. A run of escaped line ends, or of comparisons in Java, takes that of its length squared."""
SLICE_SECONDS, LONGEST_SLICE_SECONDS, MOST_SECONDS = 0.01, 0.5, 5.0
"""Of processor time: some grammars take that of a text's length squared, such as Bash's for here-documents. In a slice
that takes longer the parser cannot be stopped."""
PIECE_BYTES, PIECE_STRIDE, PIECE_SECONDS = 1 << 13, 1 << 14, 0.03
"""A text of which such a piece takes the parser so much processor time has no tree: any piece of usual code takes less
than 7 ms. Of a flood of comparisons in Java it takes 80 ms, and a time of its length squared, nearly all of it in one
step that cannot be stopped."""
CHUNK_BYTES, NODE_BYTES = 1 << 14, 1 << 8
"""The number of bytes that the parser, or a node of its tree, reads at a time."""
MOST_TRIED = 50_000
MAX_DEPTH = 128
DEEPEST_TREE = 2000
"""What walks through a tree takes the square of its depth, and of signs in a row: queries of tree-sitter do."""
DEPTHS_TAKEN = 16
STRIDE = 1024
SURROGATE = re.compile(r"[\ud800-\udfff]")

LineRange = tuple[int, int, int, int]
Change = tuple[LineRange | None, str]
P = ParamSpec("P")
T = TypeVar("T")


NO_CHANGE = TextEdit(0, 0, "")
"""A change that is still to be parsed, so that the text is parsed even if nothing was typed since."""


class Snapshot:
    """One version of a document. It never changes; offsets are in code points unless a name says `byte`.

    `closed` are offsets at which no comment or string is open, as far as `syntax` has searched; the last one occurs
    twice if a comment or string starts there and never ends.
    """

    def __init__(self, document: "Document", lines: "_LineIndex"):
        self.uri = document.uri
        self.path = document.path
        self.language = document.language
        self.version = document.version
        self.text = document.text
        self.closed = document.closed
        self.memory: dict[tuple[object, ...], Any] = {}
        self._document = document
        self._lines = lines
        self._is_too_deep = False

    @cached_property
    def written_in(self) -> Language:
        """The language that the editor or the file's name tells; one without an id if it is not supported."""
        return languages.find(self.language, self.path) or languages.UNKNOWN

    @property
    def line_count(self) -> int:
        return len(self._lines)

    def line_start(self, line: int) -> int:
        return self._lines.start(line)

    def line_stop(self, line: int) -> int:
        """The offset after the line terminator, or the end of the text."""
        return self._lines.start(line + 1) if line + 1 < len(self._lines) else len(self.text)

    def line_end(self, line: int) -> int:
        """The offset before the line terminator."""
        start = self._lines.start(line)
        if line + 1 == len(self._lines):
            return len(self.text)
        end = self._lines.start(line + 1)
        if self.text[end - 1] == "\n":
            end -= 1
        if end > start and self.text[end - 1] == "\r":
            end -= 1
        return end

    def line_of(self, offset: int) -> int:
        return self._lines.line_of(offset)

    def line(self, line: int) -> str:
        return self.text[self.line_start(line) : self.line_end(line)]

    def offset(self, line: int, character: int, encoding: Encoding) -> int:
        """Positions past the end of a line mean its end, and past the last line the end of the text. Numbers in a
        command's arguments may be negative, and mean 0."""
        if line >= len(self._lines):
            return len(self.text)
        if line < 0:
            return 0
        character = max(character, 0)
        start = self.line_start(line)
        # No encoding has fewer code units than code points, so the rest of a very long line need not be copied.
        reached = self.text[start : min(self.line_end(line), start + character)]
        return start + positions.column(reached, character, encoding)

    def position(self, offset: int, encoding: Encoding) -> tuple[int, int]:
        line = self.line_of(offset)
        before = self.text[self.line_start(line) : min(offset, self.line_end(line))]
        return line, positions.units(before, len(before), encoding)

    def byte(self, offset: int) -> int:
        if self.text.isascii():
            return offset
        anchor = offset // STRIDE
        return self._byte_anchors[anchor] + len(self.text[anchor * STRIDE : offset].encode())

    def offset_of_byte(self, byte: int) -> int:
        """The offset of a byte; a byte inside a character means the character's start."""
        if self.text.isascii():
            return byte
        anchor = bisect_right(self._byte_anchors, byte) - 1
        piece = self.text[anchor * STRIDE : (anchor + 1) * STRIDE].encode()
        return anchor * STRIDE + len(piece[: byte - self._byte_anchors[anchor]].decode(errors="ignore"))

    @cached_property
    def tree(self) -> Tree | None:
        """The syntax tree; None without a grammar, above TREE_LIMIT, or if parsing took too long or it is too deep."""
        tree = self._document.parse(self)
        self._is_too_deep = tree is not None and len(self.text) > DEEPEST_TREE and _is_too_deep(tree)
        return None if self._is_too_deep else tree

    @property
    def why_no_tree(self) -> str:
        """The limit that a text of a language with a grammar exceeds; empty if there is a tree or no grammar."""
        if self.tree is not None:
            return ""
        deep = f"it has more than {DEEPEST_TREE:,} brackets within each other, or open"
        return deep if self._is_too_deep else self._document.exceeded

    @property
    def patience(self) -> float:
        """The time limit for parsing a variant of this text."""
        return 0.0 if self._document.took_long else self._document.patience

    def changed(self, change: TextEdit) -> "Snapshot":
        """A variant of this text, parsed from its tree."""
        change = TextEdit(change.start, change.end, _encodable(change.text))
        text = self.text[: change.start] + change.text + self.text[change.end :]
        return Document(
            self.uri, self.path, self.language, self.version, text, self.patience, (self, change)
        ).snapshot()

    @cached_property
    def _byte_anchors(self) -> "array[int]":
        anchors = array("q", [0])
        for start in range(0, len(self.text) - STRIDE + 1, STRIDE):
            anchors.append(anchors[-1] + len(self.text[start : start + STRIDE].encode()))
        return anchors

    def is_deep(self, offset: int) -> bool:
        """True if the tree is so deep at the offset that walking up is too slow: tree-sitter nodes have no parent
        pointers, and each step starts at the root. Neighbouring offsets share the answer."""
        if self.tree is None:
            return False
        place = "deep", offset // MAX_DEPTH
        if place not in self.memory:
            cursor, byte = self.tree.walk(), self.byte(offset)
            self.memory[place] = all(cursor.goto_first_child_for_byte(byte) is not None for _ in range(MAX_DEPTH))
        return self.memory[place]


def cached(function: Callable[Concatenate[Snapshot, P], T]) -> Callable[Concatenate[Snapshot, P], T]:
    """The function's result, cached with the snapshot."""

    @wraps(function)
    def cached(snapshot: Snapshot, *arguments: P.args, **named: P.kwargs) -> T:
        key = (function, arguments, *named.items())
        if key not in snapshot.memory:
            snapshot.memory[key] = function(snapshot, *arguments, **named)
        return snapshot.memory[key]

    return cached


class TriedTexts:
    """Texts with which the parser took no longer than usual: the next time it parses them without a trial."""

    def __init__(self) -> None:
        self._hashes: set[int] = set()

    def __contains__(self, text: str) -> bool:
        return hash(text) in self._hashes

    def add(self, text: str) -> None:
        if len(self._hashes) >= MOST_TRIED:
            self._hashes.clear()
        self._hashes.add(hash(text))


class Document:
    """The current text of one open document. Lone surrogates, which cannot be encoded, become U+FFFD, which is as long
    in every encoding, so that the editor's positions stay valid.

    `patience` limits each update of the tree, in seconds of CPU time: an open bracket in a large file can make the
    parser go over the rest of the file at every keystroke. A snapshot that takes longer has no tree. A text that takes
    far too long has none until its length has changed by a quarter.
    """

    def __init__(
        self,
        uri: str,
        path: str,
        language: str,
        version: int,
        text: str,
        patience: float = math.inf,
        made_of: tuple[Snapshot, TextEdit] | None = None,
        tried: "TriedTexts | None" = None,
    ):
        self.uri = uri
        self.path = path
        self.language = language
        self.version = version
        self.text = _encodable(text)
        self.patience = patience
        self.closed = [0]
        self.took_long = False
        self._tried = tried if tried is not None else TriedTexts()
        self._grammar = languages.find(language, path)
        self._lines = _LineIndex.of(self.text)
        self._snapshot: Snapshot | None = None
        self._parsed: tuple[Tree, str] | None = None
        self._pending: list[TextEdit] = []
        self._begun: str | None = None
        self._hopeless_length: int | None = None
        self._slices: Iterator[None] = iter(())
        if made_of is not None:
            base, change = made_of
            if (tree := base.tree) is not None:
                self._parsed, self._pending = (tree, base.text), [change]
            self.took_long = base.patience <= 0

    def apply(self, changes: Sequence[Change], version: int, encoding: Encoding) -> list[TextEdit]:
        """Apply the `contentChanges` of a didChange; no range means the whole text. Returns what really changed, each
        in offsets of the text after the previous change.
        """
        applied = [self._apply(span, text, encoding) for span, text in changes]
        self.version = version
        self._snapshot = None
        return [change for change in applied if change.text or change.end > change.start]

    def snapshot(self) -> Snapshot:
        if self._snapshot is None:
            self._snapshot = Snapshot(self, self._lines.copy())
        return self._snapshot

    def parse(self, snapshot: Snapshot) -> Tree | None:
        """Parse the latest text incrementally, and an older one from scratch."""
        if self._grammar is None or self._hopeless_length is not None or not _parseable(snapshot.text):
            return None
        if self._parsed and not self._pending and snapshot.text is self.text:
            return self._parsed[0]
        if self.took_long:
            return None
        if snapshot.text is not self.text:
            return _parse_whole(languages.parser(self._grammar), snapshot.text.encode())
        tree = self._reparse(self._grammar)
        if tree is not None or self._begun is not self.text:
            self._begun = None
        return tree

    @property
    def exceeded(self) -> str:
        """The limit because of which there is no tree."""
        if self._grammar is None:
            return ""
        if not _parseable(self.text):
            return f"it is larger than {TREE_LIMIT:,} bytes"
        return f"the parser would need more than {_usual_seconds(self.text.encode()):.1f} s for it"

    @property
    def is_slow(self) -> bool:
        """Whether a tree may take long, since it has never been parsed, or the last parse of it took long: then it has
        one only once it was parsed in slices."""
        return self._parsed is None or self.took_long

    def parsing(self) -> Iterator[None]:
        """Parse a long text in slices: then the next snapshot has a tree or, if that took too long, no snapshot has one
        any more. All callers share one parse; changes typed meanwhile are applied to the tree later."""
        is_current = self._parsed is not None and not self._pending
        if self._begun is not None or is_current or self._grammar is None:
            return self._slices
        if self._is_long():
            old = edited_tree(*self._parsed, self._pending)[0] if self._parsed else None
            self._parsed, self._pending = (old, self.text) if old else None, [NO_CHANGE]
            self._begun, self._slices = self.text, self._parse_in_slices(self.text, self._grammar, old)
        return self._slices

    def _is_long(self) -> bool:
        is_long = len(self.text) > (QUICK_BYTES if self._parsed else QUICK_FIRST)
        return (is_long or self.took_long) and self._hopeless_length is None and _parseable(self.text)

    def _parse_in_slices(self, text: str, grammar: Language, old: Tree | None) -> Iterator[None]:
        parser, source = languages.new_parser(grammar), text.encode()
        for is_flood in _samples(parser, source) if old is None else ():
            if is_flood:
                return self._give_up()
            yield
            if self._begun is not text:
                return
        spent = 0.0
        while self._begun is text:
            began = time.thread_time()
            tree = _parse_for(SLICE_SECONDS, parser, source, old)
            slice_seconds = time.thread_time() - began
            spent += slice_seconds
            self.took_long = spent > _usual_seconds(source)
            if tree and slice_seconds <= LONGEST_SLICE_SECONDS:
                self._tried.add(text)
                self._parsed, self._pending, self._begun = (tree, text), self._pending[1:], None
                self._snapshot = None
                return
            if spent > MOST_SECONDS or slice_seconds > LONGEST_SLICE_SECONDS:
                return self._give_up()
            yield

    def _give_up(self) -> None:
        self._hopeless_length = len(self.text)
        self._parsed = self._begun = self._snapshot = None
        self._pending.clear()

    def _reparse(self, grammar: Language) -> Tree | None:
        if self._parsed is None:
            self._pending.clear()
            parser, source = languages.parser(grammar), self.text.encode()
            tree = parser.parse(source) if self.text in self._tried else _parse_whole(parser, source)
            if tree is None:
                self._hopeless_length = len(self.text)
            else:
                self._parsed = tree, self.text
                self._tried.add(self.text)
            return tree
        old, _ = edited_tree(*self._parsed, self._pending)
        source, began = self.text.encode(), time.thread_time()
        tree = _parse_again(languages.parser(grammar), source, old, self.patience)
        self.took_long = time.thread_time() - began > _usual_seconds(source)
        # If it took too long, the old tree has the edits recorded, and they are parsed with the next change.
        self._parsed = tree or old, self.text
        self._pending = [] if tree else [NO_CHANGE]
        return tree

    def _apply(self, span: LineRange | None, text: str, encoding: Encoding) -> TextEdit:
        start, end = self.offsets(span, encoding)
        # Clients that send the whole text, or a whole line, have usually changed one word of it.
        change = difference(self.text[start:end], _encodable(text)).moved(start)
        self.text = self.text[: change.start] + change.text + self.text[change.end :]
        self._lines.replace(change, self.text)
        self._reopen(change.start)
        if (length := self._hopeless_length) is not None and 4 * abs(len(self.text) - length) > length:
            self._hopeless_length, self.took_long = None, False
        self._remember(change)
        return change

    def offsets(self, span: LineRange | None, encoding: Encoding) -> tuple[int, int]:
        """Those of a range; no range means the whole text."""
        if span is None:
            return 0, len(self.text)
        snapshot = Snapshot(self, self._lines)
        start, end = snapshot.offset(span[0], span[1], encoding), snapshot.offset(span[2], span[3], encoding)
        return min(start, end), max(start, end)

    def _reopen(self, start: int) -> None:
        """Drop the offsets after the change; snapshots keep their own list."""
        self.closed = self.closed[: bisect_right(self.closed, max(start - LONGEST_MARK, 0))]
        if self.closed[-1] in self.closed[-2:-1]:
            self.closed.pop()

    def _remember(self, change: TextEdit) -> None:
        if self._parsed is None and self._begun is None:
            return
        self._pending.append(change)
        if len(self._pending) > MAX_PENDING or len(change.text) > QUICK_FIRST:
            self._parsed = self._begun = None
            self._pending.clear()


def unified(text: str) -> str:
    """The text with all line ends converted to line feeds."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def reparse(
    tree: Tree, language: Language, before: str, changes: Iterable[TextEdit], patience: float = math.inf
) -> Tree | None:
    """The tree of `before` after `changes`; None if that takes longer than `patience`. `tree` itself is not changed."""
    old, text = edited_tree(tree, before, changes)
    return _parse_again(languages.parser(language), text.encode(), old, patience)


def edited_tree(tree: Tree, before: str, changes: Iterable[TextEdit]) -> tuple[Tree, str]:
    """A copy of the tree with the edits recorded, and the text after them."""
    tree, text = tree.copy(), before
    for change in changes:
        start, point = _byte_of(text, change.start), _point_of(text, change.start)
        removed = text[change.start : change.end]
        end, new_end = start + len(removed.encode()), start + len(change.text.encode())
        tree.edit(start, end, new_end, point, _point_after(point, removed), _point_after(point, change.text))
        text = text[: change.start] + change.text + text[change.end :]
    return tree, text


def _usual_seconds(text: bytes) -> float:
    """More than any usual text of this length takes as a whole."""
    return max(QUICK_SECONDS, WHOLE_SECONDS * len(text) / TREE_LIMIT)


def _parse_whole(parser: Parser, text: bytes) -> Tree | None:
    """None if it takes longer than any usual text does. A first tree stays for long, and is better one that reads its
    text by itself."""
    if len(text) > QUICK_FIRST and any(_samples(parser, text)):
        return None
    is_quick = len(text) <= QUICK_BYTES or _parse_within(_usual_seconds(text), parser, text, None) is not None
    return parser.parse(text) if is_quick else None


def _samples(parser: Parser, text: bytes) -> Iterator[bool]:
    """Parses half of the text in pieces, and says after each whether the whole would take too long."""
    spent = 0.0
    for start in range(0, len(text), PIECE_STRIDE):
        began = time.thread_time()
        parser.parse(text[start : start + PIECE_BYTES])
        seconds = time.thread_time() - began
        spent += seconds
        yield seconds > PIECE_SECONDS or spent > _usual_seconds(text) / 2


def _parse_again(parser: Parser, text: bytes, old: Tree, patience: float) -> Tree | None:
    """None if there is no patience, or a long text takes longer: of a short one nobody can tell before."""
    if patience <= 0:
        return None
    if len(text) <= QUICK_BYTES or math.isinf(patience):
        return parser.parse(text, old)
    return _parse_within(patience, parser, text, old)


def _parse_within(seconds: float, parser: Parser, text: bytes, old: Tree | None) -> Tree | None:
    """None if it takes longer."""
    tree = _parse_for(seconds, parser, text, old)
    if tree is None:
        parser.reset()
    return tree


def _parse_for(seconds: float, parser: Parser, text: bytes, old: Tree | None) -> Tree | None:
    """The tree; None if it takes longer: unless it is reset, the parser resumes there the next time.

    The binding (0.26.1) keeps whatever it reads for ever: the parser's buffers are emptied when it stops; the nodes of
    its tree, which read their text later, get small pieces, and the same object for the same text.
    """
    deadline = time.thread_time() + seconds
    spans: list[bytearray] = []
    is_parsing = True

    def read(start: int, _: object) -> bytes | bytearray:
        if not is_parsing:
            return _interned(text[start : start + NODE_BYTES])
        spans.append(bytearray(text[start : start + CHUNK_BYTES]))
        return spans[-1]

    def is_late(_offset: int, _has_error: bool) -> bool:
        return time.thread_time() > deadline

    try:
        if old is None:  # which the binding refuses as `old_tree`
            return parser.parse(read, progress_callback=is_late)
        return parser.parse(read, old_tree=old, progress_callback=is_late)
    except ValueError:  # the callback has cancelled the parse
        return None
    finally:
        is_parsing = False
        for span in spans:
            span.clear()


def _is_too_deep(tree: Tree) -> bool:
    """By samples: between two of them there is no room for much more."""
    stride = max(1, tree.root_node.end_byte // DEPTHS_TAKEN)
    return any(_is_too_deep_at(tree, byte) for byte in range(stride // 2, tree.root_node.end_byte, stride))


def _is_too_deep_at(tree: Tree, byte: int) -> bool:
    """Brackets that nothing closes stand side by side, without a name between them."""
    cursor = tree.walk()
    for _ in range(DEEPEST_TREE):
        node = cursor.node
        if node is not None and node.child_count - 2 * node.named_child_count > DEEPEST_TREE:
            return True
        if cursor.goto_first_child_for_byte(byte) is None:
            return False
    return True


@cache
def _interned(text: bytes) -> bytes:
    return text


class _LineIndex:
    """The offsets where lines start. Entries from the gap on lack `shift`, so that typing in one place is cheap."""

    __slots__ = ("_gap", "_shift", "_starts")

    def __init__(self, starts: "array[int]", gap: int, shift: int):
        self._starts = starts
        self._gap = gap
        self._shift = shift

    @classmethod
    def of(cls, text: str) -> "_LineIndex":
        if not text.isascii():
            return cls(array("q", [0, *_line_starts(text, 1, len(text))]), 0, 0)
        lines = text.encode().splitlines(keepends=True)  # those of a str also end elsewhere
        ends = lines if text.endswith(("\n", "\r")) else lines[:-1]
        return cls(array("q", accumulate(map(len, ends), initial=0)), 0, 0)

    def copy(self) -> "_LineIndex":
        return _LineIndex(self._starts[:], self._gap, self._shift)

    def __len__(self) -> int:
        return len(self._starts)

    def start(self, line: int) -> int:
        return self._starts[line] + (self._shift if line >= self._gap else 0)

    def line_of(self, offset: int) -> int:
        return self._first_after(offset) - 1

    def replace(self, change: TextEdit, text: str) -> None:
        """Update the index for a change; `text` is the text after it. Whether a line starts at an offset depends only
        on the two characters around it, so only offsets from the change's start to its end can differ.
        """
        reached = change.start + len(change.text)
        first = self._first_after(max(change.start, 1) - 1)
        last = self._first_after(change.end)
        self._move_gap(last)
        starts = array("q", _line_starts(text, max(change.start, 1), reached))
        self._starts[first:last] = starts
        self._gap = first + len(starts)
        self._shift += reached - change.end

    def _first_after(self, offset: int) -> int:
        gap = self._gap
        if gap < len(self._starts) and self._starts[gap] + self._shift <= offset:
            return bisect_right(self._starts, offset - self._shift, lo=gap)
        return bisect_right(self._starts, offset, hi=gap)

    def _move_gap(self, line: int) -> None:
        first, last = sorted((line, self._gap))
        shift = self._shift if line > self._gap else -self._shift
        if shift and first < last:
            self._starts[first:last] = array("q", [start + shift for start in self._starts[first:last]])
        self._gap = line


def _line_starts(text: str, first: int, last: int) -> list[int]:
    """The line starts from `first` to `last`, both included."""
    ends = (match.end() for match in TERMINATOR.finditer(text, first - 1, last + 1))
    return [end for end in ends if end <= last]


@lru_cache(maxsize=64)
def closed_file(path: str, text: str, tried: TriedTexts | None = None) -> Snapshot:
    """A file that is not open, with its text on the disk."""
    return Document(Path(path).as_uri(), path, "", CLOSED, text, tried=tried).snapshot()


def _encodable(text: str) -> str:
    return text if text.isascii() else SURROGATE.sub("\ufffd", text)


def _parseable(text: str) -> bool:
    return len(text) <= TREE_LIMIT and (
        text.isascii() or len(text) * 4 <= TREE_LIMIT or len(text.encode()) <= TREE_LIMIT
    )


def _byte_of(text: str, offset: int) -> int:
    return offset if text.isascii() else len(text[:offset].encode())


def _point_after(point: Point, text: str) -> Point:
    """The point at the end of a text that starts at `point`."""
    head, line_feed, last = text.rpartition("\n")
    column = len(last.encode())
    return Point(point.row + head.count("\n") + 1, column) if line_feed else Point(point.row, point.column + column)


def _point_of(text: str, offset: int) -> Point:
    """Rows are counted as in tree-sitter, by line feeds only."""
    line_feed = text.rfind("\n", 0, offset)
    return Point(text.count("\n", 0, offset), len(text[line_feed + 1 : offset].encode()))
