"""How edits become a row of tokens: the contract that the engine and training share.

A row is a log that only grows, so that its keys and values stay cached while the user works:

    <bos> <lang:x> <path> p <edits>
    {[<path> p] <region> lines above <old> old lines </old> lines below <ins> new lines <eom> {<snip> [path] lines}*}*
    [<path> p] <region> lines above <old> old lines </old> lines below <ins> ▸

Each edit of the past is a region with its answer. Behind it stand lines that mention what it changed, each name once.
A place where the next edit may be due is one more region, whose answer the model judges and writes: an answer that
repeats the old lines says that none is due. Several places are siblings behind one past. Texts are whole lines.
"""

from collections.abc import Iterable, Sequence

from mercury_engine.api import Edit, Mention, Region
from mercury_engine.tokens.layout import language_id
from mercury_engine.tokens.tokenizer import LINE, Tokenizer
from mercury_engine.tokens.vocabulary import BOS, EDITS, EOM, INS, OLD, OLD_END, PATH, REGION, SNIP

LONGEST_PATH = 32
MENTIONS = 128
"""Tokens of the lines behind one edit."""

LONGEST_LINE = 200
"""In characters: of a longer line only the beginning is read."""

LONGEST_EDIT, LONGEST_PAST = 320, 640
"""In tokens: a longer edit is left out, and so are older ones than fit."""


def opening(tokenizer: Tokenizer, language: str, path: str) -> list[int]:
    return [BOS, language_id(language), PATH, *_path(tokenizer, path), EDITS]


def past(tokenizer: Tokenizer, edits: Sequence[Edit], region: Region) -> tuple[list[int], str]:
    """The log of the newest edits that fit, and the file of the last of them: without edits, of the region."""
    kept: list[tuple[str, list[int]]] = []
    size = 0
    for edit in reversed(edits):
        revision = _revision(tokenizer, edit)
        own = len(_moved(tokenizer, edit.path, "")) + len(revision)
        if own > LONGEST_EDIT:
            continue
        size += own
        if size > LONGEST_PAST:
            break
        kept.insert(0, (edit.path, revision))
    here = kept[0][0] if kept else region.path
    ids = opening(tokenizer, region.language, here)
    for path, revision in kept:
        ids += [*_moved(tokenizer, path, here), *revision]
        here = path
    return ids, here


def _revision(tokenizer: Tokenizer, edit: Edit) -> list[int]:
    """An edit of the past, in the file of the one before it, with lines that mention what it changed. Lines that were
    only added stand behind the one above them, since a region is never empty."""
    above, old, new = edit.above, edit.before, edit.after
    if not old and above:
        *further, last = LINE.findall(above)
        above, old, new = "".join(further), last, last + new
    region = Region(edit.path, "", old, above, edit.below)
    mentions = mention(tokenizer, edit.mentions, edit.path)
    return [*question(tokenizer, region, edit.path), *answer(tokenizer, new), *mentions]


def question(tokenizer: Tokenizer, region: Region, here: str) -> list[int]:
    """A region up to its anchor; `here` is the file of the region before it."""
    return [
        *_moved(tokenizer, region.path, here),
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


def is_readable(text: str) -> bool:
    """Whether a model sees all of these lines, so that it can write them anew."""
    return all(len(line) <= LONGEST_LINE for line in LINE.findall(text))


def _moved(tokenizer: Tokenizer, path: str, here: str) -> list[int]:
    """The name of the file, unless it is that of the region before."""
    return [] if path == here else [PATH, *_path(tokenizer, path)]


def _path(tokenizer: Tokenizer, path: str) -> list[int]:
    return tokenizer.encode(path)[-LONGEST_PATH:]


def _lines(tokenizer: Tokenizer, text: str) -> list[int]:
    return tokenizer.encode("".join(_shortened(line) for line in LINE.findall(text)))


def _shortened(line: str) -> str:
    return line if len(line) <= LONGEST_LINE else line[:LONGEST_LINE] + "\n"
