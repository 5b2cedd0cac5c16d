"""The boundary of the engine: frozen plain data and one protocol. The editor side imports hardly anything else."""

from collections.abc import Callable, Generator
from typing import Annotated, ClassVar, Literal, Protocol

from msgspec import Meta, Struct

PROTOCOL_VERSION = 1
"""Part of the socket's name, so that two installed versions never talk to each other."""

Effort = Literal["instant", "low", "medium", "high"]

Finish = Literal["", "stop", "length", "tool_calls"]
"""The reason why an answer ended; empty while it grows."""


WITHOUT_OPENVINO = (
    "OpenVINO, which runs models on the CPU, is not installed: run `pip install openvino`; "
    "where there is none for your system, name a server with `mercury-ls model add http://127.0.0.1:8080` and "
    "`mercury-ls model use`"
)


class EngineError(Exception):
    """The request cannot be answered. The message says what is wrong and what to do about it."""

    kind: ClassVar[Literal["engine", "request", "length"]] = "engine"


class RequestError(EngineError):
    """The request itself is at fault and can never be answered."""

    kind = "request"


class TooLongError(RequestError):
    """The text is longer than the model reads, or than there is memory for."""

    kind = "length"


class Window(Struct, frozen=True):
    """A section of one file, from its line `first_line` on. Offsets into it count code points of `text`."""

    path: str
    language: str
    text: str
    first_line: int = 0


SpanMode = Literal["line", "block", "edit", "region", "proposal"]
"""Insert up to the end of the line, insert a block, rewrite these lines, or rewrite what should change around the
cursor: a `region` is a whole window, of which a next-edit model chooses the lines that it rewrites. Of a `proposal` the
text is given: the answer is how likely it is that the user makes this of these lines next."""


class Span(Struct, frozen=True):
    """A half-open range of a window that the model may rewrite; `start == end` inserts. `text` is what is proposed
    there."""

    window: int
    start: int
    end: int
    mode: SpanMode
    budget: int = 64
    text: str = ""


class Snippet(Struct, frozen=True):
    """Related code, for reading only."""

    path: str
    text: str


class Edit(Struct, frozen=True, omit_defaults=True):
    """A recent edit of the user: `before` became `after` at line `line` of `path`. `above` and `below` are up to
    three whole lines around it, as they were at the time; `accepted` says that a suggestion made it."""

    path: str
    line: int
    before: str
    after: str
    above: str = ""
    below: str = ""
    accepted: bool = False

    def with_texts(self, change: Callable[[str], str]) -> "Edit":
        """The edit with each of its texts changed."""
        return Edit(
            self.path,
            self.line,
            before=change(self.before),
            after=change(self.after),
            above=change(self.above),
            below=change(self.below),
            accepted=self.accepted,
        )


Severity = Literal["error", "warning", "info", "hint"]


class Diagnostic(Struct, frozen=True):
    """A problem reported by another program at a place in a file; lines and columns begin at 0."""

    path: str
    line: int
    column: int
    message: str
    severity: Severity = "error"


NameRole = Literal["member", "scope", "keyword", "import"]
NameKind = Literal["", "function", "class", "module", "property", "variable", "parameter", "constant", "keyword"]


class Members(Struct, frozen=True):
    """The names that exist at a place of one `role`, and how often the file uses each there. Unless they are
    `complete`, others may exist.

    Of a `member` the `receiver` is what stands before the dot, of a `keyword` the function that is called, of an
    `import` the module; the receiver "" is whatever stands before the cursor. A `scope` name may begin an expression;
    it has no receiver.
    """

    receiver: str
    names: tuple[str, ...]
    uses: tuple[int, ...]
    complete: bool = True
    role: NameRole = "member"


class InfillRequest(Struct, frozen=True, kw_only=True):
    """Paths are relative to the folder `root`, where it is given; the model never sees `root` itself. `cursor` is an
    offset in the first span's window, -1 where it is not known; a `region` needs it. `slots`: say what every slot of
    the draft holds. Unless it is `invoked`, no forward is spent on `members`: they only end an answer before one that
    cannot exist. `bar`: how likely a completion has to be to be shown; an engine may give the beginning that is.
    `diagnostics` are for the next-edit models that were trained to read them."""

    session: str
    windows: tuple[Window, ...]
    spans: tuple[Span, ...]
    snippets: tuple[Snippet, ...] = ()
    edits: tuple[Edit, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    members: tuple[Members, ...] = ()
    slots: bool = False
    invoked: bool = True
    bar: float = 0.0
    effort: Effort = "low"
    deadline_ms: float | None = None
    seed: int = 0
    root: str = ""
    cursor: int = -1

    @property
    def proposes(self) -> bool:
        """Whether it asks for an opinion alone."""
        return any(span.mode == "proposal" for span in self.spans)

    def old(self, span: Span) -> str:
        """The text that a span replaces."""
        return self.windows[span.window].text[span.start : span.end]


Probability = Annotated[float, Meta(ge=0.0, le=1.001)]
"""As another process may tell it: no NaN, which no bar keeps out, and no more over one than sums of floats are."""


class Slot(Struct, frozen=True):
    """The content of one position of a draft after a forward: the text of its token, "" while it is masked, and the
    model's probability of it. It is `settled` once no later forward changes it; `revised` says that an earlier
    forward had another token there."""

    text: str
    probability: Probability = 0.0
    settled: bool = False
    revised: bool = False


class Filled(Struct, frozen=True):
    """The current text of one span; `confidence` has one entry per token, `complete` says that the model ended it.
    `slots` are given where the request asks for them. `refused` says what is wrong with an answer because of which the
    old text stays."""

    text: str
    confidence: tuple[Probability, ...] = ()
    p_accept: Probability = 0.0
    complete: bool = False
    slots: tuple[Slot, ...] = ()
    refused: str = ""


class Draft(Struct, frozen=True):
    """The current text of every span after one forward; `step` 0 is the old text, while the model has written nothing:
    `unread` counts the prompt tokens not read yet, if that is known. `sent` says what went to another program, and
    where."""

    step: int
    spans: tuple[Filled, ...]
    final: bool = False
    sent: str = ""
    unread: int = 0


class ToolCall(Struct, frozen=True):
    """A call of a tool; the `arguments` are JSON."""

    id: str
    name: str
    arguments: str


class Tool(Struct, frozen=True):
    """A tool that a model may call; `parameters` is a JSON schema, as JSON."""

    name: str
    description: str = ""
    parameters: str = '{"type": "object"}'


class Message(Struct, frozen=True):
    """One message of a conversation; one of the role "tool" answers the call `answers`."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str = ""
    calls: tuple[ToolCall, ...] = ()
    answers: str = ""


class ChatRequest(Struct, frozen=True, kw_only=True):
    """Asks for the next message of a conversation. `tool_choice` is "auto", "none", "required" or the name of a
    tool. With a `schema`, which is JSON schema as JSON, the answer is JSON that matches it; "{}" is any JSON. The
    text ends before the first of `stops`."""

    session: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    tool_choice: str = "auto"
    schema: str = ""
    stops: tuple[str, ...] = ()
    most_tokens: int = 512
    temperature: float = 0.0
    effort: Effort = "medium"
    deadline_ms: float | None = None
    seed: int = 0
    slots: bool = False


class ChatReply(Struct, frozen=True):
    """The whole answer after one forward: replace the previous one, since any of it may have been revised. The text
    is `settled` up to that offset. `finish` says why the final answer ended."""

    step: int
    text: str
    settled: int = 0
    calls: tuple[ToolCall, ...] = ()
    final: bool = False
    finish: Finish = ""
    prompt_tokens: int = 0
    answer_tokens: int = 0
    slots: tuple[Slot, ...] = ()


SLOWEST_FIRST_LINE_MS = 4000.0
"""At a place that the model has not read. Where the user types on, a line then takes a fifth of that: one pause in
seven is longer (docs/log/2026-Q4.md)."""


class EngineInfo(Struct, frozen=True):
    """Describes the engine, for `doctor`, the status and the demo.

    `batch`: how many concurrent requests it answers in about the time of one. `notes`: what is wrong at the moment,
    and the remedy. `bytes`: the memory of weights and caches. `answers`: the spans that it can answer. `calibrated`:
    whether `p_accept` was fitted to this model. `bar`: how likely a completion whose probabilities are told has to be
    to be shown to a user who types.
    `address`: of the program that prompts are sent to, "" if they stay in this process. `chats`: whether it answers a
    `ChatRequest`. `strong`: whether its answers may be as long as it likes. `grows`: whether a draft only adds to the
    one before, so that its text can be shown. `metered`: whether an answer may cost money. `reads_per_second`: the
    tokens of a prompt, 0 if unknown. `awaited_tokens`: those that an answer at a new place waits for, 0 for all.
    `first_line_ms`: until the first line there, 0 if unknown. `prompts` counts the tokens of prompts so far: `reused`,
    `awaited`, and read `ahead`.
    """

    engine: str
    model: str
    device: str
    context_tokens: int
    characters_per_token: float = 3.5
    batch: int = 1
    notes: tuple[str, ...] = ()
    bytes: int = 0
    answers: tuple[SpanMode, ...] = ("line", "block", "edit")
    calibrated: bool = True
    bar: Probability = 0.78
    address: str = ""
    chats: bool = False
    strong: bool = False
    grows: bool = False
    metered: bool = False
    reads_per_second: float = 0.0
    first_line_ms: float = 0.0
    awaited_tokens: int = 0
    prompts: dict[str, int] = {}

    @property
    def follows_typing(self) -> bool:
        """Whether its lines come soon enough for somebody who types on."""
        return self.first_line_ms <= SLOWEST_FIRST_LINE_MS

    def reading_ms(self, tokens: int) -> float:
        """How long that takes, 0 if unknown."""
        return 1000 * tokens / self.reads_per_second if self.reads_per_second else 0.0


class Engine(Protocol):
    def infill(self, request: InfillRequest) -> Generator[Draft]:
        """Drafts of growing quality, the last one `final`. Each yield is a cancel point after at most one forward.

        Several generators may be open at once, and be resumed in any order.
        """
        ...

    def warm(self, request: InfillRequest) -> Generator[None]:
        """Encode ahead, so that the next keystroke finds its context cached. Each yield is a cancel point."""
        ...

    def info(self) -> EngineInfo: ...


class ChatEngine(Engine, Protocol):
    """An engine whose `info` says that it `chats`."""

    def chat(self, request: ChatRequest) -> Generator[ChatReply]:
        """Growing and revised answers, the last one `final`. Each yield is a cancel point after at most one forward."""
        ...
