"""How people pause while they type: milliseconds before each kind of keystroke, fitted to recorded sessions.

python -m bench.replay.typing_model SESSION… > bench/sessions/typing.json
"""

import argparse
import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from bench.replay.session import Changed, Cursor, RecordedSession, Texts, read
from mercury_ls.code.edits import is_word

SAME_MOMENT_MS = 5
LEVELS = (1, 5, 10, 25, 50, 75, 90, 95, 99)
FITTED = Path(__file__).parents[1] / "sessions/typing.json"


class Pauses(Struct, frozen=True):
    """`ms` at the percentiles `q`, of `n` keystrokes of one kind."""

    n: int
    q: tuple[int, ...]
    ms: tuple[int, ...]


TypingModel = dict[str, Pauses]


class Stroke(Struct, frozen=True):
    """The part of a change that its pause depends on: the preceding character, and the cursor afterwards."""

    start: int
    removed: int
    text: str
    before: str
    cursor: int
    why: str = "type"

    @property
    def is_typed(self) -> bool:
        """False for whole lines of code, which a tool inserts, line after line at its own pace."""
        return not ("\n" in self.text and self.text.strip())


def kind_of(stroke: Stroke, last: Stroke | None) -> str:
    """The kind of a keystroke; the model predicts the pause before it."""
    if stroke.why in ("accept", "format"):
        return stroke.why
    if stroke.removed and not stroke.text:
        again = last is not None and last.removed and not last.text
        return "backspace" if again and stroke.start + stroke.removed == last.start else "delete_first"
    if last is None or stroke.start != last.cursor:
        return "after_jump"
    if stroke.text.startswith(("\n", "\r")):
        return "newline"
    if len(stroke.text) > 1:
        return "multi_char"
    if last.text.startswith(("\n", "\r")):
        return "line_start"
    return "in_word" if is_word(stroke.text) and is_word(stroke.before) else "boundary"


def fit(sessions: Iterable[RecordedSession]) -> TypingModel:
    """Fit the model to changes at one place: several cursors at once are not a keystroke."""
    gaps: dict[str, list[int]] = {}
    for session in sessions:
        for kind, gap in _gaps_of(session):
            gaps.setdefault(kind, []).append(gap)
    return {kind: _pauses(sorted(found)) for kind, found in sorted(gaps.items())}


def _gaps_of(session: RecordedSession) -> Iterator[tuple[str, int]]:
    last, at, where = None, 0, None
    for t, d, stroke in _strokes(session):
        if last is not None and stroke is not None and stroke.is_typed and last.is_typed:
            yield kind_of(stroke, last if where == d else None), t - at
        last, at, where = stroke or last, t, d


def _strokes(session: RecordedSession) -> Iterator[tuple[int, int, Stroke | None]]:
    """The time, the document and the change; None for changes in several places. An editor that closes a bracket by
    itself reports the cursor just after the change."""
    texts, events = Texts(session), session.events
    for event, after in zip(events, [*events[1:], None], strict=True):
        before = texts.documents[event.d].text if isinstance(event, Changed) else ""
        made = texts.apply(event)
        if not isinstance(event, Changed):
            continue
        if len(made) != 1:
            yield event.t, event.d, None
            continue
        start, end, text = made[0]
        cursor = start + len(text)
        if isinstance(after, Cursor) and after.d == event.d and after.t - event.t <= SAME_MOMENT_MS:
            cursor = texts.offset(event.d, *after.sel[0][2:])
        yield event.t, event.d, Stroke(start, end - start, text, before[start - 1 : start], cursor, event.why)


def _pauses(ordered: Sequence[int]) -> Pauses:
    return Pauses(len(ordered), LEVELS, tuple(_quantile(ordered, level) for level in LEVELS))


def _quantile(ordered: Sequence[int], level: float) -> int:
    return ordered[min(len(ordered) - 1, int(level / 100 * len(ordered)))]


def draw(model: TypingModel, kind: str, chance: random.Random) -> int:
    """A random pause of this kind, interpolated between the known percentiles."""
    known = model.get(kind) or model["boundary"]
    level = chance.uniform(known.q[0], known.q[-1])
    for (low, at_low), (high, at_high) in zip(_points(known), _points(known)[1:], strict=False):
        if level <= high:
            return round(at_low + (at_high - at_low) * (level - low) / (high - low))
    return known.ms[-1]


def _points(known: Pauses) -> list[tuple[int, int]]:
    return list(zip(known.q, known.ms, strict=True))


def load(path: Path = FITTED) -> TypingModel:
    return msgspec.json.decode(path.read_bytes(), type=TypingModel)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sessions", type=Path, nargs="+")
    fitted = fit(map(read, parser.parse_args().sessions))
    lines = [f'"{kind}": {msgspec.json.encode(found).decode()}' for kind, found in fitted.items()]
    sys.stdout.write("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
