"""Adds a model: what it is and what it costs is known, and confirmed by the user, before its weights are loaded."""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from mercury_engine import model_folders
from mercury_engine.addresses import is_here, why_not
from mercury_engine.api import Engine, EngineError
from mercury_engine.record import ModelRecord
from mercury_ls.link import local
from mercury_ls.models import canary, library, places
from mercury_ls.models.hub import megabytes
from mercury_ls.models.sources import (
    HOSTED,
    PLACE,
    Hub,
    ServerSource,
    checked_file,
    checked_headers,
    checked_name,
    parse,
)
from mercury_ls.models.supplies import SPARE_DISK, Supply, free_disk, supplied
from mercury_ls.serve import added
from mercury_ls.serve.models import Report
from mercury_ls.wording import BY_RULES_ALONE, counted, millions, readable

Precision = Literal["int8", "int4"]
LEAST_FOR_FOUR_BITS = 1_000_000_000
"""Below so many parameters four bits cost more quality than they save time."""
BITS = {"int8": 8.1, "int4": 4.85}
"""With the scales of groups; embeddings keep eight bits."""
WORKING_MEMORY = 300_000_000
"""Of caches, activations and the process itself."""
TOKENIZER_MEMORY = 18
"""Bytes for each byte of `tokenizer.json`: 57 MB, with 690,000 tokens and as many merges, took 1.06 GB."""


class AddOrder(Struct, frozen=True, kw_only=True):
    """What the user asked for. `prompt` is the format of the prompts, where it cannot be told from the model, `file` a
    GGUF file of a repository. All from `model` on is for servers; each `header` is a line."""

    source: str
    name: str = ""
    revision: str = ""
    file: str = ""
    precision: Precision | None = None
    prompt: str = ""
    model: str = ""
    key: str = ""
    protocol: str = ""
    header: Sequence[str] = ()
    ca: str = ""
    cert: str = ""
    cert_key: str = ""


FOR_SERVERS = AddOrder.__struct_fields__[AddOrder.__struct_fields__.index("model") :]


class Plan(Struct, frozen=True, kw_only=True):
    """What would be done, for the user to confirm."""

    record: ModelRecord
    answers: str
    files: int = 0
    loads: int = 0
    keeps: int = 0
    memory: int = 0
    notes: tuple[str, ...] = ()


class AddedModel(Struct, frozen=True):
    """`note` says whether it understands its prompts, `problem` why it could not be asked."""

    record: ModelRecord
    note: str = ""
    problem: str = ""


OpenMade = Callable[[Path, ModelRecord], AbstractContextManager[Engine]]
"""The engine of a model that was made in a folder."""


def add(
    order: AddOrder,
    *,
    network: bool,
    agreed: Callable[[Plan], bool],
    report: Report,
    open_made: OpenMade,
) -> AddedModel | None:
    """None if the user did not agree. `network`: whether prompts may go to other machines.

    What describes the model is read in a draft, a temporary folder; nothing is written anywhere else before the user
    agrees. A model is asked in its format before it is there.
    """
    source, usual = parse(order.source)
    name = checked_name(order.name or usual, model_folders.installed())
    if isinstance(source, ServerSource):
        return _add_server(source, name, order, network, agreed)
    if server_options := [f"--{field.replace('_', '-')}" for field in FOR_SERVERS if getattr(order, field)]:
        raise EngineError(f"{', '.join(server_options)}: only for servers, and {order.source} is none: leave it out")
    for option, value in (("--revision", order.revision), ("--file", order.file)):
        if value and not isinstance(source, Hub):
            raise EngineError(f"{option} is for models on the hub, and {order.source} is none: leave it out")
    with _drafted(order.source) as draft:
        mark = f"{order.source} {order.revision}" + (f" {order.file}" if order.file else "")
        previous = library.left(name, mark)
        supply = supplied(source, draft, previous, report, revision=order.revision, file=order.file)
        plan = _planned(name, supply, order)
        _check_room(plan, supply)
        if not agreed(plan):
            return None
        with library.workplace(name, mark) as place:
            folder = supply.gather(place, report)
            made = places.empty(place, library.MADE)
            added.convert(folder, made, plan.record, report)
            model = _examined_made(made, plan.record, order, open_made, report)
            gc.collect()  # an engine may have its files open, which keeps Windows from moving them
            library.finish(model.record, made, place)
            return model


def _examined_made(
    folder: Path,
    record: ModelRecord,
    order: AddOrder,
    open_made: OpenMade,
    report: Report,
) -> AddedModel:
    asking = f"asking {record.name} known questions"
    report(0.0, asking)
    try:
        with open_made(folder, record) as engine:
            formats = added.other_formats(record)
            verdict = canary.judged(engine, formats, lambda prompt: added.asked_in(engine, record, False, prompt))
            model = AddedModel(*_in_its_format(record, record, verdict, order))
            report(1.0, asking)
            return model
    except EngineError as error:
        return AddedModel(record, problem=str(error))


@contextmanager
def _drafted(source: str) -> Iterator[Path]:
    """What is wrong with a file there is reported as the source's: the draft is gone then."""
    with TemporaryDirectory(prefix="mercury-ls-") as draft:
        try:
            yield Path(draft)
        except EngineError as error:
            raise EngineError(str(error).replace(draft, source)) from error


def _planned(name: str, supply: Supply, order: AddOrder) -> Plan:
    identity = added.identify(supply.folder, " ".join(dict.fromkeys([Path(supply.source).name, name])), order.prompt)
    precision = order.precision or ("int8" if supply.parameters < LEAST_FOR_FOUR_BITS else "int4")
    keeps = bytes_of(supply.parameters, precision)
    record = ModelRecord(
        name=name,
        kind=identity.kind,
        prompt=identity.prompt,
        source=supply.source,
        revision=supply.revision,
        licence=supply.licence,
        architecture=identity.architecture,
        parameters=supply.parameters,
        precision=precision,
    )
    return Plan(
        record=record,
        answers=identity.answers,
        files=supply.files,
        loads=supply.loads,
        keeps=keeps,
        memory=keeps + WORKING_MEMORY + TOKENIZER_MEMORY * (supply.folder / "tokenizer.json").stat().st_size,
        notes=supply.notes,
    )


def bytes_of(parameters: int, precision: str) -> int:
    return int(parameters * BITS[precision] / 8)


def _check_room(plan: Plan, supply: Supply) -> None:
    home, has = model_folders.added_home(), free_disk()
    needs = supply.writes + plan.keeps + SPARE_DISK
    if needs > has:
        raise EngineError(
            f"{readable(home)}: adding {plan.record.name} needs {megabytes(needs)} of disk, and "
            f"{megabytes(has)} are free: free {megabytes(needs - has)}, or choose a smaller model"
        )
    total = local.memory()
    if total and plan.memory > total:
        smaller = "--int4 or a smaller model" if plan.record.precision == "int8" else "a smaller model"
        raise EngineError(
            f"{plan.record.name} needs about {megabytes(plan.memory)} of memory at {plan.record.precision}, and this "
            f"machine has {megabytes(total)}: choose {smaller} (`mercury-ls model recommend`)"
        )


def described(plan: Plan) -> Iterator[str]:
    record = plan.record
    yield f"{record.source}" + (f" at {record.revision[:12]}" if record.revision else "")
    yield from (f"  {note}" for note in plan.notes if record.kind != "server")
    if record.kind == "server":
        yield f"  server       {record.address}, spoken to as {record.protocol}, model {record.model or '(its own)'}"
        yield from (f"  model        {note}" for note in plan.notes)
        if record.key:
            yield f"  key          from {record.key}"
        for header, value in record.headers.items():
            yield f"  header       {header}, {f'from {value}' if PLACE.fullmatch(value) else 'kept for you alone'}"
        if not is_here(record.address):
            yield f"  privacy      text around your cursor will be sent to {record.address}"
        return
    yield f"  licence      {record.licence or 'not stated: see where the model comes from'}"
    yield f"  parameters   {millions(record.parameters)} million ({record.architecture})"
    yield f"  suggests     {plan.answers} (prompt format {record.prompt})"
    if not record.proposes_next_edits:
        yield f"  next edits   {BY_RULES_ALONE}"
    if plan.loads:
        yield f"  download     {megabytes(plan.loads)} in {counted(plan.files, 'file')}"
    yield f"  on disk      {megabytes(plan.keeps)} at {record.precision}"
    yield f"  in memory    about {megabytes(plan.memory)}"


def _add_server(
    server: ServerSource, name: str, order: AddOrder, network: bool, agreed: Callable[[Plan], bool]
) -> AddedModel | None:
    if order.precision or order.revision:
        raise EngineError(
            f"{order.source} is a server and chooses its model's precision: leave out --int8 and --revision"
        )
    if reason := why_not(server.address, network):
        raise EngineError(f"{server.address} {reason}")
    if order.prompt == added.CHAT:
        order = replace(order, protocol=order.protocol or added.CHAT)
    elif order.prompt:
        added.named_kind(order.prompt)
    record = _asked_server(server, name, order)
    record, note = _examined(record, order, network)
    if not agreed(Plan(record=record, answers="what its model can", notes=(note,) if note else ())):
        return None
    with library.workplace(name, order.source) as place:
        library.finish(record, places.empty(place, library.MADE), place)
    return AddedModel(record, note)


def _examined(record: ModelRecord, order: AddOrder, network: bool) -> tuple[ModelRecord, str]:
    """The record, in the format that the model answers in unless the user named one, and what is said of that. Nothing
    of a provider, whose answers cost money."""
    if record.address in [provider.address for provider in HOSTED.values()]:
        return record, ""
    formats = added.other_formats(record)
    start = record if record.prompt or not formats else added.in_format(record, formats.pop(0))
    try:
        with added.served(start, network) as engine:
            verdict = canary.judged(
                engine, formats, lambda prompt: added.served(added.in_format(record, prompt), network)
            )
    except EngineError as error:
        return record, f"could not be examined: {error}"
    return _in_its_format(record, start, verdict, order)


def _in_its_format(
    record: ModelRecord, start: ModelRecord, verdict: canary.Verdict, order: AddOrder
) -> tuple[ModelRecord, str]:
    """`start` is the record as it was asked first."""
    if verdict.better and not order.prompt:
        better = added.in_format(record, verdict.better)
        return better, f"answers in the format {verdict.better}, and not in {start.prompt}"
    return (start if verdict.fits else record), str(verdict)


def _asked_server(server: ServerSource, name: str, order: AddOrder) -> ModelRecord:
    """What a server says of itself; a provider's is known, and not asked for money."""
    protocol = order.protocol or server.protocol
    usual = HOSTED[protocol].model if protocol in HOSTED else ""
    record = ModelRecord(
        name=name,
        kind="server",
        prompt=order.prompt,
        source=order.source,
        protocol=order.protocol,
        address=server.address,
        model=order.model or server.model or usual,
        key=_checked_key(order.key or server.key),
        headers=checked_headers(order.header),
        ca=checked_file("--ca", order.ca),
        certificate=checked_file("--cert", order.cert),
        certificate_key=checked_file("--cert-key", order.cert_key),
    )
    if record.certificate_key and not record.certificate:
        raise EngineError(f"--cert-key {record.certificate_key} is the key of a certificate: give that with --cert")
    prompt = ""
    if server not in HOSTED.values():
        served = added.probe(record)
        model = _checked_model(record.model, [served.name for served in served.models], server.address)
        offered = next((served for served in served.models if served.name == model), None)
        protocol, prompt = served.protocol, offered.prompt if offered else ""
        record = replace(record, model=model, context=offered.context if offered else 0)
    return replace(record, protocol=protocol, prompt=order.prompt or added.next_edit_format(record.model) or prompt)


def _checked_key(key: str) -> str:
    if key and key.partition(":")[0] not in ("env", "keyring"):
        raise EngineError(
            "--key is where the key is, not the key: env:NAME for a variable, keyring:SERVICE/NAME for the keyring"
        )
    return key


def _checked_model(name: str, names: Sequence[str], address: str) -> str:
    """Names are typed exactly: a wrong one is answered with what there is."""
    if name and names and name not in names:
        raise EngineError(f"{address} has no model {name}: it has {', '.join(names)}")
    if name or not names:
        return name
    if len(names) > 1:
        raise EngineError(f"{address} has several models: choose one with --model, of {', '.join(names)}")
    return names[0]
