"""Lines as models see them: what ends with a line feed, and nothing else that Python takes for an end."""

import re


def lines_of(text: str) -> list[str]:
    """Lines with their line feeds; a last one only if it is not empty."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def bare_lines(text: str) -> list[str]:
    """The same without their line feeds."""
    return [line.removesuffix("\n") for line in lines_of(text)]
