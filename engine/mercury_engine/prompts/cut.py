"""Where an answer ends for the user: one line, or one statement with the block that it opens, by indentation."""

import re
from collections.abc import Sequence

from msgspec import Struct

from mercury_engine.api import Gap
from mercury_engine.prompts.lines import indentation

END = frozenset({"end"})
SHELL = frozenset({"fi", "done", "esac"})
CLOSING_WORDS = {
    **dict.fromkeys(("ruby", "crystal", "elixir", "julia", "fish", "matlab"), END),
    "lua": frozenset({"end", "until"}),
    **dict.fromkeys(("shellscript", "bash", "sh", "zsh"), SHELL),
}
CONTINUING_WORDS = frozenset({"else", "elif", "elsif", "elseif", "except", "finally", "catch", "rescue", "ensure"})
ENDED_BY_SEMICOLON = frozenset({"sql", "plsql", "mysql", "pgsql"})

FIRST_WORD = re.compile(r"\s*(\w*)")
DECIDED = re.compile(r"\s*(?:\w+\W|[^\w\s])")
"""A line that is still being written, of which the first word is there."""

OPENS_BLOCK = re.compile(r"[:{]\s*\Z")
UNFINISHED = re.compile(r"(?:\\|&&|\|\||[-+*/%=<]|\band|\bor)\s*\Z")
PREAMBLE = re.compile(r"\s*(?:@|//|/\*|\*/|\*\s|--\s|#(?!\s*(?:include|define|if|ifdef|ifndef|endif|pragma)\b))")
"""Decorators, attributes and comments: they belong to the statement below them."""

TEXT_QUOTE = re.compile(r'"""|\'\'\'')
TEXT_QUOTE_OR_TEMPLATE = re.compile(r'"""|\'\'\'|`')
WITH_TEMPLATES = frozenset({"javascript", "javascriptreact", "typescript", "typescriptreact", "tsx", "go"})
"""Languages whose backticks are around texts of several lines."""

QUOTED = re.compile(r"""(?<!\\)(?:"(?:\\.|[^"\\\n])*+"|`(?:\\.|[^`\\\n])*+`|(?<![\w<&])'(?:\\.|[^'\\\n])*+')""")
BRACKETS = re.compile(r"[()\[\]{}]")


def cut(gap: Gap, answer: str, *, finished: bool) -> tuple[str, bool]:
    """The part of an answer to show in a gap, and whether it is all that there will be: then
    nothing needs to be generated any more. `finished` says that the model has ended the answer by itself.

    Without the tail that repeats the head of what follows. Of an answer that was stopped in the middle, whole lines,
    with the line feed that ends the last of them, or what there is of the first.
    """
    before, after, language = gap.before, gap.after, gap.language
    if not gap.block:
        line, ended, _ = answer.partition("\n")
        complete = finished or bool(ended)
        return (_without_overlap(before, line, after) if complete else line), complete
    if (head := _head_of_body(before, answer, after)) is not None:
        return head, True
    text, complete = (_before_after(answer, after), True) if finished else _statement(before, answer, after, language)
    return (_without_overlap(before, text, after) if complete else text), complete


class _IndentedBlock(Struct):
    """What is known of the statement so far. `base` is its indentation."""

    base: int
    language: str
    is_body: bool
    depth: int = 0
    previous: str = ""
    has_block: bool = False
    is_closed: bool = False
    is_preamble: bool = True
    after_blank: bool = False
    is_quoted: bool = False

    def continues_with(self, line: str) -> bool:
        if self.is_quoted or self.depth > 0 or indentation(line) > self.base:
            return True
        if indentation(line) < self.base or self.is_closed:
            return False
        if self.closes_with(line):
            return True
        start = line.lstrip()[0]
        return start not in ")]}" and (self._is_unfinished() or self._is_continued_by(line, start))

    def _is_unfinished(self) -> bool:
        """Whether what was written so far needs another line."""
        if self.is_preamble or UNFINISHED.search(self.previous):
            return True
        return not self.after_blank and (self.is_body or self.awaits_semicolon)

    def _is_continued_by(self, line: str, start: str) -> bool:
        """Whether a line of the same indentation can only go on with what stands above it."""
        if start == ".":
            return True
        if start == "{":
            return not self.previous.endswith((";", "}"))
        word = FIRST_WORD.match(line)[1]  # pyright: ignore[reportOptionalSubscript]
        if word == "where" and self.language == "rust":
            return True
        return self.has_block and (word in CONTINUING_WORDS or start == ">")

    def closes_with(self, line: str) -> bool:
        words = CLOSING_WORDS.get(self.language, ())
        return self.has_block and (FIRST_WORD.match(line)[1] in words or line.lstrip().startswith("</"))  # pyright: ignore[reportOptionalSubscript]

    @property
    def awaits_semicolon(self) -> bool:
        return self.language in ENDED_BY_SEMICOLON and not self.previous.endswith(";")

    def add(self, line: str) -> None:
        if not line.strip():
            self.after_blank = True
            return
        is_code = not self._is_in_text(line)
        if is_code:
            at_base = indentation(line) <= self.base and self.depth <= 0
            self.is_closed = at_base and not self.is_body and self.closes_with(line)
            self.has_block = self.has_block or not at_base
            self.depth = max(self.depth + _opened(line) - _closed(line), 0)
        self.previous = line.rstrip()
        self.is_preamble = self.is_preamble and is_code and bool(PREAMBLE.match(line))
        self.after_blank = False

    def _is_in_text(self, line: str) -> bool:
        """Whether a text of several lines begins, goes on or ends on it."""
        quotes = TEXT_QUOTE_OR_TEMPLATE if self.language in WITH_TEMPLATES else TEXT_QUOTE
        was_quoted, self.is_quoted = self.is_quoted, self.is_quoted ^ (len(quotes.findall(line)) % 2 == 1)
        return was_quoted or self.is_quoted


def _statement(before: str, answer: str, after: str, language: str) -> tuple[str, bool]:
    """The first statement of the answer with the block that it opens, or the first paragraph of an empty block; and
    whether something else follows it."""
    head = before[before.rfind("\n") + 1 :]
    lines = (head + answer).split("\n")
    whole = len(lines) - 1
    first = _first_line(lines, head)
    if first is None:
        return "", False
    following = _next_line(after)
    base = indentation(lines[first])
    block = _IndentedBlock(base, language, _ends_body(before, head, base, following))
    block.add(lines[first])
    block.is_preamble = block.is_preamble and not head.strip()
    for number in range(first + 1, len(lines)):
        line = lines[number]
        blank = not line.strip()
        if number >= whole and (blank or not DECIDED.match(line)) and not (line.strip() and indentation(line) < base):
            break
        repeats = number < whole and line.rstrip() == following.rstrip() and re.search(r"\w", line)
        if not blank and (repeats or not block.continues_with(line)):
            return _joined(lines[:number], head), True
        block.add(line)
    if whole > first:
        return "".join(f"{line}\n" for line in lines[:whole])[len(head) :], False
    return _joined(lines, head), False


def _head_of_body(before: str, answer: str, after: str) -> str | None:
    """The lines that open a block whose body stands behind the gap already."""
    head = before[before.rfind("\n") + 1 :]
    lines = (head + answer).split("\n")
    first = _first_line(lines, head)
    if first is None or indentation(_next_line(after)) <= indentation(lines[first]):
        return None
    opening = (number for number in range(first, len(lines) - 1) if OPENS_BLOCK.search(lines[number]))
    last = next(opening, None)
    return None if last is None else _joined(lines[: last + 1], head)


def _before_after(answer: str, after: str) -> str:
    """The answer without the lines in which it repeats what follows, and without all behind these."""
    lines, following = answer.split("\n"), after.partition("\n")[2].lstrip("\n").split("\n")
    for number in range(1, len(lines)):
        pairs = list(zip(lines[number:], following, strict=False))
        if re.search(r"\w", lines[number]) and all(line.rstrip() == other.rstrip() for line, other in pairs):
            return "\n".join(lines[:number]).rstrip("\n")
    return answer


def _first_line(lines: Sequence[str], head: str) -> int | None:
    """The line on which the statement begins: that of the cursor if the answer continues it, or writes its block."""
    if lines[0][len(head) :].strip():
        return 0
    number = next((number for number in range(1, len(lines)) if lines[number].strip()), None)
    if number is not None and head.strip() and indentation(lines[number]) > indentation(head):
        return 0
    return number


def _ends_body(before: str, head: str, base: int, following: str) -> bool:
    """Whether the cursor is on a blank line, and nothing below it belongs to the same block."""
    above = next((line for line in reversed(before.split("\n")[:-1]) if line.strip()), "")
    ends = not following or indentation(following) < base
    return not head.strip() and bool(above) and base > 0 and ends


def _next_line(after: str) -> str:
    """The first line below the cursor's that is not blank, "" if something follows the cursor on its own."""
    line_after, _, below = after.partition("\n")
    return "" if line_after.strip() else next((line for line in below.split("\n") if line.strip()), "")


def _joined(lines: Sequence[str], head: str) -> str:
    return "\n".join(lines)[len(head) :].rstrip()


def _without_overlap(before: str, answer: str, after: str) -> str:
    """Without the longest tail that stands at the head of `after`, unless the brackets need it twice."""
    line = before[before.rfind("\n") + 1 :]
    line_after = after.partition("\n")[0].rstrip()
    below = "" if line_after else after.partition("\n")[2]
    for tail in (_tail_on_line(answer, line_after), _tail_of_lines(answer, below)):
        head = answer[: len(answer) - len(tail)]
        if tail and (
            _unmatched(line + head + line_after) <= _unmatched(line + answer + line_after) or _says_much(tail)
        ):
            return head
    return answer


def _tail_on_line(answer: str, line_after: str) -> str:
    if not line_after.strip():
        return ""
    sizes = (size for size in range(len(line_after), 0, -1) if answer.endswith(line_after[:size]))
    return next((line_after[:size] for size in sizes if not _parts_word(line_after, size)), "")


def _parts_word(text: str, at: int) -> bool:
    return bool(re.match(r"\w\w", text[at - 1 : at + 1]))


def _tail_of_lines(answer: str, below: str) -> str:
    """The last whole lines of the answer that are the first ones of `below`, with the line feed that separates them."""
    lines = answer.removesuffix("\n").split("\n")
    following = [line.rstrip() for line in below.lstrip("\n").split("\n")]
    for size in range(min(len(lines), len(following)), 0, -1):
        if any(following[:size]) and [line.rstrip() for line in lines[-size:]] == following[:size]:
            head = "\n".join(lines[:-size]) + "\n" * (answer.endswith("\n") and size < len(lines))
            return answer[len(head) :]
    return ""


def _says_much(tail: str) -> bool:
    """Whether it is lines of words, which nobody writes twice in a row, rather than closing brackets."""
    return "\n" in tail.strip("\n") and bool(re.search(r"\w", tail))


def _opened(line: str) -> int:
    return sum(bracket in "([{" for bracket in BRACKETS.findall(QUOTED.sub("", line)))


def _closed(line: str) -> int:
    return sum(bracket in ")]}" for bracket in BRACKETS.findall(QUOTED.sub("", line)))


def _unmatched(text: str) -> int:
    """How many brackets have no partner."""
    closers: list[str] = []
    alone = 0
    for bracket in BRACKETS.findall(QUOTED.sub("", text)):
        if bracket in "([{":
            closers.append(bracket)
        elif closers and closers[-1] + bracket in ("()", "[]", "{}"):
            closers.pop()
        else:
            alone += 1
    return alone + len(closers)
