"""The boundary of the engine: frozen plain data and one protocol. The editor side imports hardly anything else."""

from collections.abc import Callable, Generator
from typing import Annotated, ClassVar, Literal, Protocol

from msgspec import Meta, Struct

PROTOCOL_VERSION = 2
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


class Snippet(Struct, frozen=True):
    """Related code, for reading only."""

    path: str
    text: str


class Mention(Struct, frozen=True, order=True):
    """A line of a file, with its text."""

    path: str
    line: int
    text: str


LINES_AROUND = 4
"""Whole lines above an edit or a small region, and below it, that a model reads with it."""
MARGIN = 1
"""Lines on either side of the one that a model is asked about, which it may change as well."""


class Edit(Struct, frozen=True, omit_defaults=True):
    """A recent edit of the user: `before` became `after` at line `line` of `path`. `above` and `below` are up to
    `LINES_AROUND` lines around it, as they were at the time; `accepted` says that a suggestion made it. `mentions` are
    lines that hold the names which it changed, for models that were taught to read them."""

    path: str
    line: int
    before: str
    after: str
    above: str = ""
    below: str = ""
    accepted: bool = False
    mentions: tuple[Mention, ...] = ()

    @property
    def rows(self) -> range:
        """The lines that it left; one where it left none."""
        return range(self.line, self.line + self.after.count("\n") + (not self.after.endswith("\n")))

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
            mentions=tuple(Mention(line.path, line.line, change(line.text)) for line in self.mentions),
        )


Severity = Literal["error", "warning", "info", "hint"]


class Diagnostic(Struct, frozen=True):
    """A problem reported by another program at a place in a file; lines and columns begin at 0."""

    path: str
    line: int
    column: int
    message: str
    severity: Severity = "error"


class Members(Struct, frozen=True):
    """All members of what stands before a dot; the receiver "" is whatever stands before the cursor."""

    receiver: str
    names: tuple[str, ...]


class Context(Struct, frozen=True, kw_only=True):
    """What every question tells. Paths are relative to the folder `root`, where it is given; the model never sees
    `root` itself. `diagnostics` are for the next-edit models that were trained to read them."""

    session: str
    root: str = ""
    snippets: tuple[Snippet, ...] = ()
    edits: tuple[Edit, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    deadline_ms: float | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """Of the files that it asks about."""
        return ()


class Gap(Context, frozen=True, kw_only=True, tag=True):
    """Asks for what is missing between two texts of a file: up to the end of the line, or a `block` of lines.

    `members` end an answer before one that cannot exist. It is `invoked` if the user asks by hand.
    `bar`: how likely a completion has to be to be shown; an engine may give the beginning that is. `slots`: say what
    every slot of the draft holds. Each `seed` asks for another answer.
    """

    path: str
    language: str
    before: str
    after: str = ""
    block: bool = False
    most_tokens: int = 64
    members: tuple[Members, ...] = ()
    effort: Effort = "low"
    seed: int = 0
    invoked: bool = True
    bar: float = 0.0
    slots: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.path,)


class Region(Struct, frozen=True):
    """Lines of a file that may be rewritten, and lines around them for reading; `first_line` is the number of the first
    of all these."""

    path: str
    language: str
    old: str
    above: str = ""
    below: str = ""
    first_line: int = 0


class Regions(Context, frozen=True, kw_only=True, tag=True):
    """Asks what the user will make of these regions next. A next-edit model that was trained on one window gets the
    first region alone, and chooses the lines that it rewrites; the `cursor` is an offset in its old text."""

    regions: tuple[Region, ...]
    cursor: int

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(region.path for region in self.regions)


class Proposal(Struct, frozen=True):
    """A text that somebody proposes in the place of a region."""

    region: Region
    text: str


class Proposals(Context, frozen=True, kw_only=True, tag=True):
    """Asks how likely it is that the user makes these edits next."""

    proposals: tuple[Proposal, ...]

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(proposal.region.path for proposal in self.proposals)


Question = Gap | Regions | Proposals


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


class Draft(Struct, frozen=True, tag=True):
    """The current text of a gap after a forward; at `step` 0 the model has written nothing: `unread` counts the prompt
    tokens not read yet, if that is known. `confidence` has one entry per token, `complete` says that the model ended
    it. `slots` are given where the question asks for them. `sent` says what went to another program, and where."""

    step: int = 0
    text: str = ""
    confidence: tuple[Probability, ...] = ()
    p_accept: Probability = 0.0
    complete: bool = False
    final: bool = False
    slots: tuple[Slot, ...] = ()
    sent: str = ""
    unread: int = 0


class Rewritten(Struct, frozen=True):
    """The current text of a region: the old one until the new one is `complete`. `p_keep` is how likely it is that the
    old text stays, 0 if that is unknown. `refused` says what is wrong with an answer because of which it stays."""

    text: str
    confidence: tuple[Probability, ...] = ()
    p_accept: Probability = 0.0
    p_keep: Probability = 0.0
    complete: bool = False
    refused: str = ""


class Rewrites(Struct, frozen=True, tag=True):
    """The current texts of all regions after a forward; the rest is as in a `Draft`."""

    step: int
    regions: tuple[Rewritten, ...]
    final: bool = False
    sent: str = ""
    unread: int = 0


Likelihood = Annotated[float, Meta(le=1.0)]
"""A sum of the logarithms of probabilities."""


class Opinions(Struct, frozen=True, tag=True):
    """How likely the model finds each proposal, None while it has no opinion of it."""

    step: int
    likelihoods: tuple[Likelihood | None, ...]
    final: bool = False


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


class ChatRequest(Struct, frozen=True, kw_only=True, tag=True):
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


class ChatReply(Struct, frozen=True, tag=True):
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
    and the remedy. `bytes`: the memory of weights and caches. `fills`, `rewrites`, `judges`, `chats`: what it may be
    asked. `rewrites_lines`: whether it rewrites all lines of a region, and is only asked about the cursor's; else it
    chooses some of a window. `calibrated`: whether `p_accept` was fitted to this model. `bar`: how likely a completion
    whose probabilities are told has to be to be shown to a user who types.
    `address`: of the program that prompts are sent to, "" if they stay in this process. `strong`: whether its answers
    may be as long as it likes. `grows`: whether a draft only adds to the one before, so that its text can be shown;
    with `starts` it ends behind a word, and is judged for itself.
    `metered`: whether an answer may cost money. `reads_per_second`: the tokens of a prompt, 0 if unknown.
    `awaited_tokens`: those that an answer at a new place waits for, 0 for all. `first_line_ms`: until the first line
    there, 0 if unknown. `prompts` counts the tokens of prompts so far: `reused`, `awaited`, and read `ahead`.
    """

    engine: str
    model: str
    device: str
    context_tokens: int
    characters_per_token: float = 3.5
    batch: int = 1
    notes: tuple[str, ...] = ()
    bytes: int = 0
    fills: bool = True
    rewrites: bool = False
    rewrites_lines: bool = False
    judges: bool = False
    chats: bool = False
    calibrated: bool = True
    bar: Probability = 0.78
    address: str = ""
    strong: bool = False
    grows: bool = False
    starts: bool = False
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
    """Each method that answers is a generator of growing answers, the last one `final`. Each yield is a cancel point
    after at most one forward. Several generators may be open at once, and be resumed in any order.

    An engine lacks the methods that its `info` does not name.
    """

    def fill(self, gap: Gap) -> Generator[Draft]:
        raise _lacking(self, "does not complete code")

    def rewrite(self, regions: Regions) -> Generator[Rewrites]:
        raise _lacking(self, "does not propose next edits")

    def judge(self, proposals: Proposals) -> Generator[Opinions]:
        raise _lacking(self, "does not judge edits")

    def warm(self, question: Gap | Regions) -> Generator[None]:
        """Encode ahead, so that the next keystroke finds its context cached. Each yield is a cancel point."""
        ...

    def info(self) -> EngineInfo: ...


class ChatEngine(Engine, Protocol):
    """An engine whose `info` says that it `chats`."""

    def chat(self, request: ChatRequest) -> Generator[ChatReply]: ...


def _lacking(engine: Engine, task: str) -> EngineError:
    return EngineError(f"{engine.info().model} {task}; choose another model for it: `mercury-ls model list`")
