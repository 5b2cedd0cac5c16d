"""Every regular expression of the packages that read what others wrote, run on texts that are hard for it.

`python -m tests.patterns` names the patterns whose time grows faster than the text.
"""

import ast
import faulthandler
import importlib
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice, product
from pathlib import Path
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PACKAGES = {"mercury_ls": ROOT / "mercury_ls", "mercury_engine": ROOT / "engine/mercury_engine"}
FLAGS_AT = {"compile": 1, "match": 2, "fullmatch": 2, "search": 2, "findall": 2, "finditer": 2, "split": 3, "sub": 4}
"""The position of the flags among the arguments of these functions."""
AT_START = frozenset({"match", "fullmatch"})
SOME_NAME = "name"
"""Stands for what a pattern has from variables."""
REPRESENTATIVES = {
    codes.CATEGORY_DIGIT: "0",
    codes.CATEGORY_NOT_DIGIT: "a",
    codes.CATEGORY_SPACE: " \n",
    codes.CATEGORY_NOT_SPACE: "a",
    codes.CATEGORY_WORD: "a",
    codes.CATEGORY_NOT_WORD: " ",
}
OTHERS = "a0 \n\"'#(\\*"
END = "\0"
MANY = 20
MOST_EXAMPLES, MOST_LETTERS, MOST_OWN_LETTERS = 6, 12, 4
SHORT, LONG = 4_000, 16_000
QUICK_SECONDS, SLOW_SECONDS = 0.004, 0.04
LINEAR = 8.0
"""What is linear takes about four times as long for a text that is four times as long."""
LONGEST_SECONDS = 10.0

Parsed = Sequence[tuple[object, object]]


class Case(NamedTuple):
    where: str
    pattern: re.Pattern
    anywhere: bool


class Hard(NamedTuple):
    """A text: a unit repeated behind a beginning."""

    start: str
    unit: str
    end: str

    def of_length(self, length: int) -> str:
        return self.start + self.unit * (length // len(self.unit)) + self.end


def cases() -> list[Case]:
    """The patterns of all modules: those that names stand for, with the methods that are called on these, and those
    that functions make, as far as no variable is a part of them."""
    paths = [path for folder in PACKAGES.values() for path in sorted(folder.rglob("*.py"))]
    sources = {path: path.read_text(encoding="utf-8") for path in paths}
    named: dict[re.Pattern, Case] = {}
    made: dict[re.Pattern, Case] = {}
    for path in (path for path, source in sources.items() if re.search(r"^import re$", source, re.MULTILINE)):
        where, names = path.relative_to(ROOT).as_posix(), _names(path)
        for name, pattern in ((name, pattern) for name, value in names.items() for pattern in _patterns_in(value)):
            if re.search(rf"^{name}\b", sources[path], re.MULTILINE):
                methods = _methods(name, path, sources)
                named[pattern] = Case(f"{where} {name}", pattern, not methods or not methods <= AT_START)
        for call in (node for node in ast.walk(ast.parse(sources[path])) if isinstance(node, ast.Call)):
            if pattern := _called(call, names):
                function = call.func.attr  # type: ignore[union-attr]
                made.setdefault(pattern, Case(f"{where}:{call.lineno}", pattern, function not in AT_START))
    return [*named.values(), *(case for pattern, case in made.items() if pattern not in named)]


def _methods(name: str, path: Path, sources: dict[Path, str]) -> set[str]:
    """What is called on a name in its file and in those that have it from there, or on what a loop over it gives."""
    has_it = re.compile(rf"\b{path.stem} import (?:\([^)]*|.*)\b{name}\b")
    importing = [source for source in sources.values() if name in source and has_it.search(source)]
    calls = re.compile(rf"\b{name}(?:\[[^\]\n]*\]+)?\.([a-z]+)\(")
    methods = {method for source in (sources[path], *importing) for method in calls.findall(source)}
    return methods or set(re.findall(r"\b(?:form|pattern)\.([a-z]+)\(", sources[path]))


def _names(path: Path) -> dict[str, object]:
    package = next(name for name, folder in PACKAGES.items() if folder in path.parents)
    parts = path.relative_to(PACKAGES[package].parent).with_suffix("").parts
    with suppress(ImportError):  # of an extra
        return vars(importlib.import_module(".".join(part for part in parts if part != "__init__")))
    return {}


def _patterns_in(value: object) -> Iterator[re.Pattern]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from _patterns_in(part)
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _patterns_in(part)


def _called(call: ast.Call, names: dict[str, object]) -> re.Pattern | None:
    """The pattern of `re.compile(…)`, `re.match(…)`."""
    function = call.func
    is_ours = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "re"
    if not is_ours or function.attr not in FLAGS_AT or not call.args:
        return None
    flags = next((word.value for word in call.keywords if word.arg == "flags"), None)
    flags = flags or next(iter(call.args[FLAGS_AT[function.attr] :]), None)
    text = _text(call.args[0], names)
    chosen = 0 if flags is None else _value(flags, names)
    if not isinstance(text, str | bytes) or not isinstance(chosen, int):
        return None
    with suppress(re.error):  # where a variable is no name
        return re.compile(text, chosen)
    return None


def _text(node: ast.expr, names: dict[str, object]) -> object:
    if isinstance(node, ast.JoinedStr):
        parts = [
            _value(part.value, names) if isinstance(part, ast.FormattedValue) else part.value for part in node.values
        ]
        return "".join(SOME_NAME if part is None else str(part) for part in parts)
    if isinstance(node, ast.BinOp):
        left, right = _text(node.left, names), _text(node.right, names)
        return left + right if isinstance(left, str) and isinstance(right, str) else None
    return _value(node, names)


def _value(node: ast.expr, names: dict[str, object]) -> object:
    with suppress(Exception):  # it has variables
        return eval(compile(ast.Expression(node), "", "eval"), dict(names))
    return None


def hard_texts(pattern: re.Pattern) -> list[Hard]:
    """What each repetition repeats, behind what leads to it, and all letters of the pattern and pairs of them."""
    text = pattern.pattern
    parsed = parser.parse(text.decode("latin-1") if isinstance(text, bytes) else text, pattern.flags & ~re.UNICODE)
    letters = _letters(parsed)
    pairs = ["".join(pair) for pair in product(letters, repeat=2)]
    texts = dict.fromkeys(Hard("", unit, END) for unit in (*letters, *pairs))
    for start, body in _repeated(parsed, ""):
        pairs = map("".join, product(_letters(body)[:MOST_OWN_LETTERS], repeat=2))
        own = dict.fromkeys((*filter(None, _examples(body)), *pairs))
        texts |= dict.fromkeys(Hard(start, unit, END) for unit in (*own, *letters))
        texts |= dict.fromkeys(Hard("", start + unit, END) for unit in own)
    return [*texts]


def _repeated(parsed: Parsed, start: str) -> Iterator[tuple[str, Parsed]]:
    """The bodies of repetitions, and a text that leads to each."""
    for operation, value in parsed:
        for part in _parts(operation, value):
            yield from _repeated(part, start)
        if operation in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT) and value[1] > MANY:
            yield start, value[2]
        start += _examples([(operation, value)])[0]


def _parts(operation: object, value) -> list[Parsed]:
    if operation in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
        return [value[2]]
    if operation is codes.SUBPATTERN:
        return [value[3]]
    if operation is codes.ATOMIC_GROUP:
        return [value]
    if operation in (codes.ASSERT, codes.ASSERT_NOT):
        return [value[1]]
    return [*value[1]] if operation is codes.BRANCH else []


def _letters(parsed: Parsed) -> list[str]:
    letters: dict[str, None] = {}
    for operation, value in parsed:
        for part in _parts(operation, value):
            letters |= dict.fromkeys(_letters(part))
        letters |= dict.fromkeys(_characters(operation, value))
    return [*islice(letters, MOST_LETTERS)]


def _characters(operation: object, value) -> str:
    """Characters that one place of a pattern matches."""
    if operation is codes.LITERAL:
        return chr(value)
    if operation is codes.NOT_LITERAL:
        return next(letter for letter in OTHERS if ord(letter) != value)
    if operation is codes.ANY:
        return "a"
    if operation is codes.CATEGORY:
        return REPRESENTATIVES[value]
    if operation is codes.RANGE:
        return chr(value[0])
    if operation is codes.IN:
        is_not = value[0][0] is codes.NEGATE
        members = re.compile(_class(value))
        chosen = OTHERS if is_not else "".join(_characters(*member) for member in value)
        return "".join(letter for letter in chosen if members.match(letter))[:MOST_EXAMPLES]
    return ""


def _class(members: Sequence) -> str:
    written = {
        codes.LITERAL: lambda value: re.escape(chr(value)),
        codes.RANGE: lambda value: f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}",
        codes.CATEGORY: lambda value: {
            codes.CATEGORY_DIGIT: r"\d",
            codes.CATEGORY_NOT_DIGIT: r"\D",
            codes.CATEGORY_SPACE: r"\s",
            codes.CATEGORY_NOT_SPACE: r"\S",
            codes.CATEGORY_WORD: r"\w",
            codes.CATEGORY_NOT_WORD: r"\W",
        }[value],
        codes.NEGATE: lambda value: "^",
    }
    return f"[{''.join(written[operation](value) for operation, value in members)}]"


def _examples(parsed: Parsed) -> list[str]:
    """Some short texts that the parts match, without what stands around them."""
    texts = [""]
    for operation, value in parsed:
        if operation in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            choices = [example * max(1, min(value[0], MANY)) for example in _examples(value[2])]
        elif operation is codes.BRANCH:
            choices = [example for branch in value[1] for example in _examples(branch)[:2]]
        elif operation in (codes.SUBPATTERN, codes.ATOMIC_GROUP):
            choices = _examples(value[3] if operation is codes.SUBPATTERN else value)
        else:
            choices = [*_characters(operation, value)]
        if choices:
            first = [text + choices[0] for text in texts]
            texts = [*first, *(texts[0] + choice for choice in choices[1:])][:MOST_EXAMPLES]
    return texts


def faults() -> Iterator[str]:
    """The patterns that take too long for some text, with that text. One that takes no end ends the process."""
    for case in cases():
        sys.stderr.write(f"{case.where}\n")
        faulthandler.dump_traceback_later(LONGEST_SECONDS, exit=True)
        if slow := next((hard for hard in hard_texts(case.pattern) if _is_slow(case, hard)), None):
            yield f"{case.where}: {case.pattern.pattern!r} on {slow}"
    faulthandler.cancel_dump_traceback_later()


def _is_slow(case: Case, hard: Hard) -> bool:
    short = _seconds(case, hard.of_length(SHORT))
    if short < QUICK_SECONDS:
        return False
    short, long = min(short, _seconds(case, hard.of_length(SHORT))), _seconds(case, hard.of_length(LONG))
    return long > SLOW_SECONDS and long > LINEAR * short


def _seconds(case: Case, text: str) -> float:
    attacked = text.encode("latin-1", "replace") if isinstance(case.pattern.pattern, bytes) else text
    began = time.process_time()
    if case.anywhere:
        for _ in case.pattern.finditer(attacked):
            pass
    else:
        case.pattern.match(attacked)
        case.pattern.fullmatch(attacked)
    return time.process_time() - began


if __name__ == "__main__":
    faulty = [*faults()]
    sys.stdout.writelines(f"{fault}\n" for fault in faulty)
    sys.exit(bool(faulty))
