"""Requests and answers of the code endpoints: the document at /openapi.json is generated from these types."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from mercury_engine.api import Effort, Slot

MOST_CHOICES = 8

Tokens = Annotated[float, Meta(multiple_of=1, ge=1)]
"""Counts are floats without a fraction: some clients write 128.0, which is an integer in JSON schema."""

Stop = Annotated[str, Meta(max_length=1024)]
Stops = Stop | Annotated[list[Stop], Meta(max_length=16)]
"""OpenAI's API takes four; Continue sends twice as many."""

Milliseconds = Annotated[float, Meta(ge=1, le=60_000)]


class Usage(Struct, frozen=True):
    """Tokens of the engine; those of a prompt of code are estimated by the model's characters per token."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class Detail(Struct, frozen=True, omit_defaults=True):
    """An extension of mercury-ls: the probability that the user accepts this, the reason for silence, and the contents
    of each slot of a draft."""

    p_accept: float = 0.0
    silence: str = ""
    step: int = 0
    slots: tuple[Slot, ...] = ()


class CompletionRequest(Struct, frozen=True):
    """Fill a gap: the text before the cursor, and the text after it. The prompt may also use another model's tokens; it
    is then answered in that model's format."""

    prompt: Annotated[
        str | Annotated[list[str], Meta(min_length=1, max_length=MOST_CHOICES)],
        Meta(description="The text before the cursor; several texts each get their own choices. Text, not tokens."),
    ]
    suffix: Annotated[str | None, Meta(description="The text after the cursor.")] = None
    model: Annotated[str, Meta(description="Any name: one engine answers all.")] = ""
    max_tokens: Tokens | None = None
    stop: Stops | None = None
    n: Annotated[float, Meta(multiple_of=1, ge=1, le=MOST_CHOICES)] | None = None
    stream: bool | None = None
    diffusing: Annotated[bool, Meta(description="Each chunk of a stream is the whole draft.")] = False
    reasoning_effort: Effort | None = None
    deadline_ms: Milliseconds | None = None
    path: Annotated[str, Meta(description="The file's path in its project, if known.", max_length=4096)] = ""
    language: Annotated[str, Meta(description="The file's language id, if known.", max_length=64)] = ""
    invoked: Annotated[
        bool, Meta(description="Requested by hand: answered even where nothing is suggested while typing.")
    ] = False


class Choice(Struct, frozen=True, kw_only=True):
    index: int
    text: str
    finish_reason: Literal["stop", "length"] | None = None
    logprobs: None = None
    mercury: Detail | None = None


class CompletionResponse(Struct, frozen=True, kw_only=True):
    """`id` identifies the answer in feedback."""

    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[Choice]
    usage: Usage | None = None


class EditMessage(Struct, frozen=True, kw_only=True):
    role: Literal["user"] = "user"
    content: Annotated[
        str,
        Meta(
            description="The file with <|code_to_edit|> and <|cursor|>, viewed snippets, and the last edits as diffs.",
            extra_json_schema={"pattern": r"<\|code_to_edit\|>[\s\S]*<\|/code_to_edit\|>"},
        ),
    ]


class EditRequest(Struct, frozen=True, kw_only=True):
    """Rewrite what should change next."""

    messages: Annotated[list[EditMessage], Meta(min_length=1, max_length=1)]
    model: str = ""
    max_tokens: Tokens | None = None
    reasoning_effort: Effort | None = None
    deadline_ms: Milliseconds | None = None


class Rewritten(Struct, frozen=True, kw_only=True):
    role: Literal["assistant"] = "assistant"
    content: str


class EditChoice(Struct, frozen=True, kw_only=True):
    index: int = 0
    message: Rewritten
    finish_reason: Literal["stop"] = "stop"


class EditResponse(Struct, frozen=True, kw_only=True):
    """The content is the edited code in a fence, or "None" if no edit is due."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[EditChoice]
    usage: Usage


class Extra(Struct, frozen=True):
    text: str
    filename: str = ""


class InfillBody(Struct, frozen=True, kw_only=True):
    """llama.cpp's request: `prompt` is the text between the prefix and the cursor."""

    input_prefix: str = ""
    input_suffix: str = ""
    input_extra: list[Extra] = []
    prompt: str = ""
    n_predict: Annotated[float, Meta(multiple_of=1, ge=-1, description="0 only reads ahead.")] = -1
    n_cmpl: Annotated[float, Meta(multiple_of=1, ge=1, le=MOST_CHOICES)] = 1
    t_max_predict_ms: Annotated[float, Meta(ge=0, le=60_000)] = 0
    stop: Annotated[list[Stop], Meta(max_length=16)] = []
    response_fields: list[str] | None = None
    path: Annotated[str, Meta(max_length=4096)] = ""
    language: Annotated[str, Meta(max_length=64)] = ""


class InfillResponse(Struct, frozen=True, kw_only=True):
    """`response_fields` selects among these and the timings, which it names as `timings/predicted_ms`."""

    content: str = ""
    id: str = ""
    model: str = ""
    stop: bool = True
    truncated: bool = False
    tokens_cached: int = 0
    tokens_evaluated: int = 0
    tokens_predicted: int = 0
    timings: dict[str, float] = {}


class Feedback(Struct, frozen=True, kw_only=True):
    """`request_id` is the id of an answer; `characters` is how many of them were accepted, if not all."""

    request_id: str
    user_action: Literal["accept", "reject", "ignore"]
    characters: Annotated[float, Meta(multiple_of=1, ge=0, le=1 << 20)] | None = None


class Heard(Struct, frozen=True):
    """True for the first feedback on this answer."""

    counted: bool


class ModelCard(Struct, frozen=True, kw_only=True):
    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "mercury-ls"


class ModelList(Struct, frozen=True, kw_only=True):
    object: Literal["list"] = "list"
    data: list[ModelCard]


class Health(Struct, frozen=True):
    """Open to everybody who can connect, so it reveals nothing about the user or the model. `status` is "ok" once the
    engine answers."""

    status: Literal["ok", "loading", "error"]
    state: str
    protocol: int
    version: str
