"""Gitignore patterns, matched as git does: for each path, the last matching rule decides."""

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct

MAX_WILDCARDS = 20_000
"""Per file: this many compile in a second and match in milliseconds. No hand-written file has a tenth as many."""


class IgnoreRule(Struct, frozen=True):
    """One line of an ignore file; `glob` is its pattern, relative to the file's folder."""

    line: int
    text: str
    glob: str
    hides: bool
    folders_only: bool
    anchored: bool


class Rules:
    """The rules of one ignore file; paths are relative to its folder, separated by `/`, without leading or trailing
    slash.

    Patterns are compiled only when a path may match them: plain names, prefixes and suffixes are looked up in tables,
    and other patterns are tried only on paths that contain their longest literal text.
    """

    def __init__(self, lines: Iterable[str], *, ignore_case: bool = False) -> None:
        self.lines = tuple(lines)
        self._flags = (re.IGNORECASE if ignore_case else re.NOFLAG) | re.DOTALL
        self._fold = str.casefold if ignore_case else str
        self._names, self._paths = _RuleTable(), _RuleTable()
        self._endings, self._beginnings = _RuleTable(), _RuleTable()
        self._others: list[tuple[int, str, IgnoreRule]] = []
        self._compiled: dict[int, re.Pattern[str] | None] = {}
        for rule in _limit_wildcards(_parse_rules(self.lines)):
            self._add(rule)
        self._others.reverse()

    def _add(self, rule: IgnoreRule) -> None:
        glob, wildcards = self._fold(rule.glob), _wildcards_in(rule.glob)
        if not wildcards:
            (self._paths if rule.anchored else self._names).add(glob, rule)
        elif wildcards == ["*"] and not rule.anchored and glob.startswith("*"):
            self._endings.add(glob[1:], rule)
        elif wildcards == ["*"] and not rule.anchored and glob.endswith("*"):
            self._beginnings.add(glob[:-1], rule)
        else:
            self._others.append((rule.line, _longest_text(glob), rule))

    def find(self, path: str, folder: bool = False) -> IgnoreRule | None:
        """The rule that decides on this path alone; the caller asks about the folders above it."""
        folded, name = self._fold(path), path.rpartition("/")[2]
        folded_name = self._fold(name)
        best = max(
            self._names.last(folded_name, folder),
            self._paths.last(folded, folder),
            *(self._endings.last(folded_name[-size:] if size else "", folder) for size in self._endings.sizes),
            *(self._beginnings.last(folded_name[:size], folder) for size in self._beginnings.sizes),
            key=lambda rule: rule.line if rule else 0,
        )
        above = best.line if best else 0
        for line, text, rule in self._others:
            if line <= above:
                break
            if text in folded and (folder or not rule.folders_only) and self._matches(rule, path, name):
                return rule
        return best

    def _matches(self, rule: IgnoreRule, path: str, name: str) -> bool:
        if rule.line not in self._compiled:
            regex = to_regex(rule.glob)
            self._compiled[rule.line] = None if regex is None else re.compile(regex, self._flags)
        pattern = self._compiled[rule.line]
        return pattern is not None and pattern.fullmatch(path if rule.anchored else name) is not None


class _RuleTable:
    """The last rule for each literal text: for files and folders, and for either."""

    def __init__(self) -> None:
        self._any: dict[str, IgnoreRule] = {}
        self._folders: dict[str, IgnoreRule] = {}
        self.sizes: set[int] = set()

    def add(self, text: str, rule: IgnoreRule) -> None:
        self.sizes.add(len(text))
        self._folders[text] = rule
        if not rule.folders_only:
            self._any[text] = rule

    def last(self, text: str, folder: bool) -> IgnoreRule | None:
        return (self._folders if folder else self._any).get(text)


def _parse_rules(lines: tuple[str, ...]) -> Iterator[IgnoreRule]:
    for number, line in enumerate(lines, 1):
        text = _trim_trailing_spaces(line.rstrip("\r\n"))
        if not text or text.startswith("#"):
            continue
        glob = text.removeprefix("!")
        path = glob.removesuffix("/")
        if path:
            yield IgnoreRule(
                line=number,
                text=text,
                glob=path.removeprefix("/"),
                hides=not text.startswith("!"),
                folders_only=glob.endswith("/"),
                anchored="/" in path,
            )


def _limit_wildcards(rules: Iterable[IgnoreRule]) -> Iterator[IgnoreRule]:
    """Hide everything, to be safe, if there are too many wildcards to match in time."""
    wildcards = 0
    for rule in rules:
        wildcards += len(_wildcards_in(rule.glob))
        if wildcards > MAX_WILDCARDS:
            text = f"more than {MAX_WILDCARDS} wildcards, so everything is hidden"
            yield IgnoreRule(line=rule.line, text=text, glob="*", hides=True, folders_only=False, anchored=False)
            return
        yield rule


def _wildcards_in(glob: str) -> list[str]:
    return WILDCARD.findall(glob)


WILDCARD = re.compile(r"[*?\[\\]")


BRACKETS = re.compile(r"[]\[\\]")
SIMPLE_CLASS = re.compile(r"\[[!^]?[^]\[\\/!^][^]\[\\/]*\]")


def _longest_text(glob: str) -> str:
    """The longest literal text that every match contains. Slashes do not count, since `**/` may match nothing; neither
    does anything between the first and the last bracket or backslash if these nest."""
    plain = SIMPLE_CLASS.sub("*", glob)
    if BRACKETS.search(plain):
        odd = [match.end() for match in BRACKETS.finditer(glob)]
        plain = glob[: odd[0] - 1] + "*" + glob[odd[-1] + (glob[odd[-1] - 1] == "\\") :]
    return max(re.split(r"[*?/]+", plain), key=len)


def _trim_trailing_spaces(line: str) -> str:
    """The line without trailing spaces, except for one after a backslash."""
    text = line.rstrip(" ")
    backslashes = len(text) - len(text.rstrip("\\"))
    return text + " " if backslashes % 2 and len(line) > len(text) else text


TOKEN = re.compile(
    r"(?P<folders>(?:^|(?<=/))\*\*+/)|(?P<rest>(?:^|(?<=/))\*\*+$)|(?P<stars>\*+)|(?P<one>\?)"
    r"|\[(?P<not>[!^]?)(?P<class>\]?(?:\[:\w*:\]|\\.|[^\]\\])*)\]|\\(?P<escaped>.)|(?P<broken>[\[\\].*)|(?P<plain>.)",
    re.DOTALL,
)


def to_regex(glob: str) -> str | None:
    """The pattern as a regular expression; None for what git treats as broken: an open bracket, an unknown class, a
    backslash at the end.

    Atomic groups prevent backtracking, so that no ignore file can make matching slow: what follows a star is matched at
    its first occurrence. Only the last star has to reach the end.
    """
    out: list[str] = []
    folders, star = _AtomicGroup(out), _AtomicGroup(out)
    for token in TOKEN.finditer(glob):
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
            case "class" if (regex := _class_regex(token["class"], bool(token["not"]))) is not None:
                out.append(regex)
            case "class" | "broken":
                return None
            case _:
                out.append(re.escape(token["escaped"] or token["plain"]))
    star.close(last=True)
    folders.close(last=True)
    return "".join(out)


class _AtomicGroup:
    """A wildcard and what follows it, as an atomic group unless it is the last one of its kind."""

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


NAMED_CLASSES = {
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
CLASS_ITEM = re.compile(r"\[:(?P<name>\w*):\]|(?:\\(.)|(.))(?:-(?:\\(.)|([^\]])))?", re.DOTALL)


def _class_regex(items: str, negated: bool) -> str | None:
    out = []
    for item in CLASS_ITEM.finditer(items):
        if item["name"] is not None:
            if item["name"] not in NAMED_CLASSES:
                return None
            out.append(NAMED_CLASSES[item["name"]])
            continue
        first = item[2] or item[3]
        last = item[4] or item[5] or first
        if first <= last:
            out.append(f"{re.escape(first)}-{re.escape(last)}")
    inside = "".join(out)
    if not inside:
        return "[^/]" if negated else "(?!)"
    return f"(?!/)[{'^' if negated else ''}{inside}]"
