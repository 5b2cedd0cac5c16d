"""The gap in a prompt that has the tokens of a fill-in-the-middle model."""

import re
from collections.abc import Iterator

from mercury_engine.api import Snippet
from mercury_engine.prompts.dialects import DIALECTS, Dialect
from mercury_engine.prompts.received.parts import ReceivedGap

OTHERS = [dialect for dialect in DIALECTS if not dialect.is_ours]
PLACE = re.compile(r"\{(prefix|suffix)\}")
ALSO = {"deepseek": "<｜fim▁end｜>{suffix}<｜fim▁begin｜>{prefix}<｜fim▁hole｜>"}
"""Orders of the same tokens that programs send, though the models were not trained with them: this is JetBrains'."""


def _matches(prompt: str) -> Iterator[tuple[Dialect, tuple[str, str, str]]]:
    """The dialects of others in which there is a gap, and what stands in its places."""
    for dialect in OTHERS:
        for order in filter(None, (dialect.alone, ALSO.get(dialect.name))):
            if parts := _parts(order, prompt):
                yield dialect, parts


def gap_in(prompt: str) -> ReceivedGap | None:
    """By the dialect of which the prompt has the most tokens: several have the same ones around a gap."""
    matches = [*_matches(prompt)]
    if not matches:
        return None
    dialect, (head, prefix, suffix) = max(matches, key=lambda match: sum(token in prompt for token in match[0].tokens))
    files = _sections(dialect, head)
    if not files and prefix.startswith(opener := dialect.file.partition("{path}")[0]) and len(opener) > 1:
        files = _sections(dialect, prefix)  # all that comes before the cursor is one text
        prefix = files[-1][1] if files else prefix
    elif files and not files[-1][0]:
        path, _, prefix = prefix.partition("\n")
        files = [*files[:-1], (path, "")]
    *others, (path, _) = files or [("", "")]
    return ReceivedGap(prefix, suffix, path, tuple(Snippet(*other) for other in others if other[1].strip()))


def _parts(order: str, prompt: str) -> tuple[str, str, str] | None:
    """What stands before the tokens, the prefix and the suffix. In a long prompt of nothing but tokens, too, each is
    looked for once."""
    opening, first_name, between, _, closed = PLACE.split(order)
    if not prompt.endswith(closed):
        return None
    head, found, tail = prompt.removesuffix(closed).partition(opening)
    first, parted, second = tail.rpartition(between)
    if not (found and parted):
        return None
    return (head, second, first) if first_name == "suffix" else (head, first, second)


def _sections(dialect: Dialect, text: str) -> list[tuple[str, str]]:
    """The files in a text by path, the last of which is the one with the gap; none if it cannot be told where they
    begin."""
    opener, _, tail = dialect.file.partition("{path}")
    closer = tail.partition("{text}")[2].strip("\n")
    if len(opener) > 1:
        parts = text.split(opener)[1:]
    elif closer:
        parts = text.split(closer)
    else:
        return []
    return [(path, body) for path, _, body in (part.partition("\n") for part in parts)]
