"""The engine server with a fake engine that remembers what it must not be told.

python -m bench.abuse.witness serve FILE     into FILE
"""

import re
import sys
from collections.abc import Generator
from pathlib import Path

from bench.abuse.hostile import CANARY
from mercury_engine.api import Draft, Gap, Question, Regions
from mercury_engine.fake import FakeEngine
from mercury_ls.serve import daemon


class Witness(FakeEngine):
    """Writes down every request that holds the canary."""

    def __init__(self, seen: Path) -> None:
        super().__init__(pause=lambda step: None)
        self._seen = seen

    def fill(self, gap: Gap) -> Generator[Draft]:
        self._look(gap)
        return super().fill(gap)

    def warm(self, question: Gap | Regions) -> Generator[None]:
        self._look(question)
        return super().warm(question)

    def _look(self, question: Question) -> None:
        if CANARY in (told := repr(question)):
            around = re.search(rf".{{0,60}}{CANARY}.{{0,20}}", told)
            with open(self._seen, "a", encoding="utf-8") as file:
                file.write(f"the engine was told of a hidden file: {around and around[0]}\n")


AUDIT = """
import os, sys

HIDDEN = tuple(os.environ["ABUSE_HIDDEN"].split(os.pathsep))

def watch(event, arguments):
    if event == "open" and isinstance(arguments[0], str) and arguments[0].endswith(HIDDEN):
        if "project" in arguments[0]:
            with open(os.environ["ABUSE_SEEN"], "a") as file:
                file.write(f"a hidden file was opened: {arguments[0]}\\n")

sys.addaudithook(watch)
"""


def audit(folder: Path, seen: Path, hidden: tuple[str, ...]) -> dict[str, str]:
    """An environment in which whoever opens one of these files is written down."""
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(AUDIT, encoding="utf-8")
    return {"PYTHONPATH": str(folder), "ABUSE_SEEN": str(seen), "ABUSE_HIDDEN": ":".join(f"/{name}" for name in hidden)}


def main() -> int:
    seen = Path(sys.argv[2])
    return daemon.run(daemon.Options(idle_minutes=1), lambda report: Witness(seen))


if __name__ == "__main__":
    sys.exit(main())
