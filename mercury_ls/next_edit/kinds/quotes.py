"""Quote: a message was changed; whoever repeats it, word by word or in part, has to follow.

After `raise ValueError("path must have one element")` became "path must hold one element", a test that asserts "must
have one element" does so too, and so does documentation. Another message with the word keeps it.
"""

import re
from collections.abc import Hashable, Iterator

from mercury_engine.prompts.lines import shared_ends
from mercury_ls.code import syntax
from mercury_ls.code.differences import WORD
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.modules import Project
from mercury_ls.next_edit.examples import Example, ExampleHunk
from mercury_ls.next_edit.places import MOST_PLACES, Place
from mercury_ls.next_edit.rule import Rule, in_label
from mercury_ls.next_edit.suppress import never

suppress = never

LITERAL = re.compile(r"(?P<mark>[\"'`])(?P<content>(?:(?!(?P=mark))(?:\\.|[^\\\n]))*+)(?P<closed>(?P=mark))?+")
FILLED_IN = re.compile(r"%[-+ #0]?[\d.]*[a-zA-Z]|\$?\{[^{}]*\}|\\.")
"""What a program puts something else for."""
NOT_PLAIN = re.compile(r"[\"'`\\%{}$\n]")
EDGES = frozenset("\"'`\\%{}$^.*()[]<>|\n")
LETTERS = re.compile(r"[^\W\d_]")
PLAIN_WORD = re.compile(r"(?<![^\s(])(?:[A-Z]{2,}+|[A-Za-z][a-z']*+)(?=[.,:;!?)]*+(?:\s|\Z))")
FEWEST_WORDS, FEWEST_LETTERS, MOSTLY = 3, 10, 0.7


class MessageChange(Rule, frozen=True, kw_only=True):
    """`head` and `tail` are what stands beside it in its message."""

    kind = "quote"
    is_rare = True
    head: str = ""
    tail: str = ""

    @property
    def key(self) -> Hashable:
        return self.kind, self.before, self.after, self.head, self.tail

    @property
    def known_as(self) -> str:
        return max(WORD.findall(self.before), key=len, default="")

    @property
    def names(self) -> list[frozenset[str]]:
        """Words of which a text that quotes the message has one set at least."""
        own = frozenset(WORD.findall(self.before))
        neighbours = (WORD.findall(self.head)[-1:], WORD.findall(self.tail)[:1])
        return [own.union(words) for words in neighbours if words]


def learn(example: Example) -> Iterator[MessageChange]:
    for hunk in example.hunks:
        if "\n" not in hunk.before.rstrip("\n"):
            yield from _quotes_in(hunk)


def _quotes_in(hunk: ExampleHunk) -> Iterator[MessageChange]:
    """One for each message of the line of which a part became another, as far as it is the same for everybody."""
    for literal in LITERAL.finditer(hunk.before):
        first, last = literal.span("content")
        touches = [touch for touch in hunk.touches if first <= touch.start and touch.end <= last]
        if not touches or not literal["closed"]:
            continue
        start, end = touches[0].start, touches[-1].end
        before, after = hunk.before[start:end], hunk.after[touches[0].new_start : touches[-1].new_end]
        head = FILLED_IN.split(hunk.before[first:start])[-1]
        tail = FILLED_IN.split(hunk.before[end:last], maxsplit=1)[0]
        if not WORD.search(before) or NOT_PLAIN.search(before + after) or not _says_enough(head + before + tail):
            continue
        yield MessageChange(
            before=before,
            after=after,
            lines_before=hunk.before,
            lines_after=hunk.after,
            line=hunk.line,
            column=touches[-1].new_end,
            changed=hunk.changed,
            head=head,
            tail=tail,
        )


def _says_enough(text: str) -> bool:
    """Whether it is prose, and long enough to be known again."""
    words, plain_words = text.split(), PLAIN_WORD.findall(text)
    is_long = len(words) >= FEWEST_WORDS and len(LETTERS.findall(text)) >= FEWEST_LETTERS
    return is_long and len(plain_words) >= MOSTLY * len(words)


def find(rule: MessageChange, snapshot: Snapshot, home: Snapshot | None, project: Project) -> Iterator[Place]:
    text, at, count = snapshot.text, -1, 0
    while (at := text.find(rule.before, at + 1)) >= 0 and count < MOST_PLACES:
        if is_quoted(rule, snapshot, at):
            count += 1
            yield Place(at, at + len(rule.before), rule.after, certain=True)


def is_quoted(rule: MessageChange, snapshot: Snapshot, offset: int) -> bool:
    """Whether the message stands there, or the part of it that its quotation marks enclose."""
    text, end = snapshot.text, offset + len(rule.before)
    head, _ = shared_ends(rule.head[::-1], text[max(offset - len(rule.head), 0) : offset][::-1])
    tail, _ = shared_ends(rule.tail, text[end : end + len(rule.tail)])
    is_end = _is_edge(text, offset - head - 1) or head == len(rule.head)
    is_whole = is_end and (_is_edge(text, end + tail) or tail == len(rule.tail))
    if not is_whole or not _says_enough(text[offset - head : end + tail]):
        return False
    is_prose = not snapshot.written_in.definitions
    return is_prose or syntax.inside(snapshot, offset) is not None


def _is_edge(text: str, offset: int) -> bool:
    """Whether a quotation ends there: at a mark, or where anything may stand."""
    return not 0 <= offset < len(text) or text[offset] in EDGES


def label(rule: MessageChange) -> str:
    return f"change {in_label(rule.before)} → {in_label(rule.after)} where the message is quoted"
