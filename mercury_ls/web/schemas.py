"""What requests and answers of the code endpoints look like: the document at /openapi.json is made from these types."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

__all__ = [
    "Choice",
    "CompletionRequest",
    "CompletionResponse",
    "Detail",
    "Health",
    "ModelCard",
    "ModelList",
    "Usage",
]

MOST_CHOICES = 8
MOST_TOKENS = 8192


class Usage(Struct, frozen=True):
    """Tokens of the engine; those of a prompt of code are estimated by the model's characters per token."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class Detail(Struct, frozen=True, omit_defaults=True):
    """What only mercury-ls says: how likely it is that the user takes this, and why there is nothing."""

    p_accept: float = 0.0
    silence: str = ""
    step: int = 0


class CompletionRequest(Struct, frozen=True):
    """Fill a gap: the text before the cursor, and the text after it. The prompt may also be one of a model with its own
    tokens; it is then answered as that model would."""

    prompt: Annotated[str, Meta(description="The text before the cursor.")]
    suffix: Annotated[str | None, Meta(description="The text after the cursor.")] = None
    model: Annotated[str, Meta(description="Any name: one engine answers.")] = ""
    max_tokens: Annotated[int, Meta(ge=1, le=MOST_TOKENS)] | None = None
    stop: str | list[str] | None = None
    n: Annotated[int, Meta(ge=1, le=MOST_CHOICES)] | None = None
    stream: bool | None = None
    diffusing: Annotated[bool, Meta(description="Each chunk of a stream is the whole draft.")] = False
    reasoning_effort: Literal["instant", "low", "medium", "high"] | None = None
    deadline_ms: Annotated[float, Meta(ge=1, le=60_000)] | None = None
    path: Annotated[str, Meta(description="The file's path in its project, if known.", max_length=4096)] = ""
    language: Annotated[str, Meta(description="The file's language id, if known.", max_length=64)] = ""
    invoked: Annotated[
        bool, Meta(description="Asked for by hand: answered even where nothing is suggested while typing.")
    ] = False


class Choice(Struct, frozen=True, kw_only=True):
    index: int
    text: str
    finish_reason: Literal["stop", "length"] | None = None
    logprobs: None = None
    mercury: Detail | None = None


class CompletionResponse(Struct, frozen=True, kw_only=True):
    """`id` is what feedback names."""

    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[Choice]
    usage: Usage | None = None


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
