"""What a user has just done, and what should follow: read from `scenarios/`, one text for each language."""

import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

__all__ = ["ASKED", "FILES", "SCENARIOS", "Scenario", "read"]

TITLE = re.compile(r"^=== (.*)\n", re.MULTILINE)
FIELD = re.compile(r"(silent|asked|left):[ ]*(.*)\n")
THEN = re.compile(r"^--- then\n", re.MULTILINE)


class Scenario(Struct, frozen=True):
    """`drawn` is the document with the edits that were made and are due; of several, each is the whole document after
    another edit. `reason` begins the reason for silence; `note` is what a rename says of the places that it leaves."""

    name: str
    language: str
    drawn: str | tuple[str, ...]
    reason: str = ""
    note: str | None = None
    is_asked: bool = False

    @property
    def is_silent(self) -> bool:
        return "«" not in "".join(self.drawn)

    @property
    def has_files(self) -> bool:
        return isinstance(self.drawn, str) and self.drawn.startswith("--- ")

    @property
    def title(self) -> str:
        return f"{self.language}: {self.name}"


def scenarios_in(text: str, language: str) -> Iterator[Scenario]:
    _, *parts = TITLE.split(text)
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        fields: dict[str, str] = {}
        while field := FIELD.match(body):
            fields[field[1]], body = field[2], body[field.end() :]
        drawn = THEN.split(body.rstrip("\n") + "\n")
        scenario = Scenario(
            name,
            language,
            drawn[0] if len(drawn) == 1 else tuple(drawn),
            reason=fields.get("silent", ""),
            note=fields.get("left"),
            is_asked="asked" in fields,
        )
        assert scenario.has_files or scenario.is_silent == ("silent" in fields), scenario.title
        yield scenario


def read(folder: str) -> list[Scenario]:
    files = sorted((Path(__file__).parent / folder).glob("*.txt"))
    return [scenario for path in files for scenario in scenarios_in(path.read_text(encoding="utf-8"), path.stem)]


READ = read("scenarios")
FILES = [scenario for scenario in READ if scenario.has_files]
ASKED = [scenario for scenario in READ if scenario.is_asked]
"""Less likely than what is shown unasked."""
SCENARIOS = [scenario for scenario in READ if not scenario.has_files and not scenario.is_asked]
