"""What listens at an address: which kind of server, with which models, and whether it really completes."""

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import PROTOCOL_VERSION, EngineError
from mercury_engine.prompts.dialects import DIALECTS, dialect_for
from mercury_engine.prompts.edits import edit_format_for
from mercury_engine.prompts.pieces import split_into
from mercury_engine.record import ModelRecord
from mercury_engine.redaction import ForeignText
from mercury_engine.remote.access import client_for
from mercury_engine.remote.health import link_trouble
from mercury_engine.remote.http import HttpClient, LinkError
from mercury_engine.remote.protocols import (
    Ask,
    Events,
    WrongAnswerError,
    body,
    decoded,
    is_name,
    model_names,
    objects,
    protocol_named,
    text_at,
)

PORTS = (8080, 9931, 8012, 11434, 1234, 8000)
"""llama-server, old and new, the same for `/infill`, Ollama, LM Studio, and vLLM or llama-cpp-python."""

LOOK_SECONDS = 0.3
ANSWER_SECONDS = 3.0
COMPLETE_SECONDS = 60.0
"""The server may have to load the model first."""

MOST_CONTEXT = 1 << 24

WANTS_KEY = "it wants a key ({}): give it with --key or --header"

OLLAMA_CONTEXT = 8192
"""Its default of 4096 tokens leaves little room; another value loads the model anew, so it must always be the same."""


class Served(Struct, frozen=True):
    """A model of a server. `prompt` is the format of its prompts, "" if neither its tokens nor its name tell."""

    name: str
    prompt: str = ""
    context: int = 0


class ProbedServer(Struct, frozen=True):
    """`completes`: whether a token came back; None if that was not tried, because it would load one model of several.
    `note`: why not, or what is missing."""

    address: str
    server: str
    protocol: str
    models: tuple[Served, ...] = ()
    completes: bool | None = None
    note: str = ""


def probe(record: ModelRecord, *, seconds: float = ANSWER_SECONDS) -> ProbedServer | None:
    """What listens at the record's address: one that speaks its protocol, or whatever is known if it names none. Its
    model, or the only one, is asked for one token. None if nothing that is known answers; `EngineError` says what is in
    the way to it."""
    client = client_for(record, connect_seconds=seconds)
    try:
        server = _speaking(client, record, seconds) if record.protocol else _identified(client, record.address, seconds)
        if server is None or server.note:
            return server
        server = _named(client, server, record.model)
        chosen = next((served for served in server.models if served.name == record.model), None)
        if chosen is None and not (server.models if record.model else server.models[1:]):
            chosen = next(iter(server.models), Served(record.model))
        return server if chosen is None else _chosen(client, server, chosen, record)
    except LinkError as error:
        if error.kind in ("proxy", "certificate", "tls"):
            raise EngineError(link_trouble(record.address, error).sentence) from None
        return None
    finally:
        client.close()


def _speaking(client: HttpClient, record: ModelRecord, seconds: float) -> ProbedServer | None:
    """As the user says: only its models are asked for."""
    protocol = protocol_named(record.protocol)
    server = ProbedServer(record.address, f"a server spoken to as {protocol.name}", protocol.name)
    if not protocol.models:
        return server
    reply = client.fetch("GET", protocol.models, seconds=seconds)
    if reply.status in (401, 403):
        return replace(server, note=WANTS_KEY.format(reply.status))
    models = _models_of(_decoded(reply.body) if reply.status == 200 else None)
    if protocol.shape != "raw":
        models = tuple(replace(served, prompt="") for served in models)  # the server puts the prompts together
    if protocol.context:
        models = tuple(replace(served, context=OLLAMA_CONTEXT) for served in models)
    return replace(server, models=models)


def _way_of_asking(server: ProbedServer, chosen: Served, record: ModelRecord) -> str:
    """What says how a model is asked: the server, or the record."""
    prompt = next((served.prompt for served in server.models if served.name == chosen.name), "")
    return prompt or record.protocol or record.prompt


def _chosen(client: HttpClient, server: ProbedServer, chosen: Served, record: ModelRecord) -> ProbedServer:
    """With what is known of the model once it is loaded, and whether it completes."""
    if server.protocol == "llama" and not chosen.context:
        server, chosen = _loaded(client, server, chosen)
    if protocol_named(server.protocol).shape == "raw":
        server = _with_tokens(client, server, chosen)
    if server.protocol == "llama" and not _way_of_asking(server, chosen, record):
        server = replace(server, protocol="llama-infill")  # where nobody knows its prompts, llama-server may
    note = server.note or _completion_problem(client, server.protocol, chosen.name)
    return replace(server, completes=not note, note=note)


def _loaded(client: HttpClient, server: ProbedServer, chosen: Served) -> tuple[ProbedServer, Served]:
    """A llama-server that has several models says of each what it says of a single one, after it has loaded it."""
    path = f"/props?model={quote(chosen.name, safe='')}"
    reply = client.fetch("GET", path, seconds=COMPLETE_SECONDS)
    props = (_decoded(reply.body) if reply.status == 200 else None) or {}
    served = _served(chosen.name, _context_of(props), text_at(props, "model_path"))
    return replace(server, models=tuple(served if model == chosen else model for model in server.models)), served


def _named(client: HttpClient, server: ProbedServer, own: str = "") -> ProbedServer:
    """With those of its models whose names may be shown."""
    models = tuple(served for served in server.models if is_name(served.name, client.secrets, own))
    return replace(server, models=models)


def running(ports: tuple[int, ...] = PORTS, *, seconds: float = LOOK_SECONDS) -> list[ProbedServer]:
    """The servers of this machine at the ports that they usually have. No model is loaded by this."""

    def look(port: int) -> ProbedServer | None:
        client = HttpClient(f"http://127.0.0.1:{port}", connect_seconds=seconds)
        try:
            server = _identified(client, f"http://127.0.0.1:{port}", seconds)
            return server and _named(client, server)
        except LinkError:
            return None
        finally:
            client.close()

    with ThreadPoolExecutor(len(ports)) as pool:
        return [server for server in pool.map(look, ports) if server is not None]


def _identified(client: HttpClient, address: str, seconds: float) -> ProbedServer | None:
    """In an order in which none is taken for another: many servers imitate OpenAI's paths."""
    until = time.monotonic() + seconds
    for path, reading in READINGS:
        remaining = until - time.monotonic()
        if remaining <= 0:
            return None
        reply = client.fetch("GET", path, seconds=remaining)
        if reply.status in (401, 403) and path != "/props":
            return ProbedServer(address, "a server", "openai", note=WANTS_KEY.format(reply.status))
        decoded = _decoded(reply.body) if reply.status == 200 else None
        if decoded is not None and (server := reading(client, address, decoded, max(until - time.monotonic(), 0.05))):
            return server
    return None


def _decoded(data: bytes) -> dict[str, Any] | None:
    try:
        return decoded(data)
    except WrongAnswerError:
        return None


Reading = Callable[[HttpClient, str, Mapping[str, Any], float], ProbedServer | None]


def _llama_server(client: HttpClient, address: str, body: Mapping[str, Any], seconds: float) -> ProbedServer | None:
    if not isinstance(body.get("default_generation_settings"), dict):
        return None
    listed = _decoded(client.fetch("GET", "/v1/models", seconds=seconds).body)
    names = model_names(listed) or [text_at(body, "model_alias", "model_path")]
    models = tuple(_served(name, _context_of(body), text_at(body, "model_path")) for name in names)
    version = client.secrets.shown(ForeignText(text_at(body, "build_info")))
    return ProbedServer(address, f"llama-server {version}".strip(), "llama", models)


def _context_of(props: Mapping[str, Any]) -> int:
    """Of llama-server: 0 if it has several models, and this is said of none of them."""
    settings = props.get("default_generation_settings")
    return _number(settings.get("n_ctx")) if isinstance(settings, dict) else 0


def _ollama(client: HttpClient, address: str, body: Mapping[str, Any], seconds: float) -> ProbedServer | None:
    if not isinstance(body.get("version"), str):
        return None
    listed = _decoded(client.fetch("GET", "/api/tags", seconds=seconds).body)
    if listed is None or "models" not in listed:
        return None
    models = tuple(_served(name, OLLAMA_CONTEXT) for name in model_names(listed))
    version = client.secrets.shown(ForeignText(body["version"]))
    return ProbedServer(address, f"Ollama {version}", "ollama", models)


def _lm_studio(client: HttpClient, address: str, body: Mapping[str, Any], seconds: float) -> ProbedServer | None:
    listed = body.get("models")
    if not isinstance(listed, list):
        return None
    models = [model for model in objects(listed) if model.get("type", "llm") == "llm"]
    named = tuple(_served(text_at(model, "key"), _number(model.get("max_context_length"))) for model in models)
    return ProbedServer(address, "LM Studio", "openai", named)


def _tabby(client: HttpClient, address: str, body: Mapping[str, Any], seconds: float) -> ProbedServer | None:
    if not isinstance(body.get("model"), str):
        return None
    return ProbedServer(address, "Tabby", "tabby", (Served(body["model"]),))


def _openai(client: HttpClient, address: str, body: Mapping[str, Any], seconds: float) -> ProbedServer | None:
    if not isinstance(body.get("data"), list):
        return None
    return ProbedServer(address, "an OpenAI-compatible server", "openai", _models_of(body))


def _models_of(listed: Mapping[str, Any] | None) -> tuple[Served, ...]:
    entries = objects((listed or {}).get("data"))
    limits = {text_at(entry, "id"): _number(entry.get("max_model_len")) for entry in entries}
    return tuple(_served(name, limits.get(name, 0)) for name in model_names(listed))


def _mercury(client: HttpClient, address: str, body: Mapping[str, Any], seconds: float) -> ProbedServer | None:
    note = f"another engine server of mercury-ls: set engine.address = {address!r} instead of adding it"
    return ProbedServer(address, "mercury-ls serve", "mercury", note=note) if "state" in body else None


READINGS: tuple[tuple[str, Reading], ...] = (
    ("/props", _llama_server),
    ("/api/version", _ollama),
    ("/api/v1/models", _lm_studio),
    ("/v1/health", _tabby),
    ("/v1/models", _openai),
    (f"/engine/v{PROTOCOL_VERSION}/info", _mercury),
)


def _served(name: str, context: int = 0, path: str = "") -> Served:
    return Served(name, _prompt_of(name) or _prompt_of(path), context)


def _prompt_of(name: str) -> str:
    form = edit_format_for(name) or dialect_for((), name)
    return "" if form is None else form.name


def _number(value: Any) -> int:
    return value if type(value) is int and 0 < value <= MOST_CONTEXT else 0


def _with_tokens(client: HttpClient, server: ProbedServer, chosen: Served) -> ProbedServer:
    """The dialect by the special tokens that the model really has, where the server tells. Next-edit models have those
    of the models that they were made of; a file that splits them cannot be used."""
    if form := edit_format_for(chosen.name):
        return replace(server, note=_split_mark(_pieces(client, chosen.name, form.tokens), form.tokens))
    specials = sorted({token for dialect in DIALECTS for token in dialect.tokens})
    has = set(_pieces(client, chosen.name, specials)) & set(specials)
    dialect = dialect_for(has, chosen.name) if has else None
    if dialect is None:
        return server
    better = tuple(replace(model, prompt=dialect.name) if model == chosen else model for model in server.models)
    return replace(server, models=better)


def _pieces(client: HttpClient, model: str, marks: Sequence[str]) -> list[str]:
    """The tokens of these marks, each on a line of its own; none where the server does not tell."""
    text = "\n".join(marks)
    questions = {
        "model": model,
        "content": text,
        "add_special": False,
        "parse_special": True,
        "with_pieces": True,
        "prompt": text,
        "add_special_tokens": False,
        "return_token_strs": True,
    }
    reply = client.fetch("POST", "/tokenize", msgspec.json.encode(questions), seconds=ANSWER_SECONDS)
    body = (_decoded(reply.body) if reply.status == 200 else None) or {}
    pieces = body.get("token_strs") or body.get("tokens")
    texts = (text_at(piece, "piece") or piece for piece in pieces) if isinstance(pieces, list) else ()
    return [text for text in texts if isinstance(text, str)]


def _split_mark(pieces: Sequence[str], marks: Sequence[str]) -> str:
    """What is wrong with a file that has not all of these marks as tokens, as far as that is known."""
    text, ends = "".join(pieces), [*accumulate(map(len, pieces))]
    for mark in marks:
        start = text.find(mark)
        if start >= 0 and mark not in pieces:
            count = sum(start < end for end in ends) - sum(start + len(mark) < end for end in ends)
            return f"{mark} is no token: {split_into(count)}"
    return ""


def _completion_problem(client: HttpClient, protocol: str, model: str) -> str:
    """Why no token comes back; "" if one does."""
    spoken, secrets = protocol_named(protocol), client.secrets
    ask = Ask(prompt="x = ", suffix="\n", model=model, tokens=1, context=OLLAMA_CONTEXT, file="x.py", language="python")
    status = 0
    try:
        reply = client.fetch("POST", spoken.path, body(spoken, ask), seconds=COMPLETE_SECONDS)
        status = reply.status
        events = Events(reply.headers.get("content-type", ""))
        said = [*events.feed(reply.body), *events.finish()]
    except LinkError as error:
        return f"it does not complete: {error.detail}"
    except WrongAnswerError as error:
        return f"it does not complete: {error.told(secrets)}" if status == 200 else f"it does not complete ({status})"
    failed = secrets.shown(next((event.error for event in said if event.error), ForeignText()))
    return f"it does not complete ({reply.status}): {failed}" if failed or reply.status != 200 else ""
