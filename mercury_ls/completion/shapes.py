"""Shapes: how the code around the cursor says what is likely to follow, proposed for the model to verify."""

import builtins
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from keyword import iskeyword

from msgspec import Struct

from mercury_engine.api import Proposed
from mercury_ls.code import languages, syntax
from mercury_ls.code.brackets import QUOTED, split
from mercury_ls.code.calls import Parameter, bracketed, call_at, named, parameters, signature
from mercury_ls.code.differences import WORD
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.lexemes import KEYWORDS, PARTS, indentation

__all__ = ["SHAPES", "Elsewhere", "Scene", "Shape", "proposed", "proposed_lines", "scene"]

MOST = 3
"""Proposals of one shape."""
LINES_ABOVE = 12
LONGEST_LINE = 160
LONGEST_FUNCTION = 12_000
LARGEST_TEXT, LARGEST_IMPORTING = 1 << 18, 1 << 16

CLASS = re.compile(r"\s*(?:\w+ )*class\b")
TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
PREFIX = r"(?:\b[bfrtuBFRTU]{1,2})?"
STRING = re.compile(rf"{PREFIX}(?:{QUOTED.pattern})")
BOUND = re.compile(
    r"(?:^[ \t]*|\b(?:as|for|in|const|let|var|mut)\s+|[(,]\s*)([^\W\d]\w*)"
    r"(?=\s*(?::|=(?!=)|,|\)|\?)|\s+in\b|\s+of\b)",
    re.MULTILINE,
)
BINDING = re.compile(
    r"^([\w, \t*]+)(?::[^=\n]*)?=(?!=)|^[ \t]*(\w+):[ \t]|(\w+)[ \t]?:="
    r"|\bfor\s+([\w, ()*]{1,80}?)\s+in\b|\bas\s+(\w+|\([\w, ]{1,80}\))"
    r"|\b(?:class|global|nonlocal)\s+([\w, ]+)|\blambda\s+([^:\n]{0,200}):|\bdef\s+(\w+\s*\(.{0,800}?\))\s*(?:->|:)",
    re.MULTILINE | re.DOTALL,
)
"""What binds names in Python, but for imports."""
USED = re.compile(r"(?<![\w.])([^\W\d]\w*)\b(?!\s*=[^=])")
IMPORTS = re.compile(r"^[ \t]*(?:from[^\n]*?\bimport|import)\b(?:[^\n(]*\([^)]{0,2000}\)|[^\n]*)", re.MULTILINE)
DEFINED = re.compile(r"^(?:    |\t)?(?:(?:async )?def |class )?([^\W\d]\w*)", re.MULTILINE)
PROSE = re.compile(rf"{PREFIX}(?:\"{{3}}.*?\"{{3}}|'{{3}}.*?'{{3}})|#[^\n]*", re.DOTALL)
OF_SELF = re.compile(r"\b(?:self|this)\.([^\W\d]\w*)")
SELVES = ("", "self", "cls", "this", "super()")


class Elsewhere(Struct, frozen=True):
    """What other files say: the texts that may define a name, nearest first, and the text of an imported module."""

    defining: Callable[[str], Iterable[str]] = lambda name: ()
    module: Callable[[str], str | None] = lambda name: None


class Scene(Struct, frozen=True):
    """What a shape may look at: the line up to the cursor without its indentation, the text `above` the line and
    `below` it, and the headers of the scopes around, outermost first."""

    head: str
    indent: str
    above: str
    below: str
    headers: tuple[str, ...]
    language: str
    elsewhere: Elsewhere

    @property
    def lines(self) -> list[str]:
        """The lines above, nearest first."""
        return [line.strip()[:LONGEST_LINE] for line in reversed(self.above[-4000:].splitlines()[-LINES_ABOVE:])]

    @property
    def function(self) -> str:
        """The header of the function around, "" outside of functions."""
        around = (header for header in reversed(self.headers) if "(" in header)
        return next((each for each in around if not CLASS.match(each)), "")

    @property
    def body(self) -> str:
        """The function around, from its header to the cursor."""
        at = self.above.rfind(self.function) if self.function else -1
        return self.above[max(at, len(self.above) - LONGEST_FUNCTION, 0) :]

    @property
    def bases(self) -> list[str]:
        """The classes from which the one around derives."""
        header = next((each for each in reversed(self.headers) if CLASS.match(each)), "")
        return WORD.findall(header.partition("(")[2]) if self.is_python else re.findall(r"\bextends\s+(\w+)", header)

    @property
    def declares(self) -> bool:
        """Whether the line begins a method, which looks like a call where no keyword begins one."""
        around = self.headers[-1] if self.headers else ""
        return bool(CLASS.match(around)) and not self.is_python and "=" not in self.head

    @property
    def is_python(self) -> bool:
        return self.language == "python"

    @property
    def own(self) -> str:
        return "self" if self.is_python else "this"

    @property
    def end(self) -> str:
        """What ends a statement here."""
        return ";" if not self.is_python and re.search(r";\s*$", self.above, re.MULTILINE) else ""

    def texts(self, name: str) -> Iterator[str]:
        """Those that may define a name."""
        yield self.above + self.below
        yield from self.elsewhere.defining(name)


class Shape(Struct, frozen=True):
    """Writes whole lines, without their indentation; only those are proposed that begin like the line at the cursor.
    `first` and `other` say how often its first proposal is right, and any other."""

    lines: Callable[[Scene], Iterator[str]]
    first: float
    other: float


def proposed(snapshot: Snapshot, offset: int, elsewhere: Elsewhere) -> tuple[Proposed, ...]:
    """What may follow the cursor, the likeliest first."""
    if len(snapshot.text) > LARGEST_TEXT:
        return ()
    here = scene(snapshot, offset, elsewhere)
    found = [
        Proposed(text, SHAPES[shape].other if rank else SHAPES[shape].first)
        for shape, rank, text in proposed_lines(here)
    ]
    return tuple(sorted(found, key=lambda each: -each.chance))


def proposed_lines(here: Scene) -> Iterator[tuple[str, int, str]]:
    """The shape of each proposal, the how many-th of that shape it is, and its text behind the cursor."""
    seen: set[str] = set()
    for name, shape in SHAPES.items():
        rests = (line[len(here.head) :].rstrip() for line in shape.lines(here) if line.startswith(here.head))
        fresh = (rest for rest in rests if rest and rest not in seen)
        for rank, rest in enumerate(islice(fresh, MOST)):
            seen.add(rest)
            yield name, rank, rest


def scene(snapshot: Snapshot, offset: int, elsewhere: Elsewhere = Elsewhere()) -> Scene:  # noqa: B008  frozen
    line = snapshot.line_of(offset)
    start, end = snapshot.line_start(line), snapshot.line_end(line)
    head = snapshot.text[start:offset]
    indent, language = indentation(head), languages.find(snapshot.language, snapshot.path)
    return Scene(
        head=head[len(indent) :],
        indent=indent,
        above=snapshot.text[:start],
        below=snapshot.text[end:],
        headers=tuple(snapshot.text[first:last] for first, last in syntax.headers(snapshot, offset)),
        language=language.id if language else "",
        elsewhere=elsewhere,
    )


def stored(here: Scene) -> Iterator[str]:
    """`self.x = x` for the parameters of a constructor that its body does not use yet: one, or all of them."""
    if not re.search(r"\b(?:__init__|constructor)\s*\(", here.function):
        return
    body = here.body[len(here.function) :]
    private = "_" if re.search(rf"\b{here.own}\._(\w+) = \1\b", body) else ""
    lines = [
        f"{here.own}.{private}{parameter.name} = {parameter.name}{here.end}"
        for parameter in parameters(here.function, here.language)
        if not re.search(rf"\b{parameter.name}\b", body)
    ]
    yield from lines
    if len(lines) > 1:
        yield f"\n{here.indent}".join(lines)


def arguments(here: Scene) -> Iterator[str]:
    """The arguments that a call lacks, from what is named like the function's parameters, or said to be of their
    types."""
    yield from filled(here, is_of_self=True)


def arguments_of_others(here: Scene) -> Iterator[str]:
    """The same where a function is only known by its name, since it is a member of something."""
    yield from filled(here, is_of_self=False)


def filled(here: Scene, *, is_of_self: bool) -> Iterator[str]:
    call = call_at(here.above + here.indent + here.head)
    if call is None or (call.function.rpartition(".")[0] in SELVES) != is_of_self or here.declares:
        return
    before = here.head[: len(here.head) - len(call.typed)]
    for declared in islice(declarations(here, call.function), 2):
        known = parameters(declared, here.language)
        names = {named(each) for each in call.given}
        left = [each for each in known[len(call.given) - len(names - {""}) :] if each.name not in names]
        yield from (before + filling for filling in fillings(here, left, bool(names - {""})))


def declarations(here: Scene, function: str) -> Iterator[str]:
    """How a function, or the constructor of a class, is declared here and in other files."""
    name = function.rpartition(".")[2]
    if function.startswith("super()."):
        yield from inherited(here, name)
    elif name not in KEYWORDS:
        yield from filter(None, (signature(text, name, here.language) for text in here.texts(name)))


def fillings(here: Scene, left: Sequence[Parameter], by_name: bool) -> Iterator[str]:
    """The arguments for these parameters: with the optional ones of which there is something here, then without; no
    more than can be told."""
    values = values_of(here)
    must: list[str] = []
    may: list[str] = []
    for each in left:
        value = values.get(each.name) or (values.get(each.type) if each.type else None)
        if value is None:
            if each.default:
                continue
            if must:
                yield ", ".join(must) + ","
            return
        written = f"{each.name}={value}" if here.is_python and (by_name or not each.is_positional) else value
        if not each.default:
            must.append(written)
        elif value and here.is_python:
            may.append(f"{each.name}={value}")
    if may:
        yield ", ".join([*must, *may]) + ")"
    if must:
        yield ", ".join(must) + ")"


def values_of(here: Scene) -> dict[str, str]:
    """What may be given for a parameter, by its name or its type: names in the function, members of the object."""
    known = [parameter for header in here.headers for parameter in parameters(header, here.language)]
    members = OF_SELF.findall(here.above[-LONGEST_FUNCTION:]) if here.indent and here.headers else []
    found = {name.lstrip("_"): f"{here.own}.{name}" for name in members}
    types = Counter(each.type for each in known if each.type)
    found |= {each.type: each.name for each in known if types[each.type] == 1}
    names = [*(each.name for each in known), *BOUND.findall(here.body)]
    return found | {name: name for name in names if name not in KEYWORDS}


def inherited(here: Scene, name: str) -> Iterator[str]:
    """How the bases declare a method, up to the end of its parameters."""
    for body in (body for base in here.bases for body in bodies(here, base)):
        found = re.search(rf"\b{name}\s*(?=\()", body)
        if found and (header := bracketed(body, found.start())):
            yield header


def bodies(here: Scene, name: str) -> Iterator[str]:
    """The text of a class."""
    for text in here.texts(name):
        made = re.search(rf"^( *)(?:\w+ )*class {name}\b", text, re.MULTILINE)
        if made:
            rest = text[made.start() : made.start() + LONGEST_FUNCTION]
            end = re.search(rf"\n{made[1]}(?=[^\s)#}}])", rest)
            yield rest[: end.start()] if end else rest
            return


def passed_on(here: Scene) -> Iterator[str]:
    """The call of the method that this one overrides, with its own parameters, where `super` is written."""
    method, begun = re.search(r"(?:def\s+)?(\w+)\s*\(", here.function), re.match(r"(.*?\b)super\b", here.head)
    if method is None or begun is None or not here.bases:
        return
    known = parameters(here.function, here.language)
    given = [each.name if each.is_positional else f"{each.name}={each.name}" for each in known]
    if not here.is_python:
        constructs = method[1] == "constructor"
        yield f"{begun[1]}super{'' if constructs else '.' + method[1]}({', '.join(given)}){here.end}"
        return
    rest = [each.strip() for each in split(bracketed(here.function).partition("(")[2][:-1])]
    given += [found[0] for each in rest if (found := re.match(r"\*+\w+", each))]
    yield f"{begun[1]}super().{method[1]}({', '.join(given)})"


def imported(here: Scene) -> Iterator[str]:
    """The names that the file uses and nothing binds: those that the module defines, or any where it is unknown."""
    begun = re.match(r"(from (\S+) import (?:\w+, )*)\w*\Z", here.head)
    if begun is None or not here.is_python or len(here.above) + len(here.below) > LARGEST_IMPORTING:
        return
    missing, module = unbound(here), here.elsewhere.module(begun[2])
    if module is not None:
        words = (word for each in IMPORTS.findall(module) for word in WORD.findall(each))
        defined = {*DEFINED.findall(module), *words}
        known = [name for name in missing if name in defined]
        missing = known or missing
        if len(known) > 1:
            yield begun[1] + ", ".join(sorted(known))
    yield from (begun[1] + name for name in missing)


def unbound(here: Scene) -> list[str]:
    """In the order of their first use."""
    text = STRING.sub("", PROSE.sub("", f"{here.above}\n{here.below}"))
    code = IMPORTS.sub("", text)
    bound = {word for each in (here.head, *IMPORTS.findall(text)) for word in WORD.findall(each)}
    bound.update(word for found in BINDING.findall(code) for word in WORD.findall(" ".join(found)))
    free = dict.fromkeys(name for name in USED.findall(code) if name not in bound)
    return [name for name in free if not (iskeyword(name) or hasattr(builtins, name) or name.startswith("__"))]


BEGUN = re.compile(r"\A[^=(:]*(?:[=(:]\s*)?")


def mirrored(here: Scene) -> Iterator[str]:
    """The rest of a line above, with those names exchanged in which the lines have differed so far: where the line
    above follows from another in the same way."""
    lines = [] if re.search(r"\w\Z", here.head) else here.lines
    begun = "".join(BEGUN.findall(lines[0])[:1]) if lines else ""
    if any(likened(line, begun) == lines[0] for line in lines[1:4]):
        yield from filter(None, (likened(line, here.head) for line in lines))


def likened(line: str, head: str) -> str:
    """The line that begins with `head` and goes on like another, "" if that is no news, or they begin differently."""
    tokens, start = TOKEN.findall(line), TOKEN.findall(head)
    if len(tokens) <= len(start) or not any(map(WORD.match, start)):
        return ""
    exchanged, rest = exchange(tokens[: len(start)], start), "".join(tokens[len(start) :])
    made = WORD.sub(lambda word: replaced(word[0], exchanged), rest)
    return head + made if made != rest else ""


def exchange(old: Sequence[str], new: Sequence[str]) -> dict[str, str]:
    """Which name stands for which, in two beginnings of lines that are alike but for names; empty if they are not."""
    found: dict[str, str] = {}
    for one, other in zip(old, new, strict=True):
        is_name = WORD.match(one) and WORD.match(other) and not {one, other} & KEYWORDS
        if one != other and (not is_name or found.setdefault(one, other) != other):
            return {}
    return found


def replaced(word: str, exchanged: dict[str, str]) -> str:
    """The name that stands for this one, or has that part of it exchanged in which two names differ."""
    if word in exchanged:
        return exchanged[word]
    parts = PARTS.findall(word)
    for old, new in exchanged.items():
        one, other = difference(PARTS.findall(old), PARTS.findall(new))
        for write in (str, str.lower, str.upper, str.capitalize):
            if one and other and write(one) in parts:
                return word.replace(write(one), write(other))
    return word


def difference(one: Sequence[str], other: Sequence[str]) -> tuple[str, str]:
    """What stands in two names between what they begin and end with alike."""
    shortest = min(len(one), len(other))
    start = next((at for at in range(shortest) if one[at] != other[at]), shortest)
    end = next((at for at in range(shortest - start) if one[-1 - at] != other[-1 - at]), shortest - start)
    return "".join(one[start : len(one) - end]), "".join(other[start : len(other) - end])


SHAPES = {
    "imported": Shape(imported, 0.85, 0.39),
    "stored": Shape(stored, 0.5, 0.06),
    "arguments": Shape(arguments, 0.42, 0.17),
    "passed_on": Shape(passed_on, 0.87, 0.1),
    "mirrored": Shape(mirrored, 0.29, 0.09),
    "arguments_of_others": Shape(arguments_of_others, 0.28, 0.2),
}
"""Fitted on rows of repositories that judge nothing."""
