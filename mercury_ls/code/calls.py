"""Calls and what they are given, read from text, since code that is being written parses badly."""

import re

from msgspec import Struct

from mercury_ls.code.brackets import PAIRS, split, unclosed, unquoted
from mercury_ls.code.differences import WORD
from mercury_ls.code.symbols import SELVES

__all__ = ["Call", "Parameter", "bracketed", "call_at", "named", "parameters", "parameters_in", "signature"]

LONGEST_CALL = 800
LONGEST_SIGNATURE = 2000
LONGEST_CLASS = 8000

CALLEE = re.compile(r"(?<![\w.])((?:[^\W\d]\w*(?:\(\))?\.)*[^\W\d]\w*)\Z")
DEFINING = re.compile(r"\b(?:def|function|func|fn|class)\s+(?:\([^()]*\)\s*)?\Z")
NAMED = re.compile(r"(\w+)\s*=(?![=>])")
RECEIVER = re.compile(r"\bfunc\s*\([^()]*\)\s*(?=\w)")
DEFAULT = re.compile(r"=(?!>)")
COMMENT = re.compile(r"#[^\n]*|//[^\n]*")
MODIFIERS = "(?:async|const|export|override|private|protected|public|readonly|static)"
CONSTRUCTOR = re.compile(r"\b(?:__init__|constructor)\s*(?=\()")
TYPE_FIRST = frozenset({"c", "cpp", "csharp", "java", "php"})
"""Languages in which a parameter's type stands before its name."""


class Call(Struct, frozen=True):
    """A call that is being written: its function, the arguments before the last comma, and what is typed behind it."""

    function: str
    arguments: tuple[str, ...]
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
    openings = unclosed(unquoted(text))
    function = CALLEE.search(text[: openings[-1]]) if openings else None
    if function is None or text[openings[-1]] != "(" or DEFINING.search(text[: function.start()]):
        return None
    *arguments, typed = split(text[openings[-1] + 1 :])
    return Call(function[1], tuple(argument.strip() for argument in arguments), typed.lstrip())


def named(argument: str) -> str:
    """The name by which an argument is given, "" if its place says what it is."""
    match = NAMED.match(argument)
    return match[1] if match else ""


def bracketed(text: str, start: int = 0) -> str:
    """From `start` to the bracket that closes the first parenthesis; "" if none does."""
    depth, first = 0, text.find("(", start)
    for at in range(first, min(len(text), first + LONGEST_SIGNATURE)) if first >= 0 else ():
        depth += (text[at] in PAIRS) - (text[at] in PAIRS.values())
        if depth == 0:
            return text[start : at + 1]
    return ""


def signature(text: str, name: str, language: str) -> str:
    """A function in a text, from its name to the end of its parameters; of a class its constructor."""
    class_heading = re.search(rf"\bclass {name}\b", text)
    if class_heading is not None:
        body = text[class_heading.end() : class_heading.end() + LONGEST_CLASS]
        first = CONSTRUCTOR.search(re.split(r"\n(?=\S)", body, maxsplit=1)[0] if language == "python" else body)
        return bracketed(body, first.start()) if first else ""
    declared = re.search(rf"\b(?:def|function|func(?:\s*\([^()\n]*\))?|fn)\s+({name})\b[^(\n]*(?=\()", text)
    if declared is None and language != "python":
        method = rf"^[ \t]*(?:{MODIFIERS} )*({name})\b(?: = )?(?:async )?(?=\([^\n\"'`]*[{{>]\s*$)"
        declared = re.search(method, text, re.MULTILINE)
    return bracketed(text, declared.start(1)) if declared else ""


def parameters(header: str, language: str) -> list[Parameter]:
    """Of the header of a function."""
    whole = bracketed(RECEIVER.sub("", header))
    return parameters_in(COMMENT.sub("", whole[whole.find("(") + 1 : -1]), language)


def parameters_in(text: str, language: str) -> list[Parameter]:
    """Those that a text lists, without the object itself, those that collect the rest, and patterns."""
    parameters: list[Parameter] = []
    is_positional = True
    for piece in filter(None, map(str.strip, split(text, types=True))):
        if piece.startswith("*") and not piece.startswith("**"):
            is_positional = False
        declared, *default = DEFAULT.split(piece, maxsplit=1)
        name, _, kind = (declared, "", "") if language in TYPE_FIRST else declared.partition(":")
        words = [*WORD.finditer(name)]
        if not words or piece[0] in "*/([{." or words[-1][0] in SELVES:
            continue
        word = words[0 if language == "go" else -1]
        if language in TYPE_FIRST:
            kind = name[: word.start()].rstrip(" $&")
        elif language == "go":
            kind = name[word.end() :]
        optional = "".join(default).strip() or ("?" if name.rstrip().endswith("?") else "")
        parameters.append(Parameter(word[0], kind.strip(), optional, is_positional))
    return parameters
