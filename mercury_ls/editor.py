"""`mercury-ls editor`: where the files for an editor lie, and the lines that set it up."""

import re
from pathlib import Path
from textwrap import dedent, indent

HERE = Path(__file__).parent
HOMES = (HERE / "editors", HERE.parent / "editors")
"""Of an installation, and of a clone."""

NAMED = "/path/to/mercury-ls/editors"
"""What the pages call the folder; a user gets its real name."""
BLOCK = re.compile(r"^```\w*\n((?:(?!```).*\n)*+)```$", re.MULTILINE)


def folder() -> Path:
    return next(home for home in HOMES if home.is_dir())


def editors() -> list[str]:
    return sorted(page.parent.name for page in folder().glob("*/README.md"))


def instructions(name: str) -> str:
    """The second step of the editor's page: the first one, the server, is there already."""
    home = folder()
    page = (home / name / "README.md").read_text(encoding="utf-8").replace(NAMED, str(home))
    step = re.search(r"^2\. (.*?)(?=^3\. )", page, re.MULTILINE | re.DOTALL)
    if step is None:
        raise ValueError(f"{home / name / 'README.md'} has no second step")
    text = dedent(f"   {step[1]}").strip()
    text = BLOCK.sub(lambda block: indent(block[1], "    ").rstrip("\n"), text)
    missing = [path for path in re.findall(r"(?<!\S)\S+\.vsix", text) if not Path(path).is_file()]
    notes = [
        f"{path} is not there: run `make vscode` in a clone of mercury-ls, and install it again" for path in missing
    ]
    return "\n\n".join([str(home / name), text, *notes, f"more: {home / name / 'README.md'}"])
