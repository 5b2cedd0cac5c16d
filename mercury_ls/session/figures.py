"""What suggestions were worth, by the figures that others publish: counts by model."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from mercury_ls.code.documents import Document
from mercury_ls.session.stats import Count, Row, Stats, total

__all__ = ["RetentionWatch", "comparable"]

CHECKED: tuple[tuple[float, Count], ...] = ((30.0, "kept_half_minute"), (300.0, "kept_five_minutes"))
MOST_FOLLOWED = 256
OTHERS = (
    "others: Meta 22 % accepted, of what was on the screen for 750 ms, and 8 % of the code; Google 25 to 34 % accepted,"
    " over 3 % of the code; Codeium 1.27 characters an opportunity and 45 % of the code, which is accepted / (accepted"
    " + typed). What counts as shown, and as an opportunity, differs between them."
)


class AcceptedText(Struct, frozen=True):
    """An accepted text, to be looked for when it is `due`."""

    due: float
    uri: str
    language: str
    text: str
    count: Count


class RetentionWatch:
    """Whether accepted texts are still there after half a minute and after five: as they were, blanks aside."""

    def __init__(self, stats: Stats, clock: Callable[[], float]) -> None:
        self._stats = stats
        self._clock = clock
        self._taken: list[AcceptedText] = []

    def accepted(self, uri: str, language: str, text: str) -> None:
        time, text = self._clock(), "".join(text.split())
        self._taken += [AcceptedText(time + seconds, uri, language, text, count) for seconds, count in CHECKED if text]
        del self._taken[:-MOST_FOLLOWED]

    def look(self, documents: Mapping[str, Document]) -> None:
        time = self._clock()
        if not any(acceptance.due <= time for acceptance in self._taken):
            return
        due = [acceptance for acceptance in self._taken if acceptance.due <= time]
        self._taken = [acceptance for acceptance in self._taken if acceptance.due > time]
        texts = {
            uri: "".join(documents[uri].text.split())
            for uri in {acceptance.uri for acceptance in due}
            if uri in documents
        }
        for acceptance in due:
            if acceptance.text in texts.get(acceptance.uri, ""):
                self._stats.add(acceptance.language, "inline", acceptance.count)


def comparable(rows: Sequence[Row]) -> Iterator[str]:
    """Of completions, a line for each model with which something was typed; nothing if there is none."""
    models = sorted({row.model for row in rows if row.typed})
    for model in models:
        row = total(row for row in rows if row.model == model and row.kind == "inline")
        yield (
            f"{model or 'unknown model'}: {row.typed:,} characters typed, {row.opportunities:,} opportunities; "
            f"{row.lingered:,} on the screen for 750 ms, {share(row.accepted, row.lingered)} as many accepted; "
            f"of these {share(row.kept_half_minute, row.accepted)} still there after 30 s, "
            f"{share(row.kept_five_minutes, row.accepted)} after 5 min; "
            f"{share(row.characters, row.characters + row.typed)} of the code, "
            f"{row.characters / max(row.opportunities, 1):.2f} characters an opportunity"
        )
    if models:
        yield OTHERS


def share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else "-"
