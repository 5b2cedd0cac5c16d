"""Every model at a glance: those of packages, those that were added, and servers that run on this machine."""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from mercury_engine import model_folders
from mercury_engine.record import ModelRecord
from mercury_ls.models import library
from mercury_ls.models.hub import megabytes
from mercury_ls.serve import added
from mercury_ls.settings.schema import Settings
from mercury_ls.wording import columns, millions, one_line

UNKNOWN = "–"
COLUMNS = ("", "model", "kind", "parameters", "licence", "precision", "memory", "suggestion", "from")
KINDS = {"fim": "completions", "next-edit": "next edits"}


class ModelRow(Struct, frozen=True, kw_only=True):
    """`memory` in bytes and `warm_ms` are 0 until `model test` has measured them. A server that was found has an
    `address` and is not added."""

    name: str
    kind: str
    source: str
    in_use: bool = False
    is_added: bool = False
    parameters: int = 0
    licence: str = ""
    precision: str = ""
    address: str = ""
    memory: int = 0
    cold_ms: float = 0.0
    warm_ms: float = 0.0


OURS = ModelRow(name="", kind="diffusion", source="ships with mercury-ls", licence="Apache-2.0")


def rows(settings: Settings) -> list[ModelRow]:
    """`in_use` is what the settings name, unless they name an engine elsewhere."""
    chosen = _chosen(settings)
    rows = [*map(_shipped, model_folders.shipped().values()), *map(_of_record, library.records().values())]
    for at, row in enumerate(rows):
        costs = library.measurements().get(row.name, library.MeasuredSpeed())
        in_use = chosen is not None and chosen.name == row.name
        rows[at] = replace(row, in_use=in_use, memory=costs.memory, cold_ms=costs.cold_ms, warm_ms=costs.warm_ms)
    addresses = {record.address for record in library.records().values()}
    return [*rows, *(_of_server(server) for server in added.running() if server.address not in addresses)]


def _chosen(settings: Settings) -> Path | None:
    name = settings.engine.model
    is_none_installed = name == model_folders.AUTO and not model_folders.shipped()
    return None if settings.engine.address or is_none_installed else model_folders.resolve(name)


def _shipped(folder: Path) -> ModelRow:
    parameters, precision = added.stored(folder)
    return replace(OURS, name=folder.name, parameters=parameters, precision=precision)


def _of_record(record: ModelRecord) -> ModelRow:
    return ModelRow(
        name=record.name,
        kind=record.kind,
        source=record.source or record.address,
        is_added=True,
        parameters=record.parameters,
        licence=record.licence,
        precision=record.precision,
        address=record.address,
    )


def _of_server(server: "added.ProbedServer") -> ModelRow:
    names = ", ".join(model.name for model in server.models) or "its own model"
    return ModelRow(name=f"({names})", kind="server", source=f"running: {server.server}", address=server.address)


def table(rows: Sequence[ModelRow]) -> str:
    lines = columns([COLUMNS, *([*map(one_line, _cells(row))] for row in rows)])
    running = [row.address for row in rows if row.address and not row.is_added]
    if running:
        lines += ["", f"`mercury-ls model add {running[0]}` adds a running server"]
    if len(running) == len(rows):
        lines += ["", model_folders.NO_MODEL]
    return "\n".join(lines)


def _cells(row: ModelRow) -> tuple[str, ...]:
    return (
        "*" if row.in_use else " ",
        row.name,
        KINDS.get(row.kind, row.kind),
        f"{millions(row.parameters)} M" if row.parameters else UNKNOWN,
        row.licence or UNKNOWN,
        row.precision or UNKNOWN,
        megabytes(row.memory) if row.memory else UNKNOWN,
        f"{row.warm_ms:,.0f} ms" if row.warm_ms else UNKNOWN,
        f"{row.source} {row.address}".strip() if row.address not in row.source else row.source,
    )
