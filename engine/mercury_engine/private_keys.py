"""Finds private keys in a text, in whatever layout they stand: by the marks that open and close a key, and by what
random base64 looks like.

A key spans lines, so it is masked in a whole text: a piece of one may lack the line that tells what it is.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby, pairwise
from operator import itemgetter

from msgspec import Struct

WORDS = ("PRIVATE KEY", "AGE-SECRET-KEY-", "PuTTY-User-Key-File-", "Private-")
"""A text without any of these has no key."""
NAMED = re.compile(r"P(?:RIVATE KEY(?: BLOCK)?|uTTY-User-Key-File-\d: ?[\w-]*|rivate-(?:Lines: \d+|MAC: (?P<mac>\w*)))")
BEFORE = re.compile(r"-{2,5} ?(?P<kind>BEGIN|END) (?:[A-Z0-9]+ ){0,3}\Z")
BEHIND = re.compile(r" ?-{1,5}")
LONGEST_MARK = 64
AGE = re.compile(r"AGE-SECRET-KEY-(?=[A-Z0-9])")
AGE_PIECE = re.compile(r"(?:\\{1,8}[nrt]|[^A-Za-z0-9\\]){0,40}([A-Z0-9][A-Za-z0-9]*)")
AGE_CHARACTERS = 59

BREAK = re.compile(
    r"\r\n?|\n|(?:\\{1,8}r)?\\{1,8}n|\\{1,8}r|%0[AD]|&#1[03];|&#x[AD];|</?\w+ */?>|&(?=\w+=)", re.IGNORECASE
)
"""Where a line of a key ends: in a string by an escape, in a form or a page by what follows."""
RUN = re.compile(r"(?<![+/])[+/]*[A-Za-z0-9][A-Za-z0-9+/]*={0,2}")
HEADER = re.compile(r"(?:^|[^\w-])[A-Z][A-Za-z0-9-]{2,40}: ")
PREFIX = re.compile(r"(?<![\w+/=\"'`])[A-Za-z]{1,2}(?=[\"'`])|^\s*\d{1,5}(?=[\s:.|)])")
"""Of a string literal, or the number of a line."""
CHECKSUM = re.compile(r"(?<![\w=])=[A-Za-z0-9+/]{4}(?![\w+/=])")
WRITTEN = re.compile(r"[{$%<]|\w\s+[:=]")
"""Code beside a mark: what a program fills in there, or assigns."""
FIRST = re.compile(r"MII|b3BlbnNz")
"""How the base64 of most keys begins."""
FIRST_RUN = 8

LONG_RUN, BARE_RUN, WHOLE_RUN = 24, 40, 48
"""So long a run of base64 is taken for a part of a key beside a mark, if it looks random; wherever it stands, if it
does; and on a line of its own."""
SHORT_RUN, FEWEST = 16, 3
"""Shorter runs are a part of a key if there are some of the same length below each other."""
PIECE = re.compile(r"[A-Za-z0-9+/]{16}")
RANDOM = 0.4
"""The share of neighbouring characters that are of different kinds: 0.65 in random base64, below 0.4 in names."""
LONGEST_KEY, LONGEST_HEAD = 1 << 16, 100
"""In characters."""


def mask_keys(text: str) -> str:
    """Replace what is secret of private keys by stars. All offsets stay."""
    return starred(text, key_spans(text))


def mask_random_lines(text: str) -> str:
    """The same for what somebody has cut out of a key: long lines of random base64, whatever they are."""
    return starred(text, _bare_spans(text))


def masked_lines(text: str) -> dict[str, str]:
    """The lines that hold something of a key, and what is shown of them."""
    masked = mask_keys(text)
    if masked is text:
        return {}
    pairs = zip(re.split(r"[\r\n]+", text), re.split(r"[\r\n]+", masked), strict=True)
    return {line: shown for line, shown in pairs if line != shown}


def starred(text: str, spans: Iterable[tuple[int, int]]) -> str:
    pieces: list[str] = []
    reached = 0
    for start, end in sorted(spans):
        if end > reached:
            start = max(start, reached)
            pieces += (text[reached:start], re.sub(r"[^\r\n]", "*", text[start:end]))
            reached = end
    return "".join((*pieces, text[reached:])) if pieces else text


def key_spans(text: str) -> list[tuple[int, int]]:
    """Where the base64 of private keys stands."""
    if not any(word in text for word in WORDS):
        return []
    return [*_age_spans(text), *_marked_spans(text)]


def _age_spans(text: str) -> Iterator[tuple[int, int]]:
    at = 0
    for match in AGE.finditer(text):
        if match.start() < at:
            continue
        at, missing = match.end(), AGE_CHARACTERS
        while missing > 0 and (piece := AGE_PIECE.match(text, at)):
            yield piece.span(1)
            at, missing = piece.end(), missing - len(piece[1])


class _Mark(Struct, frozen=True):
    """What opens or closes a key; what is left of one after a cut may do both."""

    start: int
    end: int
    opens: bool
    closes: bool


def _marks(text: str) -> Iterator[_Mark]:
    for name in NAMED.finditer(text):
        if not name[0].startswith("PRIVATE"):
            yield _Mark(*name.span(), opens=name["mac"] is None, closes=name["mac"] is not None)
            continue
        first = max(name.start() - LONGEST_MARK, 0)
        before, behind = BEFORE.search(text[first : name.start()]), BEHIND.match(text, name.end())
        end = behind.end() if behind else name.end()
        if before:
            is_first = before["kind"] == "BEGIN"
            yield _Mark(first + before.start(), end, opens=is_first, closes=not is_first)
        elif behind:
            yield _Mark(name.start(), end, opens=True, closes=True)


def _marked_spans(text: str) -> Iterator[tuple[int, int]]:
    yield from (match.span("mac") for match in NAMED.finditer(text) if match["mac"])
    first, last = (_Mark(at, at, opens=False, closes=False) for at in (0, len(text)))
    for before, after in pairwise((first, *_marks(text), last)):
        start, end = before.end, after.start
        lines = _key_between(text, start, end) if before.opens and after.closes else []
        if lines:
            yield from chain.from_iterable(line.runs for line in lines if not line.is_header)
            continue
        if before.opens:
            last_break = text.rfind("\n", start, end) if after is not last else -1
            yield from _runs_beside(text, before, _bounds(text, start, last_break if last_break >= 0 else end))
        if after.closes:
            yield from _runs_beside(text, after, _bounds_before(text, start, end))


class _Line(Struct, frozen=True):
    """A line of what may be a key, with where its runs of base64 characters stand, and the longest of them."""

    text: str
    runs: tuple[tuple[int, int], ...]
    longest: str
    has_random: bool

    @property
    def is_header(self) -> bool:
        return bool(HEADER.search(self.text)) and not self.has_random

    @property
    def head(self) -> str:
        return self.text.partition(self.longest)[0].strip()

    @property
    def is_single(self) -> bool:
        """Whether it is one run, and else punctuation and single letters, which somebody may just be typing."""
        sizes = [end - start for start, end in self.runs]
        return (len(sizes) == 1 or sum(size > 1 for size in sizes) == 1) and "_" not in self.text

    @property
    def is_random(self) -> bool:
        """Whether it holds what only random base64 looks like, or what may be that, and nothing else."""
        return self.has_random or (self.is_single and _may_be_random(self.longest))

    @property
    def reach(self) -> int:
        """How far from the others it may stand to belong to their key."""
        return 3 if len(self.longest) >= SHORT_RUN or self.longest.endswith("=") else 1

    def fits(self, heads: Iterable[str]) -> bool:
        """Whether it may belong to a key whose other lines have such heads."""
        begins = self.text.strip()
        return self.is_random or self.is_single or any(bool(head) and begins.startswith(head) for head in heads)


def _line(text: str, bounds: tuple[int, int]) -> _Line:
    start, end = bounds
    line = PREFIX.sub(lambda prefix: " " * len(prefix[0]), text[start:end])
    runs = [*RUN.finditer(line)]
    longest = max((run[0] for run in runs), key=len, default="")
    places = tuple((start + run.start(), start + run.end()) for run in runs)
    return _Line(line, places, longest, any(_is_random(run[0]) for run in runs) or bool(CHECKSUM.search(line)))


def _bounds(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where the lines of a part of the text begin and end."""
    for cut in BREAK.finditer(text, start, end):
        yield start, cut.start()
        start = cut.end()
    yield start, end


def _bounds_before(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The same, the last line first."""
    while end >= start:
        first = max(text.rfind("\n", start, end) + 1, start)
        yield from reversed([*_bounds(text, first, end)])
        end = first - 1


def _key_between(text: str, start: int, end: int) -> list[_Line]:
    """The lines between two marks if they are a key, and no code that names the marks."""
    if end - start > LONGEST_KEY:
        return []
    lines = [*map(partial(_line, text), _bounds(text, start, end))]
    at_marks = (0, len(lines) - 1)
    inner = [line for number, line in enumerate(lines) if number not in at_marks or line.is_random]
    written = [line for line in inner if line.runs and not line.is_header]
    certain = sum(line.is_random for line in written)
    is_key = 0 < len(written) <= 2 * certain
    return lines if is_key else []


def _runs_beside(text: str, mark: _Mark, bounds: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The runs in the lines from a mark on that belong to its key. The last line of a key is short, and looks like any
    word; what stands before the mark may stand before every line of the key; and in one line somebody may just be
    typing."""
    first = max(text.rfind("\n", 0, mark.start) + 1, mark.start - LONGEST_HEAD)
    head = text[first : mark.start].strip()
    key: list[_Line] = []
    certain = misses = 0
    for line in _lines_beside(text, bounds):
        key.append(line)
        fits = line.fits((head, *(other.head for other in key[-3:-1])))
        misses = 0 if fits else misses + 1
        if misses > 1:
            break
        is_beside = len(key) == 1 and fits and not WRITTEN.search(line.text)
        if is_beside or line.has_random or (line.is_random and len(key) - certain <= line.reach):
            certain = len(key)
    if certain and key[certain:] and key[certain].fits((head, *(other.head for other in key[:certain]))):
        certain += 1
    yield from chain.from_iterable(line.runs for line in key[:certain])


def _lines_beside(text: str, bounds: Iterable[tuple[int, int]]) -> Iterator[_Line]:
    """The lines that may be of a key; on the mark's own line may stand code."""
    for number, line in enumerate(map(partial(_line, text), bounds)):
        if not line.runs or line.is_header:
            continue
        if number > 0 or line.is_random:
            yield line


def _is_random(run: str) -> bool:
    """Whether it is so long, or so mixed, that it is no name."""
    has_both_cases = not (run.isupper() or run.islower()) and any(map(str.isalpha, run))
    is_long = len(run) >= BARE_RUN or (len(run) >= LONG_RUN and _is_mixed(run))
    return has_both_cases and (is_long or (len(run) >= FIRST_RUN and bool(FIRST.match(run))))


def _is_mixed(run: str) -> bool:
    kinds = [*map(_kind, run)]
    return sum(first != second for first, second in pairwise(kinds)) >= RANDOM * (len(run) - 1)


def _kind(character: str) -> int:
    return character.isupper() + 2 * character.islower() + 4 * character.isdigit()


def _may_be_random(run: str) -> bool:
    kinds = len({*map(_kind, run)})
    return (len(run) >= 4 and kinds >= 3) or (len(run) >= 8 and kinds >= 2) or bool(FIRST.match(run))


def _bare_spans(text: str) -> Iterator[tuple[int, int]]:
    """The runs that only random base64 looks like, long ones or some of the same length below each other, and what
    stands beside them of a key."""
    if not PIECE.search(text):
        return
    written = [bounds for bounds in _bounds(text, 0, len(text)) if RUN.search(text, *bounds)]
    lines = {number: _line(text, bounds) for number, bounds in enumerate(written) if PIECE.search(text, *bounds)}
    for group in _alike(lines):
        alike = [lines[number] for number in group]
        if not _are_bare(alike):
            continue
        size = len(alike[0].longest)
        runs = chain.from_iterable(line.runs for line in alike)
        yield from ((start, end) for start, end in runs if end - start == size)
        around = written[max(group[0] - 1, 0) : group[0]] + written[group[-1] + 1 : group[-1] + 2]
        beside = map(partial(_line, text), around)
        yield from chain.from_iterable(line.runs for line in beside if line.fits((alike[0].head,)))


def _alike(lines: Mapping[int, _Line]) -> Iterator[list[int]]:
    """The numbers of lines that follow each other, with runs of the same length behind the same head."""
    looks = [(number - place, line.head, len(line.longest)) for place, (number, line) in enumerate(lines.items())]
    for _, group in groupby(zip(looks, lines, strict=True), itemgetter(0)):
        yield [number for _, number in group]


def _are_bare(lines: Sequence[_Line]) -> bool:
    """Whether nothing else looks like them, no paths either."""
    runs = [line.longest for line in lines]
    size = len(runs[0])
    if size < SHORT_RUN:
        return False
    are_paths = sum(run.count("/") for run in runs) > len(runs) * (1 + size / 16)
    are_of_one_case = all(run.islower() or run.isupper() for run in runs)
    if are_paths or are_of_one_case:
        return False
    if lines[0].is_single and size >= WHOLE_RUN:
        return True
    are_random = 3 * sum(map(_is_mixed, runs)) >= 2 * len(runs)
    return are_random and (len(runs) >= FEWEST or size >= BARE_RUN)
