"""What is known of a model that the user added: where it came from, and how to ask it. One small file in its folder."""

from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from mercury_engine.api import EngineError

__all__ = ["RECORD_FILE", "Kind", "ModelRecord", "read_record", "write_record"]

RECORD_FILE = "model.json"

Kind = Literal["fim", "next-edit", "diffusion", "server"]


class ModelRecord(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """`prompt` names the FIM dialect, the next-edit format or the diffusion family. Of a server: `protocol` is how to
    speak to it, `model` what it calls the model, and `key` where its key is: `env:NAME` or `keyring:SERVICE/NAME`,
    never the key itself. `headers` are sent with every request; their values are such places, or themselves. `ca`,
    `certificate` and `certificate_key` are PEM files: whom to trust, and who we are."""

    name: str
    kind: Kind
    prompt: str
    source: str = ""
    revision: str = ""
    licence: str = ""
    architecture: str = ""
    parameters: int = 0
    precision: str = ""
    context: int = 0
    protocol: str = ""
    address: str = ""
    model: str = ""
    key: str = ""
    headers: dict[str, str] = {}
    ca: str = ""
    certificate: str = ""
    certificate_key: str = ""
    local: str = ""
    """The name of the model on this machine that answers while a server has not."""


def read_record(folder: Path) -> ModelRecord | None:
    """None for a folder without one: a model of this project's own format."""
    path = folder / RECORD_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=ModelRecord)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise EngineError(f"{path}: {error}; add the model again: `mercury-ls model add`") from error


def write_record(record: ModelRecord, folder: Path) -> None:
    """For the user alone: headers may be secrets."""
    path = folder / RECORD_FILE
    path.touch(0o600)
    path.chmod(0o600)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n")
