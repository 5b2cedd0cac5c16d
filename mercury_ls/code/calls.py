"""Calls and what they are given, read from text, since code that is being written parses badly."""

import re
from collections.abc import Iterator

from msgspec import Struct

__all__ = ["QUOTED", "Call", "Parameter", "bracketed", "call_at", "named", "parameters", "signature", "split"]

LONGEST_CALL = 800
LONGEST_SIGNATURE = 2000
LONGEST_CLASS = 8000

OPENERS, CLOSERS = "([{", ")]}"
QUOTED = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`")
CALLEE = re.compile(r"(?<![\w.])((?:[^\W\d]\w*(?:\(\))?\.)*[^\W\d]\w*)\Z")
DEFINING = re.compile(r"\b(?:def|function|func|fn|class)\s+(?:\([^()]*\)\s*)?\Z")
NAMED = re.compile(r"(\w+)\s*=(?![=>])")
RECEIVER = re.compile(r"\bfunc\s*\([^()]*\)\s*(?=\w)")
COMMENT = re.compile(r"#[^\n]*|//[^\n]*")
WORD = re.compile(r"[^\W\d]\w*")
MODIFIERS = "(?:async|const|export|override|private|protected|public|readonly|static)"
CONSTRUCTOR = re.compile(r"\b(?:__init__|constructor)\s*(?=\()")
TYPE_FIRST = frozenset({"c", "cpp", "csharp", "java"})
"""Languages in which a parameter's type stands before its name."""


class Call(Struct, frozen=True):
    """A call that is being written: its function, the arguments before the last comma, and what is typed behind it."""

    function: str
    given: tuple[str, ...]
    typed: str


class Parameter(Struct, frozen=True):
    """A parameter as it is declared; unless `is_positional` it can only be given by its name."""

    name: str
    type: str = ""
    default: str = ""
    is_positional: bool = True


def call_at(text: str) -> Call | None:
    """The innermost call that is open at the end of a text."""
    text = text[-LONGEST_CALL:]
    blank, depth = unquoted(text), 0
    for at in range(len(blank) - 1, -1, -1):
        depth += (blank[at] in CLOSERS) - (blank[at] in OPENERS)
        if depth < 0:
            function = CALLEE.search(text[:at])
            if text[at] != "(" or function is None or DEFINING.search(text[: function.start()]):
                return None
            *given, typed = split(text[at + 1 :])
            return Call(function[1], tuple(each.strip() for each in given), typed.lstrip())
    return None


def named(argument: str) -> str:
    """The name by which an argument is given, "" if its place says what it is."""
    found = NAMED.match(argument)
    return found[1] if found else ""


def split(text: str) -> list[str]:
    """At the commas that stand outside of brackets and quotes."""
    found, depth, start = [], 0, 0
    for at, character in enumerate(unquoted(text)):
        depth += (character in OPENERS) - (character in CLOSERS)
        if character == "," and depth == 0:
            found.append(text[start:at])
            start = at + 1
    return [*found, text[start:]]


def unquoted(text: str) -> str:
    """With what is quoted blanked, character for character."""
    return QUOTED.sub(lambda found: "_" * len(found[0]), text)


def bracketed(text: str, start: int = 0) -> str:
    """From `start` to the bracket that closes the first parenthesis; "" if none does."""
    depth, first = 0, text.find("(", start)
    for at in range(first, min(len(text), first + LONGEST_SIGNATURE)) if first >= 0 else ():
        depth += (text[at] in OPENERS) - (text[at] in CLOSERS)
        if depth == 0:
            return text[start : at + 1]
    return ""


def signature(text: str, name: str, language: str) -> str:
    """A function in a text, from its name to the end of its parameters; of a class its constructor."""
    made = re.search(rf"\bclass {name}\b", text)
    if made is not None:
        body = text[made.end() : made.end() + LONGEST_CLASS]
        first = CONSTRUCTOR.search(re.split(r"\n(?=\S)", body, maxsplit=1)[0] if language == "python" else body)
        return bracketed(body, first.start()) if first else ""
    declared = re.search(rf"\b(?:def|function|func(?:\s*\([^()\n]*\))?|fn)\s+({name})\b[^(\n]*(?=\()", text)
    if declared is None and language != "python":
        method = rf"^[ \t]*(?:{MODIFIERS} )*({name})\b(?: = )?(?:async )?(?=\([^\n\"'`]*[{{>]\s*$)"
        declared = re.search(method, text, re.MULTILINE)
    return bracketed(text, declared.start(1)) if declared else ""


def parameters(header: str, language: str) -> list[Parameter]:
    """Of the header of a function, without the object itself and without those that collect the rest."""
    found: list[Parameter] = []
    is_positional = True
    for text in listed(header):
        if text.startswith("*") and not text.startswith("**"):
            is_positional = False
        declared, _, default = text.partition("=")
        name, _, kind = declared.partition(":")
        words = WORD.findall(name)
        if not words or text[0] in "*/{[&." or words[-1] in ("self", "cls", "this"):
            continue
        if language == "go":
            name, kind = words[0], declared.partition(words[0])[2]
        elif language in TYPE_FIRST:
            kind = " ".join(words[:-1])
        optional = default.strip() or ("?" if name.rstrip().endswith("?") else "")
        found.append(Parameter(words[0 if language == "go" else -1], kind.strip(), optional, is_positional))
    return found


def listed(header: str) -> Iterator[str]:
    """The parameters as they are written."""
    whole = bracketed(RECEIVER.sub("", header))
    return (text for each in split(COMMENT.sub("", whole[whole.find("(") + 1 : -1])) if (text := each.strip()))
