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

__all__ = ["SHAPES", "Elsewhere", "Scene", "ShapedLine", "proposed", "proposed_lines", "scene"]

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
        return next((header for header in around if not CLASS.match(header)), "")

    @property
    def body(self) -> str:
        """The function around, from its header to the cursor."""
        at = self.above.rfind(self.function) if self.function else -1
        return self.above[max(at, len(self.above) - LONGEST_FUNCTION, 0) :]

    @property
    def bases(self) -> list[str]:
        """The classes from which the one around derives."""
        header = next((line for line in reversed(self.headers) if CLASS.match(line)), "")
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


class ShapedLine(Struct, frozen=True):
    """Writes whole lines, without their indentation; only those are proposed that begin like the line at the cursor.
    `first` and `other` say how often its first proposal is right, and any other."""

    lines: Callable[[Scene], Iterator[str]]
    first: float
    other: float


def proposed(snapshot: Snapshot, offset: int, elsewhere: Elsewhere) -> tuple[Proposed, ...]:
    """What may follow the cursor, the likeliest first."""
    if len(snapshot.text) > LARGEST_TEXT:
        return ()
    place = scene(snapshot, offset, elsewhere)
    shapes = [
        Proposed(text, SHAPES[shape].other if rank else SHAPES[shape].first)
        for shape, rank, text in proposed_lines(place)
    ]
    return tuple(sorted(shapes, key=lambda shape: -shape.chance))


def proposed_lines(place: Scene) -> Iterator[tuple[str, int, str]]:
    """The shape of each proposal, the how many-th of that shape it is, and its text behind the cursor."""
    proposed: set[str] = set()
    for name, shape in SHAPES.items():
        rests = (line[len(place.head) :].rstrip() for line in shape.lines(place) if line.startswith(place.head))
        fresh = (continuation for continuation in rests if continuation and continuation not in proposed)
        for rank, continuation in enumerate(islice(fresh, MOST)):
            proposed.add(continuation)
            yield name, rank, continuation


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


def stored(place: Scene) -> Iterator[str]:
    """`self.x = x` for the parameters of a constructor that its body does not use yet: one, or all of them."""
    if not re.search(r"\b(?:__init__|constructor)\s*\(", place.function):
        return
    body = place.body[len(place.function) :]
    private = "_" if re.search(rf"\b{place.own}\._(\w+) = \1\b", body) else ""
    lines = [
        f"{place.own}.{private}{parameter.name} = {parameter.name}{place.end}"
        for parameter in parameters(place.function, place.language)
        if not re.search(rf"\b{parameter.name}\b", body)
    ]
    yield from lines
    if len(lines) > 1:
        yield f"\n{place.indent}".join(lines)


def arguments(place: Scene) -> Iterator[str]:
    """The arguments that a call lacks, from what is named like the function's parameters, or said to be of their
    types."""
    yield from filled(place, is_of_self=True)


def arguments_of_others(place: Scene) -> Iterator[str]:
    """The same where a function is only known by its name, since it is a member of something."""
    yield from filled(place, is_of_self=False)


def filled(place: Scene, *, is_of_self: bool) -> Iterator[str]:
    call = call_at(place.above + place.indent + place.head)
    if call is None or (call.function.rpartition(".")[0] in SELVES) != is_of_self or place.declares:
        return
    before = place.head[: len(place.head) - len(call.typed)]
    for declared in islice(declarations(place, call.function), 2):
        declared_parameters = parameters(declared, place.language)
        names = {named(argument) for argument in call.arguments}
        missing = [
            parameter
            for parameter in declared_parameters[len(call.arguments) - len(names - {""}) :]
            if parameter.name not in names
        ]
        yield from (before + filling for filling in fillings(place, missing, bool(names - {""})))


def declarations(place: Scene, function: str) -> Iterator[str]:
    """How a function, or the constructor of a class, is declared here and in other files."""
    name = function.rpartition(".")[2]
    if function.startswith("super()."):
        yield from inherited(place, name)
    elif name not in KEYWORDS:
        yield from filter(None, (signature(text, name, place.language) for text in place.texts(name)))


def fillings(place: Scene, missing: Sequence[Parameter], by_name: bool) -> Iterator[str]:
    """The arguments for these parameters: with the optional ones of which there is something here, then without; no
    more than can be told."""
    values = values_of(place)
    must: list[str] = []
    may: list[str] = []
    for parameter in missing:
        value = values.get(parameter.name) or (values.get(parameter.type) if parameter.type else None)
        if value is None:
            if parameter.default:
                continue
            if must:
                yield ", ".join(must) + ","
            return
        argument = (
            f"{parameter.name}={value}" if place.is_python and (by_name or not parameter.is_positional) else value
        )
        if not parameter.default:
            must.append(argument)
        elif value and place.is_python:
            may.append(f"{parameter.name}={value}")
    if may:
        yield ", ".join([*must, *may]) + ")"
    if must:
        yield ", ".join(must) + ")"


def values_of(place: Scene) -> dict[str, str]:
    """What may be given for a parameter, by its name or its type: names in the function, members of the object."""
    own_parameters = [parameter for header in place.headers for parameter in parameters(header, place.language)]
    members = OF_SELF.findall(place.above[-LONGEST_FUNCTION:]) if place.indent and place.headers else []
    by_name = {name.lstrip("_"): f"{place.own}.{name}" for name in members}
    types = Counter(parameter.type for parameter in own_parameters if parameter.type)
    by_name |= {parameter.type: parameter.name for parameter in own_parameters if types[parameter.type] == 1}
    names = [*(parameter.name for parameter in own_parameters), *BOUND.findall(place.body)]
    return by_name | {name: name for name in names if name not in KEYWORDS}


def inherited(place: Scene, name: str) -> Iterator[str]:
    """How the bases declare a method, up to the end of its parameters."""
    for body in (body for base in place.bases for body in bodies(place, base)):
        heading = re.search(rf"\b{name}\s*(?=\()", body)
        if heading and (header := bracketed(body, heading.start())):
            yield header


def bodies(place: Scene, name: str) -> Iterator[str]:
    """The text of a class."""
    for text in place.texts(name):
        heading = re.search(rf"^( *)(?:\w+ )*class {name}\b", text, re.MULTILINE)
        if heading:
            body = text[heading.start() : heading.start() + LONGEST_FUNCTION]
            end = re.search(rf"\n{heading[1]}(?=[^\s)#}}])", body)
            yield body[: end.start()] if end else body
            return


def passed_on(place: Scene) -> Iterator[str]:
    """The call of the method that this one overrides, with its own parameters, where `super` is written."""
    method, begun = re.search(r"(?:def\s+)?(\w+)\s*\(", place.function), re.match(r"(.*?\b)super\b", place.head)
    if method is None or begun is None or not place.bases:
        return
    own_parameters = parameters(place.function, place.language)
    arguments = [
        parameter.name if parameter.is_positional else f"{parameter.name}={parameter.name}"
        for parameter in own_parameters
    ]
    if not place.is_python:
        constructs = method[1] == "constructor"
        yield f"{begun[1]}super{'' if constructs else '.' + method[1]}({', '.join(arguments)}){place.end}"
        return
    pieces = [piece.strip() for piece in split(bracketed(place.function).partition("(")[2][:-1])]
    arguments += [star[0] for piece in pieces if (star := re.match(r"\*+\w+", piece))]
    yield f"{begun[1]}super().{method[1]}({', '.join(arguments)})"


def imported(place: Scene) -> Iterator[str]:
    """The names that the file uses and nothing binds: those that the module defines, or any where it is unknown."""
    begun = re.match(r"(from (\S+) import (?:\w+, )*)\w*\Z", place.head)
    if begun is None or not place.is_python or len(place.above) + len(place.below) > LARGEST_IMPORTING:
        return
    missing, module = unbound(place), place.elsewhere.module(begun[2])
    if module is not None:
        words = (word for names in IMPORTS.findall(module) for word in WORD.findall(names))
        defined = {*DEFINED.findall(module), *words}
        importable = [name for name in missing if name in defined]
        missing = importable or missing
        if len(importable) > 1:
            yield begun[1] + ", ".join(sorted(importable))
    yield from (begun[1] + name for name in missing)


def unbound(place: Scene) -> list[str]:
    """In the order of their first use."""
    text = STRING.sub("", PROSE.sub("", f"{place.above}\n{place.below}"))
    code = IMPORTS.sub("", text)
    bound = {word for text_part in (place.head, *IMPORTS.findall(text)) for word in WORD.findall(text_part)}
    bound.update(word for match in BINDING.findall(code) for word in WORD.findall(" ".join(match)))
    free = dict.fromkeys(name for name in USED.findall(code) if name not in bound)
    return [name for name in free if not (iskeyword(name) or hasattr(builtins, name) or name.startswith("__"))]


BEGUN = re.compile(r"\A[^=(:]*(?:[=(:]\s*)?")


def mirrored(place: Scene) -> Iterator[str]:
    """The rest of a line above, with those names exchanged in which the lines have differed so far: where the line
    above follows from another in the same way."""
    lines = [] if re.search(r"\w\Z", place.head) else place.lines
    begun = "".join(BEGUN.findall(lines[0])[:1]) if lines else ""
    if any(likened(line, begun) == lines[0] for line in lines[1:4]):
        yield from filter(None, (likened(line, place.head) for line in lines))


def likened(line: str, head: str) -> str:
    """The line that begins with `head` and goes on like another, "" if that is no news, or they begin differently."""
    tokens, start = TOKEN.findall(line), TOKEN.findall(head)
    if len(tokens) <= len(start) or not any(map(WORD.match, start)):
        return ""
    exchanged, tail = exchange(tokens[: len(start)], start), "".join(tokens[len(start) :])
    changed = WORD.sub(lambda word: replaced(word[0], exchanged), tail)
    return head + changed if changed != tail else ""


def exchange(old: Sequence[str], new: Sequence[str]) -> dict[str, str]:
    """Which name stands for which, in two beginnings of lines that are alike but for names; empty if they are not."""
    exchanged: dict[str, str] = {}
    for old_word, new_word in zip(old, new, strict=True):
        is_name = WORD.match(old_word) and WORD.match(new_word) and not {old_word, new_word} & KEYWORDS
        if old_word != new_word and (not is_name or exchanged.setdefault(old_word, new_word) != new_word):
            return {}
    return exchanged


def replaced(word: str, exchanged: dict[str, str]) -> str:
    """The name that stands for this one, or has that part of it exchanged in which two names differ."""
    if word in exchanged:
        return exchanged[word]
    parts = PARTS.findall(word)
    for old, new in exchanged.items():
        old_part, new_part = difference(PARTS.findall(old), PARTS.findall(new))
        for write in (str, str.lower, str.upper, str.capitalize):
            if old_part and new_part and write(old_part) in parts:
                return word.replace(write(old_part), write(new_part))
    return word


def difference(first: Sequence[str], second: Sequence[str]) -> tuple[str, str]:
    """What stands in two names between what they begin and end with alike."""
    shortest = min(len(first), len(second))
    start = next((at for at in range(shortest) if first[at] != second[at]), shortest)
    end = next((at for at in range(shortest - start) if first[-1 - at] != second[-1 - at]), shortest - start)
    return "".join(first[start : len(first) - end]), "".join(second[start : len(second) - end])


SHAPES = {
    "imported": ShapedLine(imported, 0.85, 0.39),
    "stored": ShapedLine(stored, 0.5, 0.06),
    "arguments": ShapedLine(arguments, 0.42, 0.17),
    "passed_on": ShapedLine(passed_on, 0.87, 0.1),
    "mirrored": ShapedLine(mirrored, 0.29, 0.09),
    "arguments_of_others": ShapedLine(arguments_of_others, 0.28, 0.2),
}
"""Fitted on rows of repositories that judge nothing."""
