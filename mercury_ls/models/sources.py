"""What a user may name as the source of a model, and what is meant by it."""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from mercury_engine import model_folders
from mercury_engine.api import EngineError
from mercury_ls.models import places

HUB_ID = re.compile(r"(?:hf:)?([A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)")
HUB_PAGE = re.compile(r"https://(?:www\.)?huggingface\.co/([A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)/?")
ADDRESS = re.compile(r"https?://((?:\[[0-9a-fA-F:.]+\]|[^\s\[\]/:@?#]+)(?::[0-9]{1,5})?)(?:/[^\s@?#]*)?")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
PLACE = re.compile(r"env:.+|keyring:.+/.+")
HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)[ \t]*")
OWN_HEADERS = ("connection", "content-length", "content-type", "host", "transfer-encoding")
OLLAMA = "http://127.0.0.1:11434"
FORMS = (
    "a hub id such as Qwen/Qwen2.5-Coder-0.5B, a folder (./model), a .gguf file, the address of a server "
    "(http://127.0.0.1:8080, ollama:MODEL), mistral, deepseek or inception"
)


class Hub(Struct, frozen=True):
    """`ORGANISATION/NAME` on the hub."""

    id: str


class ServerSource(Struct, frozen=True):
    """`model` "" is the one that the server has. An empty `protocol` is found out by asking the server."""

    address: str
    model: str = ""
    protocol: str = ""
    key: str = ""


Source = Hub | Path | ServerSource
"""A path is that of a folder or of a GGUF file."""

HOSTED = {
    "mistral": ServerSource("https://api.mistral.ai", "codestral-latest", "mistral", "env:MISTRAL_API_KEY"),
    "deepseek": ServerSource("https://api.deepseek.com", "deepseek-v4-flash", "deepseek", "env:DEEPSEEK_API_KEY"),
    "inception": ServerSource("https://api.inceptionlabs.ai", "mercury-edit-2", "inception", "env:INCEPTION_API_KEY"),
}
"""Providers by their short names, with the model and the key that `--model` and `--key` may replace."""


def parse(text: str) -> tuple[Source, str]:
    """What the text names, and the name that the model gets if the user gives none.

    `ORGANISATION/NAME` is always the hub's: a folder is written so that it cannot be mistaken for one.
    """
    if text in HOSTED:
        return HOSTED[text], text
    if text.startswith("ollama:"):
        model = text.removeprefix("ollama:")
        return ServerSource(OLLAMA, model, "ollama"), _named(f"ollama-{model}")
    if match := HUB_PAGE.fullmatch(text) or HUB_ID.fullmatch(text):
        return Hub(match[1]), _named(match[1].partition("/")[2])
    if match := ADDRESS.fullmatch(text):
        return ServerSource(text.rstrip("/")), _named(match[1])
    if re.match("https?://.*[@?#]", text):
        raise EngineError("a key does not belong into an address: give its place with --key env:NAME")
    path = Path(text).expanduser()
    if text and path.is_dir():
        return path.resolve(), _named(path.resolve().name)
    if path.is_file() and path.suffix.lower() == ".gguf":
        return path.resolve(), _named(path.stem)
    if _is_path(text):
        wrong = "is neither a folder nor a .gguf file" if path.exists() else "does not exist"
        raise EngineError(f"{text} {wrong}: give {FORMS}")
    raise EngineError(f"{text!r} is no source of a model: give {FORMS}")


def _is_path(text: str) -> bool:
    """Whether it can only be meant as a path."""
    return (
        text.startswith((".", "~", "/", "\\"))
        or text.lower().endswith((".gguf", ".safetensors"))
        or os.path.isabs(text)
    )


def _named(text: str) -> str:
    """A name like the text, of the characters that names have."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._").lower()[:100] or "model"


def checked_name(name: str, names: Iterable[str]) -> str:
    if not NAME.fullmatch(name):
        raise EngineError(f"{name!r} is no name for a model: use letters, digits, `.`, `_` and `-`, at most 100")
    places.check([name])
    other = next(
        (other for other in (model_folders.AUTO, model_folders.FAKE, *names) if other.lower() == name.lower()), None
    )
    if other:
        raise EngineError(
            f"{other} is the name of an installed model: give another one with --name, or remove it first with "
            f"`mercury-ls model remove {other}`"
        )
    return name


def checked_headers(lines: Sequence[str]) -> dict[str, str]:
    """From `Name: value`. What is wrong is said without the value."""
    headers: dict[str, str] = {}
    for line in lines:
        match = HEADER.fullmatch(line)
        name = match[1] if match else line.partition(":")[0][:40]
        if match is None:
            raise EngineError(f"--header {name!r}: write it as 'Name: value', in ASCII, or 'Name: env:VARIABLE'")
        if name.lower() in (*OWN_HEADERS, *map(str.lower, headers)):
            raise EngineError(f"--header {name}: it is sent already: leave it out")
        headers[name] = match[2]
    return headers


def checked_file(option: str, path: str) -> str:
    """The same file from everywhere; "" for none."""
    file = Path(path).expanduser().absolute()
    if path and not file.is_file():
        raise EngineError(f"{option} {path}: there is no such file: give one with PEM certificates")
    return str(file) if path else ""
