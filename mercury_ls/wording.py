"""How messages name things: paths relative to the workspace or with `~`, counts with their noun; and what there is to
say of a model."""

import os
import re
from collections.abc import Container, Iterable, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from mercury_engine.api import SLOWEST_FIRST_LINE_MS, EngineInfo
from mercury_engine.redaction import SHOWN, ForeignText, Secrets

BY_RULES_ALONE = "by rules alone; `mercury-ls model recommend --for next-edits` names models that write them too"
SLOWNESS = (
    f"a first line takes {{takes}}, and {SLOWEST_FIRST_LINE_MS / 1000:.1f} s is the limit while you type: "
    "next edits by rules and completions by hand work"
)
QUICKER = (
    "add a quicker model (`mercury-ls model recommend`), name a server "
    "(`mercury-ls model add http://127.0.0.1:8080`), give it more cores (engine.threads) or a GPU, or set how long you "
    "wait (engine.deadline_ms)"
)

SLOW_READING_MS = 1000.0


def counted(number: int, noun: str) -> str:
    """
    >>> counted(1, "file"), counted(2, "day"), counted(2, "reply")
    ('1 file', '2 days', '2 replies')
    """
    if number != 1:
        noun = f"{noun[:-1]}ies" if re.search("[^aeiou]y$", noun) else f"{noun}s"
    return f"{number:,} {noun}"


COMMANDS = r"\x00-\x08\x0b-\x1f\x7f-\x9f"
DIRECTIONS = r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
INVISIBLE = r"\u2028\u2029\ufeff\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff"
HARMFUL = re.compile(f"[{COMMANDS}{DIRECTIONS}{INVISIBLE}]")
LINK = "]("
"""Between the label and the address of a link: VS Code makes links of them in its notifications, some of which run
commands."""


def harmless(text: str) -> str:
    """The text without the characters with which a terminal is told to do things, and a reader shown what is not there.
    All foreign text is printed and logged through this.

    >>> harmless("a\\x1b[31mb\\tc\\nd\\x9be\\u202ef")
    'a\\\\x1b[31mb\\tc\\nd\\\\x9be\\\\u202ef'
    """
    return HARMFUL.sub(_escaped, text)


def one_line(text: str) -> str:
    """The same of a name or a sentence, which cannot feign lines of ours, nor links. All that an editor shows passes
    through this.

    >>> one_line("mit\\n  privacy  all of it stays here")
    'mit\\\\n  privacy  all of it stays here'
    >>> one_line("[Fix](command:run)")
    '[Fix]\\\\(command:run)'
    """
    return re.sub(r"[\t\n]", _escaped, harmless(text)).replace(LINK, r"]\(")


def quoted(foreign: ForeignText, most: int = SHOWN) -> str:
    """The beginning of what somebody else wrote, as part of a sentence of ours.

    >>> quoted(ForeignText("*.log` is fine"))
    "`*.log' is fine`"
    """
    shown = Secrets().shown(foreign, most + 1).replace("`", "'")
    return f"`{shown if len(shown) <= most else shown[:most] + '…'}`"


def lines(texts: Iterable[str]) -> str:
    """One line for each, whatever is in it."""
    return "\n".join(map(one_line, texts))


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def columns(rows: Iterable[Sequence[str]], right: Container[int] = ()) -> list[str]:
    """A line for each row, cell below cell; those of the columns on the `right` end alike."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    line = "  ".join(f"{{:{'>' if at in right else '<'}{width}}}" for at, width in enumerate(widths))
    return [line.format(*row).rstrip() for row in rows]


def millions(number: int) -> str:
    """
    >>> millions(1_540_000_000), millions(6_200_000), millions(57_000), millions(9)
    ('1,540', '6', '0.1', '0.0')
    """
    return f"{number / 1e6:,.{0 if number >= 1e6 else 1}f}"


def remarks(info: EngineInfo) -> tuple[str, ...]:
    """What a user should know of the model that answers, if anything."""
    names = {
        f"prompts go to {info.address}": info.address,
        "not calibrated: how likely its suggestions are to be accepted is known from other models": not info.calibrated,
        too_slow(info): not info.follows_typing,
        reading_pace(info): _is_slow(info),
    }
    return tuple(text for text, is_so in names.items() if is_so)


def too_slow(info: EngineInfo) -> str:
    """What still works where a model does not follow typing, and what would help.

    >>> too_slow(EngineInfo("mercury", "quicksilver", "cpu", 2048, first_line_ms=8000.0)).partition("; add")[0]
    'a first line takes 8.0 s, and 4.0 s is the limit while you type: next edits by rules and completions by hand work'
    """
    return f"{SLOWNESS.format(takes=first_line(info))}; {QUICKER}"


def first_line(info: EngineInfo) -> str:
    return f"{info.first_line_ms / 1000:.1f} s"


def reading_pace(info: EngineInfo) -> str:
    """
    >>> reading_pace(EngineInfo("mercury", "quicksilver", "cpu", 2048, reads_per_second=640.0, awaited_tokens=256))
    'reads 640 tokens a second: 0.4 s before an answer at a new place'
    """
    seconds = info.reading_ms(info.awaited_tokens) / 1000
    pace = f"reads {info.reads_per_second:.0f} tokens a second: {seconds:.1f} s before an answer at a new place"
    return f"{pace}; a model half as large halves that" if _is_slow(info) else pace


def _is_slow(info: EngineInfo) -> bool:
    return info.reading_ms(info.awaited_tokens) > SLOW_READING_MS


def readable(place: str | Path, roots: Iterable[str] = ()) -> str:
    """A path, or a URI of any scheme, as short as it can be, in one line.

    >>> readable("file:///home/me/my%20project/a.py", ["/home/me/my project"])
    'a.py'
    """
    path = decoded(str(place))
    inside = [root for root in roots if os.path.isabs(path) and path.startswith(os.path.join(root, ""))]
    return one_line(os.path.relpath(path, max(inside, key=len)) if inside else abbreviated(path))


def abbreviated(text: str) -> str:
    """The text with `~` for the home folder wherever a path begins with it."""
    home = os.path.expanduser("~").rstrip(os.sep)
    if not os.path.isabs(home):
        return text
    return re.sub(rf"(?<![\w/.~-]){re.escape(home)}(?![^\s/\\,;:'\"`)])", "~", text)


def decoded(place: str) -> str:
    """The path of a URI; anything else is returned as it is."""
    scheme, separator, _ = place.partition(":")
    if not separator or len(scheme) < 2 or not scheme.replace("-", "").isalnum():  # a lone letter is a Windows drive
        return place
    try:
        parts = urlsplit(place)
    except ValueError:
        return place
    path = unquote(parts.path)
    if parts.scheme == "file" and os.path.splitdrive(path.lstrip("/"))[0]:  # never outside Windows
        return os.path.normpath(path.lstrip("/"))
    return path + (f"#{parts.fragment}" if parts.fragment else "")
