"""What one session does, step by step, as data that can be written to a file and played again."""

import json
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

Kind = Literal["file", "folder", "pipe", "link", "loop", "gone"]
Ending = Literal["exit", "exit at once", "end of input", "end within a message"]


class Say(Struct, frozen=True, tag=True):
    """One message: a default header where none is given."""

    body: bytes
    header: bytes = b""


class Raw(Struct, frozen=True, tag=True):
    """A header block without a body: to be refused, and what follows it to be understood."""

    data: bytes


class Flood(Struct, frozen=True, tag=True):
    """A message with a body of this many bytes, more than any message may have."""

    length: int


class Touch(Struct, frozen=True, tag=True):
    """A file of the project is made into something else."""

    path: str
    kind: Kind
    content: bytes = b""


class Accept(Struct, frozen=True, tag=True):
    """The last offer is taken, by its id."""


class Wait(Struct, frozen=True, tag=True):
    """For the answers to all requests: a client tells nothing before initialize is answered."""


class Check(Struct, frozen=True, tag=True):
    """Everything is answered by now and the texts are these; of the hidden documents there is none."""

    digests: dict[str, str]
    hidden: tuple[str, ...] = ()


class End(Struct, frozen=True, tag=True):
    how: Ending


Step = Say | Raw | Flood | Touch | Accept | Wait | Check | End


class Plan(Struct, frozen=True):
    """One session: `seed` makes its steps again. `strict`: nothing hides an ordinary document on the way."""

    seed: str
    encoding: str = "utf-16"
    strict: bool = True


def store(path: Path, plan: Plan, steps: list[Step]) -> None:
    """As ASCII: a lone surrogate can only be escaped."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(msgspec.to_builtins(each)) for each in (plan, *steps))
    path.write_text("".join(f"{line}\n" for line in lines), encoding="ascii")


def load(path: Path) -> tuple[Plan, list[Step]]:
    first, *rest = map(json.loads, path.read_text(encoding="ascii").splitlines())
    return msgspec.convert(first, Plan), [msgspec.convert(each, Step) for each in rest]
