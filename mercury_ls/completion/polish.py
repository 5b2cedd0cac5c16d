"""From a model's text to an edit worth showing: minimal, in the file's style, parsing no worse, undoing nothing."""

import re
import string
from functools import lru_cache

from mercury_engine.prompts.dialects import DIALECTS
from mercury_ls.code import languages, syntax, traits
from mercury_ls.code.brackets import PAIRS, QUOTED, closing, unclosed, unquoted
from mercury_ls.code.documents import Snapshot, unified
from mercury_ls.code.edits import TextEdit, is_word
from mercury_ls.code.history import History
from mercury_ls.code.languages import Language
from mercury_ls.code.lexemes import KEYWORDS, indentation, line_break
from mercury_ls.completion.repeated import repeats
from mercury_ls.completion.target import Silence, Target

TAG = re.compile(r"</?[a-z]+>")
TOKENS = {token for dialect in DIALECTS for token in (*dialect.tokens, *dialect.ends) if not TAG.fullmatch(token)}
"""Special tokens of all formats, but for those that may well be tags of a document."""
SENTINELS = re.compile(
    r"<\|[\w▁ ]{1,40}\|>|<(?:fim_|file_sep|EOT|eom>|mask>|hole\d>|cur>|near>|suf>)\S{0,20}|</?old>|[░▒▓]+"
    rf"|[\x00-\x08\x0b\x0e-\x1f\x7f]+|{'|'.join(map(re.escape, sorted(TOKENS)))}"
)
LONGEST_TAIL_LINES = 12
LONGEST_TAIL = 4000
STUTTERS, OFTEN = range(3, 41), 4
SHORTEST_SCRAP = 4
"""The least of a word's end, or of punctuation, that is worth showing: fewer characters are typed sooner than read."""

LONGEST_CALL = 4000
VALUE_END = re.compile(r"(?<!\w)(\w++)[ \t]*+\Z|[)\]}\"'`][ \t]*+\Z")
OPERAND = re.compile(r"[ \t]*(?:(\w+)|[\"'`])")
ARGUMENT = re.compile(r"[(\[,]\s*(\w*)\Z")
JUMP = re.compile(r"\s*(break|continue|def|del|raise|return|throw)\b")
"""The words with which only statements begin, in languages that have them."""
LOOSE_CHARACTERS = " \t,&|["
LOOSE_WORDS = frozenset({"and", "as", "else", "from", "if", "in", "instanceof", "is", "not", "of", "or"})
WORD_CHARACTERS = string.ascii_letters + string.digits + "_"
PRIVATE = re.compile(r"\.(#\w+)")


def polish(
    snapshot: Snapshot, target: Target, text: str, history: History, *, complete: bool = True
) -> TextEdit | Silence:
    """The part of a text that is worth showing. A text that is not `complete` need not parse yet."""
    text = without_sentinels(text, snapshot.text)
    text = in_the_files_style(text, snapshot)
    text = _within_target(text, snapshot, target)
    text = _without_repetition(text)
    text = _without_suffix_overlap(text, snapshot.text[target.end :])
    text = _with_brackets_balanced(text, snapshot, target).rstrip(" \t\r\n")
    if not text.strip():
        return Silence("nothing is left of the suggestion after cleaning it up")
    before = snapshot.text[: target.start]
    if not target.free and is_scrap(text, before):
        return Silence("only the end of a word, or punctuation, is left of the suggestion")
    if repeats(text, snapshot, target):
        return Silence("the suggestion repeats what is written already")
    if history.reverses(snapshot.path, snapshot.text, target.start, target.end, text):
        return Silence("the suggestion would undo what you have just done")
    if not target.free and _ends_argument(text, before):
        return Silence("the suggestion continues after an argument that may not be complete")
    if _begins_statement(text, snapshot, target):
        return Silence("the suggestion begins a statement within brackets")
    if _uses_undeclared_private(text, snapshot, target):
        return Silence("the suggestion uses a private name that the file does not declare")
    if complete and _parses_worse(snapshot, target, text):
        return Silence("the file would have more syntax errors than before")
    if _lacks_operator(snapshot, target, text):
        return Silence("the suggestion lacks an operator before it")
    if complete and _never_parses(snapshot, target, text):
        return Silence("the line would have a syntax error, however it goes on")
    return TextEdit(target.start, target.end, text, snapshot.uri)


def without_loose_end(text: str) -> str:
    """Without what only makes sense with what comes next: `first,` and `first and` promise more than `first` does, and
    are more often wrong. Of `first =` and `first(` that is not so.

    >>> without_loose_end("first, second and [")
    'first, second'
    """
    while True:
        trimmed = text.rstrip(LOOSE_CHARACTERS)
        word = trimmed[len(trimmed.rstrip(WORD_CHARACTERS)) :]
        if word not in LOOSE_WORDS or word == trimmed.strip():
            return trimmed
        text = trimmed.removesuffix(word)


def is_scrap(text: str, before: str) -> bool:
    """Whether it contains no word except the end of the one before the cursor, and hardly anything else."""
    own = re.sub(r"\A\w+", "", text) if re.search(r"\w\Z", before) else text
    return len("".join(text.split())) < SHORTEST_SCRAP and not re.search(r"\w", own)


def _ends_argument(text: str, before: str) -> bool:
    """Whether it only continues after an argument of a call that could end at the cursor: whether the argument does end
    there, the user knows better."""
    if not text.lstrip().startswith((",", ")")) or not re.search(r"[\w)\]}\"'`][ \t]*\Z", before):
        return False
    before = before[-LONGEST_CALL:]
    openings = unclosed(_skeleton(before))
    return (
        bool(openings) and before[openings[-1]] == "(" and bool(re.search(r"[\w)\]>][ \t]*\Z", before[: openings[-1]]))
    )


def _begins_statement(text: str, snapshot: Snapshot, target: Target) -> bool:
    """Whether its first word, where an argument or element begins, is one with which only a statement does."""
    language = languages.find(snapshot.language, snapshot.path)
    before = snapshot.text[max(target.start - LONGEST_CALL, 0) : target.start]
    begun, code = ARGUMENT.search(before), _skeleton(before)
    if language is None or begun is None or not (openings := unclosed(code)) or code[openings[-1]] == "{":
        return False
    if language.id in traits.JUMPS_ARE_EXPRESSIONS or syntax.inside(snapshot, target.start) is not None:
        return False
    jump = JUMP.match(begun[1] + text)
    return jump is not None and _is_of_grammar(jump[1], language)


def _uses_undeclared_private(text: str, snapshot: Snapshot, target: Target) -> bool:
    """Whether it uses a `#name` of JavaScript that is nowhere else: a class must declare it, and others cannot."""
    if snapshot.written_in.family != "javascript" or syntax.inside(snapshot, target.start) is not None:
        return False
    written = snapshot.text[: target.start] + "\n" + snapshot.text[target.end :]
    head = snapshot.text[snapshot.line_start(snapshot.line_of(target.start)) : target.start]
    names = (match[1] for match in PRIVATE.finditer(unquoted(head + text)) if match.end() > len(head))
    return any(not re.search(rf"{name}\b", written) for name in names)


def without_sentinels(text: str, document: str) -> str:
    """Cut at the first special token of a prompt format, unless the file itself contains it."""
    for match in SENTINELS.finditer(text):
        if match.group() not in document:
            return text[: match.start()]
    return text


def in_the_files_style(text: str, snapshot: Snapshot) -> str:
    """With the line ends of the file, and its tabs or spaces."""
    text = unified(text)
    if "\n" not in text:
        return text
    first, *lines = text.split("\n")
    unit = _indentation_unit(snapshot.text)
    indented = [_reindented(line, unit) for line in lines] if unit else lines
    return line_break(snapshot.text).join([first, *indented])


def _reindented(line: str, unit: str) -> str:
    head = indentation(line)
    body = line[len(head) :]
    if unit == "\t" and " " in head:
        return "\t" * (_columns(head) // 4) + body
    if unit != "\t" and "\t" in head:
        return " " * (head.count("\t") * len(unit) + head.count(" ")) + body
    return line


def _columns(head: str) -> int:
    return sum(4 if c == "\t" else 1 for c in head)


@lru_cache(maxsize=8)
def _indentation_unit(text: str) -> str:
    """What the file indents by: a tab, or the narrowest run of spaces at the start of a line; "" if by nothing yet."""
    tabs = text.count("\n\t")
    spaces = re.findall(r"\n( +)\S", text[:20_000])
    if tabs > len(spaces):
        return "\t"
    return " " * min((len(run) for run in spaces if len(run) > 1), default=0)


def _within_target(text: str, snapshot: Snapshot, target: Target) -> str:
    if not target.block:
        return re.split(r"\r?\n", text, maxsplit=1)[0]
    if target.free:
        return text
    base = _columns(indentation(snapshot.line(snapshot.line_of(target.start))))
    kept_lines: list[str] = []
    for piece in text.splitlines(keepends=True):
        if kept_lines and piece.strip() and _columns(indentation(piece)) < base:
            break
        kept_lines.append(piece)
    return "".join(kept_lines)


def _without_repetition(text: str) -> str:
    """Cut where the model begins to repeat itself: the same line three times, or a short piece many times."""
    lines = text.splitlines(keepends=True)
    for index in range(2, len(lines)):
        if lines[index].strip() and lines[index] == lines[index - 1] == lines[index - 2]:
            return "".join(lines[: index - 1])
    start, size = min(_stutter(text, size) for size in STUTTERS)
    return text[: start + size] if text[start : start + size].strip(" -=#*_.") else text


def _stutter(text: str, size: int) -> tuple[int, int]:
    """Where the text begins to consist of its last `size` characters repeated, and `size`."""
    start = max(len(text) - size, 0)
    while start >= size and text.startswith(text[-size:], start - size):
        start -= size
    return (start, size) if len(text) - start >= OFTEN * size else (len(text), size)


def _without_suffix_overlap(text: str, after: str) -> str:
    """Drop from the end what already follows the cursor, on its line or as whole lines below."""
    same_line = re.split(r"[\r\n]", after, maxsplit=1)[0].rstrip()
    body = text.rstrip()
    overlap = _overlap_length(body, same_line)
    if overlap and not (_self_contained(body) and not _self_contained(body[:-overlap])):
        return body[:-overlap]
    return _without_repeated_lines(text, after)


def _overlap_length(text: str, after: str) -> int:
    """The length of the longest end of `text` with which `after` begins; part of a word is no overlap."""
    for length in range(min(len(text), len(after)), 0, -1):
        if text.endswith(after[:length]) and (length == len(after) or not after[:length].isalnum()):
            return length
    return 0


def _self_contained(text: str) -> bool:
    """Whether every bracket and quote is closed within the text: `f(x)` after `print(` does not end the call."""
    pairs = all(text.count(a) == text.count(b) for a, b in PAIRS.items())
    return pairs and all(text.count(quote) % 2 == 0 for quote in "\"'`")


def _without_repeated_lines(text: str, after: str) -> str:
    lines = text.splitlines(keepends=True)
    below = first_lines(after, LONGEST_TAIL_LINES)
    for index in range(1, len(lines)):
        following = [line.rstrip() for line in lines[index:] if line.strip()]
        if following and following == below[: len(following)]:
            return "".join(lines[:index])
    return text


def first_lines(text: str, count: int) -> list[str]:
    """Those that are not blank, of a text that may be very long."""
    lines: list[str] = []
    for size in (LONGEST_TAIL, len(text)):
        lines = [line.rstrip() for line in text[:size].splitlines() if line.strip()]
        if len(lines) > count:  # so that the last of them, which may have been cut, is not needed
            break
    return lines[:count]


def _with_brackets_balanced(text: str, snapshot: Snapshot, target: Target) -> str:
    """Cut before a bracket that closes nothing: opened neither here nor before the cursor."""
    available = _unclosed_before(snapshot, target)
    stack: list[str] = []
    for index, character in enumerate(_skeleton(text)):
        if character in PAIRS:
            stack.append(PAIRS[character])
        elif character in PAIRS.values():
            if stack and stack[-1] == character:
                stack.pop()
            elif not stack and available and available[-1] == character:
                available.pop()
            else:
                return text[:index]
    return text


def _unclosed_before(snapshot: Snapshot, target: Target) -> list[str]:
    """The closing brackets that the text before the cursor still needs, without those right after the cursor."""
    before = _skeleton(snapshot.text[max(target.start - LONGEST_CALL, 0) : target.start])
    owed = [PAIRS[before[at]] for at in unclosed(before)]
    line_end = snapshot.line_end(snapshot.line_of(target.end))
    for character in snapshot.text[target.end : line_end]:
        if owed and character == owed[-1]:
            owed.pop()
    return owed


STRINGS = re.compile(rf"{QUOTED.pattern}|#[^\n]*|//[^\n]*")


def _skeleton(text: str) -> str:
    """The text with strings and comments blanked, character for character."""
    return STRINGS.sub(lambda match: " " * len(match.group()), text)


def _parses_worse(snapshot: Snapshot, target: Target, text: str) -> bool:
    tree = snapshot.tree
    return tree is not None and _problems(snapshot, target, text) > syntax.problems(tree)


def _never_parses(snapshot: Snapshot, target: Target, text: str) -> bool:
    """Whether the line alone has syntax errors with the text, whatever ends it. An unfinished line before the
    suggestion has some as well, so that their number need not have grown."""
    if (problems := _problems(snapshot, target, text)) == 0:
        return False
    line = snapshot.line_of(target.start)
    start, end = snapshot.line_start(line), snapshot.line_end(line)
    without = syntax.problems_after(snapshot, start, end, "")
    if problems <= without:
        return False
    brackets = closing(_skeleton(snapshot.text[start : target.start] + text + snapshot.text[target.end : end]))
    return all(
        syntax.problems_after(snapshot, target.start, target.end, text + ending) > without
        for ending in dict.fromkeys(value + brackets + end for value in ("", " x") for end in ("", ";"))
    )


def _problems(snapshot: Snapshot, target: Target, text: str) -> int:
    """The number of syntax errors with the text. Brackets that it leaves open are closed for it, unless what closes
    them stands below: that of `} else if ready {` before the lines of another branch."""
    closed = text + closing(_skeleton(text))
    return min(syntax.problems_after(snapshot, target.start, target.end, new) for new in {closed, text})


def _lacks_operator(snapshot: Snapshot, target: Target, text: str) -> bool:
    """Whether a value would follow another: with an operator between them there would be fewer syntax errors. The
    unfinished line before the suggestion has some as well, so that their number need not have grown."""
    before = snapshot.text[: target.start][-LONGEST_CALL:]
    value, operand = VALUE_END.search(before), OPERAND.match(text)
    if value is None or operand is None or (is_word(before[-1]) and is_word(text[0])):
        return False
    words = [word for word in (value[1], operand[1]) if word]
    if any(_is_keyword(word, snapshot) for word in words) or syntax.inside(snapshot, target.start) is not None:
        return False
    problems = _problems(snapshot, target, text)
    return 0 < problems > _problems(snapshot, target, " + " + text)


def _is_keyword(word: str, snapshot: Snapshot) -> bool:
    language = languages.find(snapshot.language, snapshot.path)
    return word in KEYWORDS or (language is not None and _is_of_grammar(word, language))


def _is_of_grammar(word: str, language: Language) -> bool:
    return languages.grammar(language).id_for_node_kind(word, False) is not None
