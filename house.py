"""Every file with its own first sentence: `python house.py [FOLDER …]` prints them."""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent

PACKAGES = (
    "mercury_ls",
    "engine/mercury_engine",
    "kernels/mercury_kernels",
    "training/mercury_training",
    "bench",
    "release",
)
BENCH = {
    "bench": "Measurements of the real thing, and the demo",
    "bench/abuse": "Hostile clients against the real processes",
    "bench/kernels": "What a GPU's kernels and passes take, against what its memory and arithmetic allow",
    "bench/harness": "How real processes are driven, watched and timed",
    "bench/next_edit": "How good next edits are, and the rows that say so",
    "bench/oracle": "What a perfect model loses before its answers reach the screen",
    "bench/quality": "How good suggestions are as users get them, beside peers",
    "bench/replay": "Recorded edit sessions, played back as real editors would",
    "bench/report": "The whole benchmark, its tables and plots",
    "release": "What a tag publishes: its version, its artefacts, and what shows that they work",
}
"""What the folders hold that have no `__init__.py` to say it in."""


def listed(folder: Path) -> Iterator[str]:
    yield f"\n{folder.relative_to(ROOT).as_posix()}: {about(folder)}"
    yield from (f"  {path.name:24} {sentence(path)}" for path in modules(folder))


def about(folder: Path) -> str:
    own = folder / "__init__.py"
    return sentence(own) if own.exists() else BENCH.get(folder.relative_to(ROOT).as_posix(), "")


def folders() -> list[Path]:
    """Every folder with modules, each package before what it holds."""
    return [folder for name in PACKAGES for folder in sorted({path.parent for path in (ROOT / name).rglob("*.py")})]


def modules(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.py") if not path.name.startswith("__"))


def sentence(path: Path) -> str:
    """A file's first sentence, on one line and without its full stop."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return re.split(r"\.(?:\s|$)", " ".join(text.partition("\n\n")[0].split()), maxsplit=1)[0]


if __name__ == "__main__":
    named = [(ROOT / name).resolve() for name in sys.argv[1:]]
    for folder in folders():
        if not named or any(folder.is_relative_to(path) for path in named):
            sys.stdout.write("\n".join([*listed(folder), ""]))
