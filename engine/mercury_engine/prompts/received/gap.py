"""The gap in a prompt that has the tokens of a fill-in-the-middle model."""

import re
from functools import cache

from mercury_engine.api import Snippet
from mercury_engine.prompts.dialects import DIALECTS, Dialect
from mercury_engine.prompts.received.parts import Gap

__all__ = ["gap_in"]

PLACE = re.compile(r"\{(prefix|suffix)\}")


def gap_in(prompt: str) -> Gap | None:
    """By the dialect of which the prompt has the most tokens: several have the same ones around a gap."""
    found = [(dialect, match) for dialect in DIALECTS if (match := _shape_of(dialect).search(prompt))]
    if not found:
        return None
    dialect, match = max(found, key=lambda each: sum(token in prompt for token in each[0].tokens))
    head, prefix = prompt[: match.start()], match["prefix"]
    files = _sections(dialect, head)
    if not files and prefix.startswith(opener := dialect.file.partition("{path}")[0]) and len(opener) > 1:
        files = _sections(dialect, prefix)  # all that comes before the cursor is one text
        prefix = files[-1][1] if files else prefix
    elif files and not files[-1][0]:
        path, _, prefix = prefix.partition("\n")
        files = [*files[:-1], (path, "")]
    *others, (path, _) = files or [("", "")]
    return Gap(prefix, match["suffix"], path, tuple(Snippet(*each) for each in others if each[1].strip()))


@cache
def _shape_of(dialect: Dialect) -> re.Pattern[str]:
    """The prompt of one file as a regular expression."""
    parts = PLACE.split(dialect.alone)
    shape = "".join(f"(?P<{part}>.*?)" if number % 2 else re.escape(part) for number, part in enumerate(parts))
    return re.compile(shape + r"\Z", re.DOTALL)


def _sections(dialect: Dialect, text: str) -> list[tuple[str, str]]:
    """The files in a text by path, the last of which is the one with the gap; none if it cannot be told where they
    begin."""
    opener, _, rest = dialect.file.partition("{path}")
    closer = rest.partition("{text}")[2].strip("\n")
    if len(opener) > 1:
        parts = text.split(opener)[1:]
    elif closer:
        parts = text.split(closer)
    else:
        return []
    return [(path, body) for path, _, body in (part.partition("\n") for part in parts)]
