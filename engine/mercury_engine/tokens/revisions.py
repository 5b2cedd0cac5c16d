"""How edits become a row of tokens: the contract that the engine and training share.

A row is a log that only grows, so that its keys and values stay cached while the user works:

    <bos> <lang:x> <path> p <edits>
    {[<path> p] <region> lines above <old> old lines </old> lines below <ins> new lines <eom> {<snip> [path] lines}*}*
    [<path> p] <region> lines above <old> old lines </old> lines below <ins> ▸

Each edit of the past is a region with its answer. Behind it stand lines that mention what it changed, each name once.
A place where the next edit may be due is one more region, whose answer the model judges and writes: an answer that
repeats the old lines says that none is due. Several places are siblings behind one past. Texts are whole lines.
"""

from collections.abc import Iterable

from msgspec import Struct

from mercury_engine.mentions import Mention
from mercury_engine.tokens.layout import language_id
from mercury_engine.tokens.tokenizer import LINE, Tokenizer
from mercury_engine.tokens.vocabulary import BOS, EDITS, EOM, INS, OLD, OLD_END, PATH, REGION, SNIP

ABOVE, BELOW = 4, 4
"""Lines around a region."""

LONGEST_PATH = 32
MENTIONS = 128
"""Tokens of the lines behind one edit."""

LONGEST_LINE = 200
"""In characters: of a longer line only the beginning is read."""


class Lines(Struct, frozen=True):
    """The lines of a region, and those around it."""

    path: str
    above: str
    old: str
    below: str


def opening(tokenizer: Tokenizer, language: str, path: str) -> list[int]:
    return [BOS, language_id(language), PATH, *_path(tokenizer, path), EDITS]


def question(tokenizer: Tokenizer, region: Lines, here: str) -> list[int]:
    """A region up to its anchor; `here` is the file of the region before it."""
    moved = [] if region.path == here else [PATH, *_path(tokenizer, region.path)]
    return [
        *moved,
        *(REGION, *_lines(tokenizer, region.above)),
        *(OLD, *_lines(tokenizer, region.old), OLD_END),
        *(*_lines(tokenizer, region.below), INS),
    ]


def answer(tokenizer: Tokenizer, text: str) -> list[int]:
    return [*tokenizer.encode(text), EOM]


def mention(tokenizer: Tokenizer, mentions: Iterable[Mention], here: str) -> list[int]:
    """Lines with their paths, as far as there is room for them."""
    ids: list[int] = []
    path = None
    for line in mentions:
        addition = _lines(tokenizer, line.text)
        if line.path != path:
            header = [] if line.path == here else _path(tokenizer, line.path + "\n")
            addition = [SNIP, *header, *addition]
        if len(ids) + len(addition) > MENTIONS:
            break
        ids += addition
        path = line.path
    return ids


def _path(tokenizer: Tokenizer, path: str) -> list[int]:
    return tokenizer.encode(path)[-LONGEST_PATH:]


def _lines(tokenizer: Tokenizer, text: str) -> list[int]:
    return tokenizer.encode("".join(_shortened(line) for line in LINE.findall(text)))


def _shortened(line: str) -> str:
    return line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + "\n"
