"""The record of an added model: where it came from, and how to query it. One small file in its folder."""

from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from mercury_engine.api import EngineError

RECORD_FILE = "model.json"

Kind = Literal["fim", "next-edit", "diffusion", "server"]


class ModelRecord(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """`prompt` names the FIM dialect, the next-edit format or the diffusion family. For a server: `protocol` is its
    API, `model` its name for the model, and `key` says where its key is: `env:NAME` or `keyring:SERVICE/NAME`, never
    the key itself. `headers` are sent with every request; their values are such places, or literal. `ca`,
    `certificate` and `certificate_key` are PEM files: whom to trust, and our identity."""

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

    @property
    def proposes_next_edits(self) -> bool:
        """Servers are asked in whichever format they know."""
        return self.kind in ("next-edit", "server")


def read_record(folder: Path) -> ModelRecord | None:
    """The record; None for a folder without one: a model of this project's own format."""
    path = folder / RECORD_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=ModelRecord)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise EngineError(f"{path}: {error}; add the model again: `mercury-ls model add`") from error


def write_record(record: ModelRecord, folder: Path) -> None:
    """Write the record for the user alone: headers may be secrets."""
    path = folder / RECORD_FILE
    path.touch(0o600)
    path.chmod(0o600)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n")
