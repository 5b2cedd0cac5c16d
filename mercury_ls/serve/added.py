"""Models that a user adds: their kind, from the small files of their folder, and their weights for the engine."""

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import Engine, EngineError
from mercury_engine.bounds import small_bytes
from mercury_engine.record import Kind, ModelRecord
from mercury_ls.serve.models import Report, loader, resources
from mercury_ls.settings.schema import Settings

if TYPE_CHECKING:
    from mercury_engine.families.family import Family
    from mercury_engine.remote.probe import ProbedServer

CHAT = "chat"
"""The protocol and prompt format of chat-only models."""
NEXT_EDITS, LINES = "next edits", "lines and blocks"
QUANTISED = "{} are quantised already ({}): add the model that they were made from, and choose --int8 or --int4"
FROM_QWEN = ("Qwen", "Dream", "SDAR", "Fast_dLLM")
"""Tokenizers, by the beginning of their class name, that split texts as Qwen's does."""


class ModelIdentity(Struct, frozen=True):
    """`answers` says in words what the model can do."""

    kind: Kind
    prompt: str
    architecture: str
    answers: str


def identify(folder: Path, name: str, prompt: str = "") -> ModelIdentity:
    """The kind of a model, from its config and tokenizer alone, so that unusable weights are not downloaded.

    `name` is the model's name at its source: some families differ in nothing else. `prompt` is the prompt format that
    the user gave.
    """
    config = _small_file(folder / "config.json")
    tokens = added_tokens(folder, config.get("vocab_size"))
    named = config.get("architectures")
    architecture = ", ".join(map(str, named)) if named and isinstance(named, list) else "not named"
    if quantised := config.get("quantization_config"):
        method = quantised.get("quant_method", "unknown") if isinstance(quantised, dict) else quantised
        raise EngineError(f"{name}: {QUANTISED.format('its weights', method)}")
    kind, prompt, answers = named_kind(prompt) if prompt else _found_kind(config, tokens, name, architecture)
    _check_architecture(folder / "config.json", config)
    return ModelIdentity(kind, prompt, architecture, answers)


def _found_kind(
    config: Mapping[str, Any], tokens: Collection[str], name: str, architecture: str
) -> tuple[Kind, str, str]:
    from mercury_engine.families.family import family_for
    from mercury_engine.prompts.dialects import dialect_for

    if family := family_for(config, tokens, name):
        return diffusion(family)
    if prompt := next_edit_format(name):
        return "next-edit", prompt, NEXT_EDITS
    if dialect := dialect_for(tokens, name):
        return "fim", dialect.name, LINES
    raise EngineError(
        f"{name} ({architecture}) was not trained to fill in the middle of a text: its tokenizer has no tokens for it; "
        "choose a base model for code: `mercury-ls model recommend`"
    )


def named_kind(prompt: str) -> tuple[Kind, str, str]:
    """The kind of a model whose prompts have this format, which must exist."""
    from mercury_engine.families.family import FAMILIES, family_named
    from mercury_engine.prompts.dialects import DIALECTS
    from mercury_engine.prompts.edits import FORMATS

    if family := family_named(prompt):
        return diffusion(family)
    if prompt in (dialects := [dialect.name for dialect in DIALECTS]):
        return "fim", prompt, LINES
    if prompt in (formats := [format_.name for format_ in FORMATS]):
        return "next-edit", prompt, NEXT_EDITS
    names = ", ".join([*dialects, *formats, *(family.name for family in FAMILIES)])
    if prompt == CHAT:
        raise EngineError(
            "--prompt chat is for servers, whose chat models propose next edits; a model that runs here chats by its "
            f"own template: leave --prompt out, or use one of {names}"
        )
    raise EngineError(f"--prompt: no such format as {prompt!r}; use one of {names}")


def diffusion(family: "Family") -> tuple[Kind, str, str]:
    return "diffusion", family.name, f"{LINES}, by diffusion"


def next_edit_format(name: str) -> str:
    """The prompt format of a next-edit model. It has the tokens and config of its base model: only its name tells."""
    from mercury_engine.prompts.edits import edit_format_for

    edit_format = edit_format_for(name)
    return edit_format.name if edit_format else ""


def _check_architecture(path: Path, config: Mapping[str, Any]) -> None:
    from mercury_engine.model.architectures import config_of

    config_of(path, dict(config), {}, 0)


def complete_tokenizer(folder: Path) -> None:
    """Write the `tokenizer.json` of a model published with its parts only."""
    if (folder / "tokenizer.json").exists() or not (folder / "merges.txt").exists():
        return
    from mercury_engine.tokens.byte_level import from_files

    kind = str(_small_file(folder / "tokenizer_config.json").get("tokenizer_class"))
    if not kind.startswith(FROM_QWEN):
        raise EngineError(f"{folder}: has no tokenizer.json, and mercury-ls does not know how a {kind} splits text")
    from_files(folder).save(str(folder / "tokenizer.json"))


def added_tokens(folder: Path, room: Any) -> frozenset[str]:
    """The tokenizer; an error if it is unusable or, where `room` is a number, has more tokens than the model."""
    from mercury_engine.tokens.pretrained import PretrainedTokenizer

    _small_file(path := folder / "tokenizer.json")
    tokenizer = PretrainedTokenizer(path)
    if isinstance(room, int) and tokenizer.vocabulary > room:
        raise EngineError(
            f"{path}: has {tokenizer.vocabulary} tokens, and config.json says {room}: they belong to different models; "
            "get the model again"
        )
    return tokenizer.added


def _small_file(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(small_bytes(path))
    except FileNotFoundError as error:
        raise EngineError(
            f"{path.parent} has no {path.name}: a model is a folder with config.json, tokenizer.json and .safetensors"
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise EngineError(f"{path}: cannot be read ({error}); get the model again") from error
    if not isinstance(config, dict):
        raise EngineError(f"{path}: is not a JSON object; get the model again")
    return config


def weigh(files: list[Path]) -> int:
    """The number of parameters in safetensors files; an error if their headers do not fit them."""
    from mercury_engine.model.stored import stored_tensors

    return sum(prod(tensor.shape) for path in files for tensor in stored_tensors(path, "get it again").values())


def stored(folder: Path) -> tuple[int, str]:
    """How many parameters a model of ours has, and in which precision most of them are stored."""
    from mercury_engine.model.config import read_config
    from mercury_engine.model.export import weight_files
    from mercury_engine.model.stored import stored_tensors

    files = weight_files(folder)
    kinds = {tensor.dtype for path in files for tensor in stored_tensors(path, "install it again").values()}
    return read_config(folder / "config.json").parameters, "int4" if "U8" in kinds else "int8"


def convert(source: Path, target: Path, record: ModelRecord, report: Report) -> None:
    """Convert the model in `source` for the engine, into the existing empty folder `target`."""
    from mercury_engine.model.convert import Precision
    from mercury_engine.model.convert import convert as into_own_format

    into_own_format(source, target, cast("Precision", record.precision), report)


def describe_gguf(file: Path, target: Path) -> int:
    """Write config and tokenizer of a GGUF file like those of any other model; return its number of parameters."""
    from mercury_engine.model import gguf

    return gguf.describe(file, target)


def write_gguf(file: Path, target: Path, report: Report) -> None:
    from mercury_engine.model import gguf

    gguf.write_weights(file, target, report)


def probe(record: ModelRecord) -> "ProbedServer":
    """The server at the record's address, after it has completed something; `EngineError` says what is wrong
    instead."""
    from mercury_engine.remote import probe

    server = probe.probe(record)
    if server is None:
        raise EngineError(f"nothing that can complete answers at {record.address}: start it, or check the address")
    if server.note:
        raise EngineError(f"{record.address} ({server.server}): {server.note}")
    return server


@contextmanager
def served(record: ModelRecord, network: bool) -> Iterator[Engine]:
    """The engine that queries a server before its model is added."""
    from mercury_engine.remote.engine import open_remote

    engine = open_remote(record, network=network)
    try:
        yield engine
    finally:
        engine.close()


@contextmanager
def made(folder: Path, record: ModelRecord, settings: Settings) -> Iterator[Engine]:
    """The engine of a model that is about to be added."""
    from mercury_engine.opening import open_added

    yield open_added(folder, record, resources(settings.engine))


def in_format(record: ModelRecord, prompt: str) -> ModelRecord:
    """The same model, asked in another format."""
    if record.kind == "server":
        return replace(record, prompt=prompt, protocol=CHAT if prompt == CHAT else record.protocol)
    return replace(record, prompt=prompt, kind=named_kind(prompt)[0])


def other_formats(record: ModelRecord) -> list[str]:
    """In which a model can be asked as well."""
    from mercury_engine.prompts.dialects import DIALECTS
    from mercury_engine.prompts.edits import FORMATS
    from mercury_engine.remote.protocols import protocol_named

    is_server = record.kind == "server"
    if record.kind == "diffusion" or (is_server and protocol_named(record.protocol).shape != "raw"):
        return []
    own = record.prompt.split("+")
    return [form.name for form in (*DIALECTS, *FORMATS) if form.name not in own] + ([CHAT] if is_server else [])


def asked_in(engine: Engine, record: ModelRecord, network: bool, prompt: str) -> AbstractContextManager[Engine]:
    """The engine that asks the model of another one in this format; a model in process is not loaded again."""
    if record.kind == "server":
        return served(in_format(record, prompt), network)
    from mercury_engine.autoregressive.engine import AutoregressiveEngine

    assert isinstance(engine, AutoregressiveEngine)
    return nullcontext(engine.in_format(in_format(record, prompt)))


def running() -> "list[ProbedServer]":
    """The servers running at their usual ports on this machine."""
    from mercury_engine.remote import probe

    return probe.running()


@contextmanager
def opened(name: str, settings: Settings, report: Report) -> Iterator[Engine]:
    """The engine of a model, for a command that needs it a few times. For a server, `EngineError` says why it is
    unusable."""
    engine = loader(replace(settings, engine=replace(settings.engine, model=name)))(report)
    try:
        info = engine.info()
        if info.engine == "server" and info.notes:
            raise EngineError(info.notes[0])
        yield engine
    finally:
        if close := getattr(engine, "close", None):
            close()
