"""Gitignore patterns, matched as git matches them: one path at a time, the last rule that speaks decides."""

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

__all__ = ["Rule", "Rules"]


class Rule(Struct, frozen=True):
    """One line of an ignore file."""

    line: int
    text: str
    hides: bool
    folders_only: bool
    anchored: bool
    regex: re.Pattern[str]


class Rules:
    """The rules of one ignore file; paths are relative to its folder, with `/` and none at either end."""

    def __init__(self, lines: Iterable[str], *, ignore_case: bool = False) -> None:
        self.lines = tuple(lines)
        self._rules = tuple(_rules(self.lines, re.IGNORECASE if ignore_case else re.NOFLAG))[::-1]

    def find(self, path: str, folder: bool = False) -> Rule | None:
        """The rule that decides about exactly this path. Folders above it are for the caller to ask about."""
        name = path.rpartition("/")[2]
        for rule in self._rules:
            if rule.folders_only and not folder:
                continue
            if rule.regex.fullmatch(path if rule.anchored else name):
                return rule
        return None


def _rules(lines: tuple[str, ...], flags: re.RegexFlag) -> Iterator[Rule]:
    for number, line in enumerate(lines, 1):
        text = _trimmed(line.rstrip("\r\n"))
        if not text or text.startswith("#"):
            continue
        glob = text.removeprefix("!")
        path = glob.removesuffix("/")
        regex = _regex(path.removeprefix("/"))
        if path and regex is not None:
            yield Rule(
                line=number,
                text=text,
                hides=not text.startswith("!"),
                folders_only=glob.endswith("/"),
                anchored="/" in path,
                regex=re.compile(regex, flags | re.DOTALL),
            )


def _trimmed(line: str) -> str:
    """Without trailing spaces, save one that a backslash protects."""
    text = line.rstrip(" ")
    backslashes = len(text) - len(text.rstrip("\\"))
    return text + " " if backslashes % 2 and len(line) > len(text) else text


_TOKEN = re.compile(
    r"(?P<folders>(?:^|(?<=/))\*\*+/)|(?P<rest>(?:^|(?<=/))\*\*+$)|(?P<stars>\*+)|(?P<one>\?)"
    r"|\[(?P<not>[!^]?)(?P<class>\]?(?:\[:\w*:\]|\\.|[^\]\\])*)\]|\\(?P<escaped>.)|(?P<broken>[\[\\])|(?P<plain>.)",
    re.DOTALL,
)


def _regex(glob: str) -> str | None:
    """None for what git takes for broken: an open bracket, an unknown class, a backslash at the end.

    What follows a star is found at its first place and never sought again, so that no ignore file
    in a stranger's repository can make matching slow. Only the last star has to reach the end.
    """
    out: list[str] = []
    folders, star = _Group(out), _Group(out)
    for token in _TOKEN.finditer(glob):
        match token.lastgroup:
            case "folders":
                star.close()
                folders.close()
                folders.open("(?:.*?/)??")
            case "stars":
                star.close()
                star.open("[^/]*?")
            case "rest":
                out.append(".*")
            case "one":
                out.append("[^/]")
            case "class" if (regex := _class(token["class"], bool(token["not"]))) is not None:
                out.append(regex)
            case "class" | "broken":
                return None
            case _:
                out.append(re.escape(token["escaped"] or token["plain"]))
    star.close(last=True)
    folders.close(last=True)
    return "".join(out)


class _Group:
    """A wildcard and what follows it: atomic, unless it is the last of its kind."""

    def __init__(self, out: list[str]) -> None:
        self._out = out
        self._at: int | None = None

    def open(self, wildcard: str) -> None:
        self._at = len(self._out)
        self._out += ["(?>", wildcard]

    def close(self, last: bool = False) -> None:
        if self._at is None:
            return
        if last:
            self._out[self._at] = "(?:"
        self._out.append(")")
        self._at = None


_NAMED = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\s",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}
_ITEM = re.compile(r"\[:(?P<name>\w*):\]|(?:\\(.)|(.))(?:-(?:\\(.)|([^\]])))?", re.DOTALL)


def _class(items: str, negated: bool) -> str | None:
    out = []
    for item in _ITEM.finditer(items):
        if item["name"] is not None:
            if item["name"] not in _NAMED:
                return None
            out.append(_NAMED[item["name"]])
            continue
        first = item[2] or item[3]
        last = item[4] or item[5] or first
        if first <= last:
            out.append(f"{re.escape(first)}-{re.escape(last)}")
    inside = "".join(out)
    if not inside:
        return "[^/]" if negated else "(?!)"
    return f"(?!/)[{'^' if negated else ''}{inside}]"
