"""The context of a request: the window around the cursor, and related code, within a token budget."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from itertools import islice

from msgspec import Struct

from mercury_engine.api import Snippet
from mercury_ls.code import syntax
from mercury_ls.code.documents import Snapshot, cached
from mercury_ls.code.private import hide_any, shown

QUANTUM_LINES = 64
CHUNK_LINES = 24
NEAR_LINES = 16
DUPLICATE = 0.7
LARGEST_NEIGHBOUR = 200_000
SNIPPET_CHARACTERS = 16_000
"""Of related code in all. Drafts are also copied from what does not fit into the prompt."""


class ContextBudget(Struct, frozen=True):
    """How much fits, in tokens of the model; `characters_per_token` is the model's own average."""

    tokens: int = 2048
    characters_per_token: float = 3.5
    snippets: int = 24

    @property
    def characters(self) -> int:
        return int(self.tokens * self.characters_per_token)


class Related(Struct, frozen=True):
    """The snippets chosen for one place. They are kept while the user types there: changing them would invalidate the
    model's prefix cache. `hides` says that keys were left out of them, or of the file itself."""

    uri: str
    line: int
    chosen_at: float
    snippets: tuple[Snippet, ...] = ()
    hides: bool = False

    def still_fits(self, snapshot: Snapshot, offset: int, time: float) -> bool:
        near = abs(snapshot.line_of(offset) - self.line) <= NEAR_LINES
        return self.uri == snapshot.uri and near and time - self.chosen_at < 60.0


def window(snapshot: Snapshot, offset: int, characters: int) -> tuple[int, int]:
    """Whole lines around the offset: about three quarters before it, one quarter after. The window moves in steps of 64
    lines, so that caches stay valid."""
    if len(snapshot.text) <= characters:
        return 0, len(snapshot.text)
    first = snapshot.line_of(max(offset - characters * 3 // 4, 0))
    first -= first % QUANTUM_LINES
    last = snapshot.line_of(min(offset + characters // 4, len(snapshot.text)))
    last = min(last + QUANTUM_LINES - last % QUANTUM_LINES, snapshot.line_count - 1)
    return snapshot.line_start(first), snapshot.line_end(last)


def relate(
    snapshot: Snapshot,
    offset: int,
    neighbours: Sequence[Snapshot],
    definitions: Callable[[Sequence[str], str], Sequence[Snippet]],
    budget: ContextBudget,
    time: float,
) -> Related:
    """Choose the snippets beside the window: the head of the file, similar code, definitions of the names in use."""
    line = snapshot.line_of(offset)
    near = _nearby_names(snapshot, line)
    candidates = [
        *_own_head(snapshot, offset, budget),
        *_alternating(
            _similar_chunks(near, neighbours), definitions([name for name, _ in near.most_common(32)], snapshot.path)
        ),
    ]
    start, end = window(snapshot, offset, budget.characters)
    chosen = _within(_distinct(candidates, shown(snapshot)[start:end]), budget)
    return Related(snapshot.uri, line, time, tuple(chosen), hide_any((snapshot, *neighbours)))


def _alternating(similar: Sequence[Snippet], defined: Sequence[Snippet]) -> Iterator[Snippet]:
    """Two pieces of similar code, then one definition, until both run out."""
    pieces, definitions = iter(similar), iter(defined)
    for _ in range(max(len(similar), len(defined))):
        yield from islice(pieces, 2)
        yield from islice(definitions, 1)


def _nearby_names(snapshot: Snapshot, line: int) -> Counter[str]:
    first, last = max(line - NEAR_LINES, 0), min(line + NEAR_LINES, snapshot.line_count - 1)
    return Counter(syntax.identifiers(snapshot.text[snapshot.line_start(first) : snapshot.line_end(last)]))


def _own_head(snapshot: Snapshot, offset: int, budget: ContextBudget) -> list[Snippet]:
    """Imports and the headers of the scopes around the cursor, if the window begins below them."""
    start, _ = window(snapshot, offset, budget.characters)
    ranges = [r for r in [*syntax.imports(snapshot), *syntax.headers(snapshot, offset)] if r[1] <= start]
    text = "\n".join(shown(snapshot)[a:b].rstrip() for a, b in ranges)
    return [Snippet(snapshot.path, text)] if text else []


def _similar_chunks(near: Counter[str], neighbours: Sequence[Snapshot]) -> list[Snippet]:
    """Pieces of other files, the most similar first, by the rarity-weighted share of names in common."""
    chunks = [
        (Snippet(file.path, text), names)
        for file in neighbours
        if len(file.text) <= LARGEST_NEIGHBOUR
        for text, names in _chunks_with_names(file)
    ]
    frequency = Counter(name for _, names in chunks for name in names)
    weight = {name: 1.0 / count for name, count in frequency.items()}
    scored = [(_similarity(near, names, weight), chunk) for chunk, names in chunks if near.keys() & names]
    best = sorted(scored, key=lambda pair: -pair[0])[:16]
    return [chunk for score, chunk in best if score > 0.02]


def _similarity(near: Counter[str], chunk_names: Set[str], weight: dict[str, float]) -> float:
    shared = sum(weight[name] for name in near if name in chunk_names)
    total = sum(weight[name] for name in chunk_names) + sum(weight.get(name, 1.0) for name in near)
    return shared / max(total - shared, 1e-9)


@cached
def _chunks_with_names(snapshot: Snapshot) -> list[tuple[str, frozenset[str]]]:
    """About 24 lines each, cut at the nearest blank line."""
    lines = shown(snapshot).splitlines(keepends=True)
    chunks: list[str] = []
    start = 0
    while start < len(lines):
        end = min(start + CHUNK_LINES, len(lines))
        if end < len(lines):
            end = next((at for at in range(end, start + CHUNK_LINES // 2, -1) if not lines[at - 1].strip()), end)
        chunks.append("".join(lines[start:end]).rstrip())
        start = end
    return [(chunk, frozenset(syntax.identifiers(chunk))) for chunk in chunks if chunk.strip()]


def _distinct(snippets: Sequence[Snippet], window_text: str) -> list[Snippet]:
    """Without the snippets whose lines are mostly in the window, or in a better snippet."""
    window_lines = {line.strip() for line in window_text.splitlines()}
    distinct: list[Snippet] = []
    for snippet in snippets:
        lines = [line.strip() for line in snippet.text.splitlines() if len(line.strip()) > 3]
        repeated = sum(line in window_lines for line in lines)
        if lines and repeated / len(lines) < DUPLICATE:
            distinct.append(snippet)
            window_lines.update(lines)
    return distinct


def _within(snippets: Sequence[Snippet], budget: ContextBudget) -> list[Snippet]:
    """The best ones, up to the limits. The engine decides which of them go into the prompt."""
    remaining = SNIPPET_CHARACTERS
    fitting: list[Snippet] = []
    for snippet in snippets:
        if len(fitting) < budget.snippets and len(snippet.text) <= remaining:
            fitting.append(snippet)
            remaining -= len(snippet.text)
    return fitting
