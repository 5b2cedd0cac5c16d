"""Edit rows from git history: a small commit becomes ordered edits, each with the file's state before it."""

import difflib
import random
import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import NotRequired, Protocol, TypedDict, Unpack

from msgspec import Struct, structs

from mercury_engine.api import Edit
from mercury_training.corpus import filters, synthetic
from mercury_training.corpus.shards import EditRow, Replacement
from mercury_training.corpus.sources import CorpusSource, blobs, git

WINDOW = 48
HISTORY = 6
LONGEST_MIDDLE = 800
ROWS_A_COMMIT = 3
SYNTHETIC_SHARE = 0.25
SILENT_SHARE = 0.25
FIRST_SHARE = 0.12

CODE = frozenset({"python", "javascript", "typescript", "tsx", "go", "rust", "c", "cpp", "java", "bash", "lua"})
NAME = re.compile(r"[A-Za-z_]\w{2,}")
DEFINED = re.compile(
    r"\b(?:def|class|func|fn|function|const|let|var|struct|type|interface|import|as)\s+(\w+)|\b(\w+)\s*(?::[^=()]+)?=[^=]"
)


class _SourceText(Protocol):
    """A file that passed the filters, so that its history may be trained on."""

    @property
    def path(self) -> str: ...
    @property
    def language(self) -> str: ...
    @property
    def licence(self) -> str: ...
    @property
    def text(self) -> str: ...


class _EditFields(TypedDict):
    """The fields of an edit row that depend on its position in its change."""

    kind: str
    window: str
    first_line: int
    cursor: int
    edits: tuple[Edit, ...]
    expected: tuple[Replacement, ...]
    next: NotRequired[int]


class CommitHunk(Struct, frozen=True):
    """Lines `first` to `stop` of the file before the commit become `new`."""

    path: str
    first: int
    stop: int
    old: tuple[str, ...]
    new: tuple[str, ...]


class CommitSize(Struct, frozen=True):
    """The size of a small commit: its files, all its changed lines, and the longest hunk and line of them."""

    files: int = 3
    lines: int = 60
    hunk: int = 24
    line: int = 240


SMALL = CommitSize()


class Change(Struct, frozen=True):
    """One small commit: its files before it, and its edits."""

    commit: str
    before: dict[str, list[str]]
    hunks: list[CommitHunk]


class _MadeUp(Struct, frozen=True):
    """A synthetic change: the `known` hunks are history and the rest is expected; `make` builds its rows."""

    kind: str
    change: Change
    known: int
    make: Callable[..., EditRow]


def made_up(source: CorpusSource, texts: Sequence[_SourceText], draw: random.Random) -> Iterator[_MadeUp]:
    """Synthetic changes: a name, a signature or an import carried through one Python file."""
    python = [text for text in texts if text.language == "python"]
    for text in draw.sample(python, len(python)):

        def make(path: str, licence: str = text.licence, **fields: Unpack[_EditFields]) -> EditRow:
            return EditRow(source.name, source.revision, licence, path, "python", **fields)

        for kind, before, hunks, first in synthetic.changes(text.text, draw):
            yield _MadeUp(
                kind, Change("", {text.path: before}, [CommitHunk(text.path, *hunk) for hunk in hunks]), first, make
            )


def edit_rows(source: CorpusSource, texts: Sequence[_SourceText], limit: int) -> Iterator[EditRow]:
    """At most `limit` rows, newest commits first, with synthetic rows among them, and silence in a quarter of them."""
    draw = random.Random(source.name)
    count = silent = 0
    rows = _interleaved(_commit_rows(source, texts, draw), _synthetic_rows(source, texts, draw), draw)
    for row in rows:
        if count >= limit:
            return
        if row.kind == "none":
            if silent >= SILENT_SHARE * (count + 1):
                continue
            silent += 1
        count += 1
        yield row


def commit_rows(change: Change, make: Callable[..., EditRow], draw: random.Random) -> Iterator[EditRow]:
    """Rows of one commit: some of its edits, with the earlier ones as history, then silence after the last."""
    hunks = in_plausible_order(change.hunks)
    chosen = sorted(draw.sample(range(1, len(hunks)), min(ROWS_A_COMMIT, len(hunks) - 1)))
    if draw.random() < FIRST_SHARE:
        chosen = [0, *chosen]
    for number in chosen:
        yield _row(change, hunks, number, make, draw)
    yield _silence(change, hunks, make, draw)


def hunks_between(path: str, before: Sequence[str], after: Sequence[str]) -> list[CommitHunk] | None:
    """The hunks that turn `before` into `after`; None if they differ over too long a stretch."""
    head = next(
        (i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), min(len(before), len(after))
    )
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    if max(len(old), len(new)) > LONGEST_MIDDLE:
        return None
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return [
        CommitHunk(path, head + i, head + j, tuple(old[i:j]), tuple(new[k:m]))
        for tag, i, j, k, m in matcher.get_opcodes()
        if tag != "equal"
    ]


def in_plausible_order(hunks: Sequence[CommitHunk]) -> list[CommitHunk]:
    """Definitions before their uses, code before its tests, otherwise from top to bottom."""
    added = [_names(hunk.new) - _names(hunk.old) for hunk in hunks]
    used_by = [
        sum(
            not _defined(hunk).isdisjoint(names) for other, names in zip(hunks, added, strict=True) if other is not hunk
        )
        for hunk in hunks
    ]
    weight = dict.fromkeys(dict.fromkeys(hunk.path for hunk in hunks), 0)
    for hunk, uses in zip(hunks, used_by, strict=True):
        weight[hunk.path] += uses
    keys = {
        id(hunk): ("test" in hunk.path.lower(), -weight[hunk.path], hunk.path, -uses, hunk.first)
        for hunk, uses in zip(hunks, used_by, strict=True)
    }
    return sorted(hunks, key=lambda hunk: keys[id(hunk)])


def _commit_rows(source: CorpusSource, texts: Sequence[_SourceText], draw: random.Random) -> Iterator[EditRow]:
    by_path = {text.path: text for text in texts if text.language in CODE}
    for change in small_changes(source, by_path):

        def make(path: str, commit: str = change.commit, **fields: Unpack[_EditFields]) -> EditRow:
            return EditRow(source.name, commit, by_path[path].licence, path, by_path[path].language, **fields)

        yield from commit_rows(change, make, draw)


def small_changes(source: CorpusSource, paths: Container[str], limits: CommitSize = SMALL) -> Iterator[Change]:
    """Commits that modify some of these files within the limits, newest first, with all blobs present."""
    with blobs(source.location) as read:
        for commit, files in _commits(source, paths, limits.files):
            before, hunks = {}, []
            for path, old_name, new_name in files:
                old, new = _lines(read(old_name)), _lines(read(new_name))
                found = hunks_between(path, old, new) if old and new else None
                if found is None:
                    break
                before[path] = old
                hunks += found
            else:
                texts = (*_all_lines(hunks), *(line for lines in before.values() for line in lines))
                if hunks and _is_small(hunks, limits) and not filters.SECRET.search("".join(texts)):
                    yield Change(commit, before, hunks)


def _commits(
    source: CorpusSource, paths: Container[str], most: int
) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """Commits that touch at most so many files: path, old blob and new blob of those modified and known. Line counts
    would need blobs that a mirror may lack, so only names are requested."""
    log = git(
        source.location,
        *("log", "--raw", "--no-renames", "--no-merges", "--abbrev=40", "--format=%x01%H", source.revision),
    )
    for entry in log.decode("utf-8", "replace").split("\1")[1:]:
        commit, *lines = entry.split("\n")
        raw = [line.split("\t") for line in lines if line.startswith(":")]
        if not 1 <= len(raw) <= most:
            continue
        modified = [
            (path, old, new)
            for meta, path in raw
            if meta.endswith("M") and path in paths
            for old, new in (meta.split()[2:4],)
        ]
        if modified:
            yield commit.strip(), modified


def _lines(data: bytes | None) -> list[str] | None:
    """Lines with their ends; None if the blob is absent, too long or not text."""
    if data is None or len(data) > filters.LARGEST or b"\0" in data:
        return None
    try:
        return synthetic.lines_of(data.decode().replace("\r\n", "\n"))
    except UnicodeDecodeError:
        return None


def _is_small(hunks: Sequence[CommitHunk], limits: CommitSize) -> bool:
    lines = sum(len(hunk.old) + len(hunk.new) for hunk in hunks)
    return (
        lines <= limits.lines
        and all(max(len(hunk.old), len(hunk.new)) <= limits.hunk for hunk in hunks)
        and all(len(line) <= limits.line for line in _all_lines(hunks))
    )


def _row(
    change: Change, hunks: Sequence[CommitHunk], number: int, make: Callable[..., EditRow], draw: random.Random
) -> EditRow:
    """The moment before hunk `number`: it is expected, and so are the later hunks that lie entirely in its window."""
    target, applied = hunks[number], hunks[:number]
    lines = _state(change, target.path, applied)
    place = place_after(target, applied)
    start = max(0, min(place - draw.randint(2, WINDOW - len(target.old) - 2), len(lines) - WINDOW))
    stop = start + WINDOW
    expected = []
    for hunk in sorted(hunks[number:], key=lambda hunk: hunk.first):
        first = place_after(hunk, applied)
        if hunk.path == target.path and start <= first and first + len(hunk.old) <= stop:
            expected.append((hunk, Replacement(first - start, first - start + len(hunk.old), "".join(hunk.new))))
    return make(
        target.path,
        kind=_kind(target, applied),
        window="".join(lines[start:stop]),
        first_line=start,
        cursor=_cursor(target.path, applied, start),
        edits=_edits(applied),
        expected=tuple(replacement for _, replacement in expected),
        next=next(i for i, (hunk, _) in enumerate(expected) if hunk is target),
    )


def _silence(change: Change, hunks: Sequence[CommitHunk], make: Callable[..., EditRow], draw: random.Random) -> EditRow:
    """The moment after all hunks: near the last edit, or anywhere in a changed file, no edit is due."""
    last = hunks[-1]
    lines = _state(change, last.path, hunks)
    near = place_after(last, hunks) if draw.random() < 0.7 else draw.randrange(len(lines) or 1)
    start = max(0, min(near - draw.randint(2, WINDOW - 2), len(lines) - WINDOW))
    return make(
        last.path,
        kind="none",
        window="".join(lines[start : start + WINDOW]),
        first_line=start,
        cursor=_cursor(last.path, hunks, start),
        edits=_edits(hunks),
        expected=(),
    )


def _state(change: Change, path: str, applied: Sequence[CommitHunk]) -> list[str]:
    lines = list(change.before[path])
    for hunk in sorted((hunk for hunk in applied if hunk.path == path), key=lambda hunk: -hunk.first):
        lines[hunk.first : hunk.stop] = hunk.new
    return lines


def place_after(hunk: CommitHunk, applied: Iterable[CommitHunk]) -> int:
    """The position of the hunk once `applied` has been done."""
    earlier = (other for other in applied if other.path == hunk.path and other.first < hunk.first)
    return hunk.first + sum(len(other.new) - len(other.old) for other in earlier)


def _cursor(path: str, applied: Sequence[CommitHunk], start: int) -> int:
    if not applied or applied[-1].path != path:
        return -1
    line = place_after(applied[-1], applied) + max(0, len(applied[-1].new) - 1) - start
    return line if 0 <= line < WINDOW else -1


def _edits(applied: Sequence[CommitHunk]) -> tuple[Edit, ...]:
    """The newest few edits, oldest first, each at its line at the time."""
    places = [(hunk, place_after(hunk, applied[:number])) for number, hunk in enumerate(applied)]
    return tuple(Edit(hunk.path, place, "".join(hunk.old), "".join(hunk.new)) for hunk, place in places[-HISTORY:])


def _kind(target: CommitHunk, applied: Sequence[CommitHunk]) -> str:
    if not applied:
        return "first"
    substitution = _substitution(target)
    if any(_substitution(hunk) == substitution for hunk in applied):
        return "repeat"
    introduced = set().union(*(_names(hunk.new) - _names(hunk.old) for hunk in applied))
    return "other" if introduced.isdisjoint(_names(target.new) - _names(target.old)) else "propagate"


def _substitution(hunk: CommitHunk) -> tuple[tuple[str, ...], ...]:
    """The words removed and the words inserted, without common ones on either side."""
    old, new = (re.findall(r"\w+|[^\w\s]", "".join(lines)) for lines in (hunk.old, hunk.new))
    while old and new and old[0] == new[0]:
        del old[0], new[0]
    while old and new and old[-1] == new[-1]:
        del old[-1], new[-1]
    return tuple(old), tuple(new)


def _names(lines: Iterable[str]) -> set[str]:
    return set(NAME.findall("".join(lines)))


def _defined(hunk: CommitHunk) -> set[str]:
    names = {name for match in DEFINED.findall("".join(hunk.new)) for name in match if name}
    return names - _names(hunk.old)


def _all_lines(hunks: Iterable[CommitHunk]) -> Iterator[str]:
    return (line for hunk in hunks for line in (*hunk.old, *hunk.new))


def _synthetic_rows(source: CorpusSource, texts: Sequence[_SourceText], draw: random.Random) -> Iterator[EditRow]:
    for made in made_up(source, texts, draw):
        row = _row(made.change, made.change.hunks, made.known, made.make, draw)
        if row.expected:
            yield structs.replace(row, kind=made.kind)
        yield _silence(made.change, made.change.hunks, made.make, draw)


def _interleaved(commits: Iterator[EditRow], made_up: Iterator[EditRow], draw: random.Random) -> Iterator[EditRow]:
    """Synthetic rows mixed with those of commits, as long as there are commits."""
    for row in commits:
        yield row
        if draw.random() < SYNTHETIC_SHARE / (1 - SYNTHETIC_SHARE):
            yield from _next_of(made_up)


def _next_of(rows: Iterator[EditRow]) -> Iterator[EditRow]:
    row = next(rows, None)
    if row is not None:
        yield row
