"""The configurations that the READMEs of the editors show: what is documented is what the tests run."""

import re
from pathlib import Path
from textwrap import dedent

__all__ = ["EDITORS", "blocks"]

EDITORS = Path(__file__).parents[2] / "editors"


def blocks(editor: str, language: str) -> list[str]:
    """The code blocks of one language in an editor's README, from the first to the last."""
    text = (EDITORS / editor / "README.md").read_text(encoding="utf-8")
    fenced = re.finditer(rf"^( *)```{language}\n(.*?)^\1```$", text, re.DOTALL | re.MULTILINE)
    return [dedent(found[2]) for found in fenced]
