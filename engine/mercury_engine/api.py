"""The boundary of the engine: frozen plain data and one protocol. The editor side imports hardly anything else."""

from collections.abc import Iterator
from typing import Literal, Protocol

from msgspec import Struct, field

__all__ = [
    "PROTOCOL_VERSION",
    "Draft",
    "Edit",
    "Effort",
    "Engine",
    "EngineError",
    "EngineInfo",
    "Filled",
    "InfillRequest",
    "Members",
    "RescoringWeights",
    "Snippet",
    "Span",
    "SpanMode",
    "Window",
]

PROTOCOL_VERSION = 1
"""Part of the socket's name, so that two installed versions never talk to each other."""

Effort = Literal["instant", "low", "medium", "high"]


class EngineError(Exception):
    """The request cannot be answered. The message says what is wrong and what to do about it."""


class Window(Struct, frozen=True):
    """A section of one file, from its line `first_line` on. Offsets into it count code points of `text`."""

    path: str
    language: str
    text: str
    first_line: int = 0


SpanMode = Literal["line", "block", "edit", "region"]
"""Insert up to the end of the line, insert a block, rewrite these lines, or rewrite what should change around the
cursor: a `region` is a whole window, of which a next-edit model chooses the lines that it rewrites."""


class Span(Struct, frozen=True):
    """A half-open range of a window that the model may rewrite; `start == end` inserts."""

    window: int
    start: int
    end: int
    mode: SpanMode
    budget: int = 64


class Snippet(Struct, frozen=True):
    """Related code, for reading only."""

    path: str
    text: str


class Edit(Struct, frozen=True):
    """A recent edit of the user: `before` became `after` at line `line` of `path`."""

    path: str
    line: int
    before: str
    after: str


class Members(Struct, frozen=True):
    """The names that exist behind `receiver` and a dot, and how often the file uses each there. The receiver "" is
    whatever the dot before the cursor follows. Unless they are `complete`, others may exist."""

    receiver: str
    names: tuple[str, ...]
    uses: tuple[int, ...]
    complete: bool = True


class InfillRequest(Struct, frozen=True, kw_only=True):
    """Paths are relative to the folder `root`, where it is given; the model never sees `root` itself. `cursor` is an
    offset in the first span's window, -1 where it is not known; a `region` needs it."""

    session: str
    windows: tuple[Window, ...]
    spans: tuple[Span, ...]
    snippets: tuple[Snippet, ...] = ()
    edits: tuple[Edit, ...] = ()
    members: tuple[Members, ...] = ()
    effort: Effort = "low"
    deadline_ms: float | None = None
    seed: int = 0
    root: str = ""
    cursor: int = -1

    def old(self, span: Span) -> str:
        """The text that a span replaces."""
        return self.windows[span.window].text[span.start : span.end]


class Filled(Struct, frozen=True):
    """The current text of one span; `confidence` has one entry per token, `complete` says that the model ended it."""

    text: str
    confidence: tuple[float, ...] = ()
    p_accept: float = 0.0
    complete: bool = False


class Draft(Struct, frozen=True):
    """The current text of every span after one forward. `sent` says what went to another program, and where."""

    step: int
    spans: tuple[Filled, ...]
    final: bool = False
    sent: str = ""


class RescoringWeights(Struct, frozen=True, forbid_unknown_fields=True):
    """How far the model's opinion of a next edit corrects the ranking by rules: coefficients of a logistic regression.

    The `own` coefficients are added for edits that only the model proposes. `bar` is the lowest probability to show an
    edit at, None to keep the ranking's. The model's probability exceeds `surest` for one in twenty of its edits. The
    defaults are cautious: a weak model must not silence the ranking.
    """

    bias: float = 0.0
    ranked: float = 1.0
    model: float = 0.0
    agreement: float = 0.0
    own: float = -1.0
    own_ranked: float = -0.5
    own_model: float = 0.9
    bar: float | None = None
    surest: float = 0.95


class EngineInfo(Struct, frozen=True):
    """Which engine answers, for `doctor`, the status and the demo.

    `batch`: how many concurrent requests it answers in about the time of one. `notes`: what is wrong at the moment, and
    the remedy. `bytes`: the memory of weights and caches. `rescoring`: None where the model has none fitted. `answers`:
    the spans that it can answer. `calibrated`: whether `p_accept` was fitted to what users accept. `address`: of the
    program that prompts are sent to, "" if they stay in this process. `small`: whether a larger model would be of use.
    """

    engine: str
    model: str
    device: str
    context_tokens: int
    characters_per_token: float = 3.5
    costs_ms: dict[str, float] = {}
    batch: int = 1
    notes: tuple[str, ...] = ()
    bytes: int = 0
    rescoring: RescoringWeights | None = field(default=None, name="worth")  # its key in protocol version 1
    answers: tuple[SpanMode, ...] = ("line", "block", "edit")
    calibrated: bool = True
    address: str = ""
    small: bool = False


class Engine(Protocol):
    def infill(self, request: InfillRequest) -> Iterator[Draft]:
        """Drafts of growing quality, the last one `final`. Each yield is a cancel point after at most one forward.

        Several generators may be open at once, and be resumed in any order.
        """
        ...

    def warm(self, request: InfillRequest) -> Iterator[None]:
        """Encode ahead, so that the next keystroke finds its context cached. Each yield is a cancel point."""
        ...

    def info(self) -> EngineInfo: ...
