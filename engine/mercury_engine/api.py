"""The engine boundary: frozen plain data and one Protocol, the only part of the engine that the editor side imports."""

from collections.abc import Iterator
from typing import Literal, Protocol

from msgspec import Struct

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
    "Snippet",
    "Span",
    "Window",
    "Worth",
]

PROTOCOL_VERSION = 1
"""Part of the socket's name: two installed versions never talk past each other."""

Effort = Literal["instant", "low", "medium", "high"]


class EngineError(Exception):
    """The request cannot be answered. The message names what was wrong and what to do about it."""


class Window(Struct, frozen=True):
    """A piece of one file. Offsets into it are code points of `text`."""

    path: str
    language: str
    text: str


class Span(Struct, frozen=True):
    """A half-open range of a window that the model may rewrite; `start == end` inserts."""

    window: int
    start: int
    end: int
    mode: Literal["line", "block", "edit"]
    budget: int = 64


class Snippet(Struct, frozen=True):
    """Related code, read and never rewritten."""

    path: str
    text: str


class Edit(Struct, frozen=True):
    """What the user did a moment ago: `before` became `after` at line `line` of `path`."""

    path: str
    line: int
    before: str
    after: str


class InfillRequest(Struct, frozen=True, kw_only=True):
    """Paths lie in the folder `root`, where it is given; a model sees nothing of what is above it."""

    session: str
    windows: tuple[Window, ...]
    spans: tuple[Span, ...]
    snippets: tuple[Snippet, ...] = ()
    edits: tuple[Edit, ...] = ()
    effort: Effort = "low"
    deadline_ms: float | None = None
    seed: int = 0
    root: str = ""


class Filled(Struct, frozen=True):
    """One span as it stands; `confidence` has one entry per token, `complete` says that the model ended it."""

    text: str
    confidence: tuple[float, ...] = ()
    p_accept: float = 0.0
    complete: bool = False


class Draft(Struct, frozen=True):
    """Every span as it stands after one forward."""

    step: int
    spans: tuple[Filled, ...]
    final: bool = False


class Worth(Struct, frozen=True, forbid_unknown_fields=True):
    """What a model's word on an edit counts beside a ranking that knows none: coefficients of a logistic regression;
    `own` and what begins so come on top for edits that only the model proposes.

    `bar` is the least chance of what is shown then, None to leave it as it is; the model is as sure as `surest` of one
    in twenty of its edits. The defaults are a cautious guess: a weak model must not silence the ranking.
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
    """Who answers: shown by `doctor`, by the status and by the demo.

    `batch`: how many requests the engine answers in about the time of one, as long as they take turns.
    `notes`: what is amiss at the moment, and the remedy. `bytes`: what weights and caches take. `worth`: what the
    model's word on edits counts, where that was fitted.
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
    worth: Worth | None = None


class Engine(Protocol):
    def infill(self, request: InfillRequest) -> Iterator[Draft]:
        """Drafts of growing quality, the last one `final`. Each yield is a cancel point after at most one forward.

        Several may be open, and be asked in any order.
        """
        ...

    def warm(self, request: InfillRequest) -> Iterator[None]:
        """Encode ahead, so that the first keystroke finds a cache. Each yield is a point to stop at."""
        ...

    def info(self) -> EngineInfo: ...
