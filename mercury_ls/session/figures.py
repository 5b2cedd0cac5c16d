"""What suggestions were worth, by the figures that others publish: counts by model."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

from mercury_ls.code.documents import Document
from mercury_ls.code.edits import applied
from mercury_ls.completion.offers import Offer
from mercury_ls.session.stats import Count, Kind, Row, Stats, total

CHECKS: tuple[tuple[float, Count, Count], ...] = (
    (30.0, "checked_half_minute", "kept_half_minute"),
    (300.0, "checked_five_minutes", "kept_five_minutes"),
)
MOST_FOLLOWED = 256
OTHERS = (
    "others: Meta: 22 % accepted of what was on the screen for 750 ms, 8 % of the code that was typed; Google: 25 to"
    " 34 % accepted of what was shown, for how long is not said, over 3 % of the new characters; Codeium: 1.27"
    " characters for each opportunity, which is each time that something could have been suggested, whether it was or"
    " not, and 45 % of the code: accepted / (accepted + typed) characters"
)


class _AcceptedText(Struct, frozen=True):
    """An accepted text, to be looked for when it is `due`."""

    due: float
    uri: str
    language: str
    kind: Kind
    text: str
    checked: Count
    kept: Count


class RetentionWatch:
    """Whether accepted texts are still there after half a minute and after five: as they were, blanks aside. Files that
    are closed by then are left out."""

    def __init__(self, stats: Stats, clock: Callable[[], float]) -> None:
        self._stats = stats
        self._clock = clock
        self._taken: list[_AcceptedText] = []

    def accepted(self, uri: str, language: str, text: str, kind: Kind = "inline") -> None:
        time, text = self._clock(), "".join(text.split())
        self._taken += [
            _AcceptedText(time + seconds, uri, language, kind, text, checked, kept)
            for seconds, checked, kept in CHECKS
            if text
        ]
        del self._taken[:-MOST_FOLLOWED]

    def made(self, offer: Offer) -> None:
        """Of a next edit, the lines that its first edit leaves."""
        edit = offer.edits[0]
        base, after = offer.base[edit.uri], applied(offer.base[edit.uri].text, [edit])
        start = base.line_start(base.line_of(edit.start))
        end = after.find("\n", edit.start + len(edit.text))
        self.accepted(edit.uri, base.language, after[start : end if end >= 0 else len(after)], "nextEdit")

    def look(self, documents: Mapping[str, Document]) -> None:
        time = self._clock()
        for acceptance in [acceptance for acceptance in self._taken if acceptance.due <= time]:
            self._taken.remove(acceptance)
            if document := documents.get(acceptance.uri):
                self._stats.add(acceptance.language, acceptance.kind, acceptance.checked)
                is_kept = acceptance.text in "".join(document.text.split())
                self._stats.add(acceptance.language, acceptance.kind, acceptance.kept, is_kept)


def comparable(rows: Sequence[Row]) -> Iterator[str]:
    """A line for the completions of each model with which something was typed, and one for its next edits; nothing if
    there is none."""
    models = sorted({row.model for row in rows if row.typed})
    for model in models:
        name, own = model or "unknown model", [row for row in rows if row.model == model]
        row = total(row for row in own if row.kind == "inline")
        yield (
            f"{name}: {row.typed:,} characters typed, {row.opportunities:,} opportunities; {_seen(row)}; "
            f"{_share(row.characters, row.characters + row.typed)} of the code, "
            f"{row.characters / max(row.opportunities, 1):.2f} characters an opportunity"
        )
        if edits := [row for row in own if row.kind == "nextEdit"]:
            yield f"{name}, next edits: {_seen(total(edits))}"
    if models:
        yield OTHERS


def _seen(row: Row) -> str:
    """What became of all that was seen."""
    return (
        f"{row.lingered:,} on the screen for 750 ms or accepted before, {_share(row.accepted, row.lingered)} of them "
        f"accepted; of these {_share(row.kept_half_minute, row.checked_half_minute)} still there after 30 s, "
        f"{_share(row.kept_five_minutes, row.checked_five_minutes)} after 5 min"
    )


def _share(part: int, whole: int) -> str:
    return f"{min(part / whole, 1.0):.0%}" if whole else "-"
