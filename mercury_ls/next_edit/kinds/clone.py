"""Clone: a line was changed; lines of the same shape may change likewise, with other names in them."""

from collections.abc import Hashable, Iterator

from mercury_ls.code import scopes
from mercury_ls.code.differences import TOKEN, WORD, texts_of, tokens
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.lexemes import CONSTANTS, KEYWORDS, in_the_files_lines, minimal, shape
from mercury_ls.code.modules import Project
from mercury_ls.next_edit.examples import Example, ExampleHunk, is_rename
from mercury_ls.next_edit.kinds.templates import matches
from mercury_ls.next_edit.places import Place
from mercury_ls.next_edit.rule import Rule
from mercury_ls.next_edit.suppress import is_no_habit

suppress = is_no_habit

TELLING = 5
"""A shape of so many tokens is distinctive by itself."""


class Clone(Rule, frozen=True, kw_only=True):
    """`before` and `after` are all pieces that differ; everything else may vary."""

    kind = "clone"
    copies_code = True
    is_of_lines = True

    @property
    def key(self) -> Hashable:
        return self.kind, shape(self.lines_before), shape(self.lines_after), self.before, self.after


def learn(example: Example) -> Iterator[Clone]:
    for hunk in example.hunks:
        if not hunk.goes_on and (pieces := _pieces_of(hunk)):
            went, came, column = pieces
            yield Clone(
                before=went,
                after=came,
                lines_before=hunk.before,
                lines_after=hunk.after,
                line=hunk.line,
                column=column,
                changed=hunk.changed,
            )


def _pieces_of(hunk: ExampleHunk) -> tuple[str, str, int] | None:
    """The old and the new pieces, and where the first ends; None if only one name changed."""
    if hunk.is_rewritten:
        old, new = TOKEN.findall(hunk.before), TOKEN.findall(hunk.after)
        if old and old != new:
            return hunk.before, hunk.after, 0
        # Broken into lines, or joined: nothing went and nothing came.
        return ("", "", 0) if old and hunk.before.count("\n") != hunk.after.count("\n") else None
    texts = [texts_of(hunk.before, hunk.after, touch) for touch in hunk.touches]
    if not texts:
        return None
    went, came = map("\0".join, zip(*texts, strict=True))
    return None if is_rename(went, came) else (went, came, hunk.touches[0].new_end)


def find(rule: Clone, snapshot: Snapshot, home: Snapshot | None, project: Project) -> Iterator[Place]:
    """The old pieces have to be there, the rest may vary. Edits of parameters do not carry over to other functions."""
    if rule.count == 1 and home is not None and scopes.in_parameters(home, rule.offset(home)):
        return
    if rule.count == 1 and KEYWORDS.issuperset(WORD.findall(rule.lines_before)):
        return
    is_value = CONSTANTS.issuperset(WORD.findall(rule.before + rule.after))
    says_enough = (rule.count > 1 and not is_value) or len(tokens(rule.lines_before)) >= TELLING
    for start, end, text, likeness in matches(rule.lines_before, rule.lines_after, snapshot, says_enough):
        old, text = snapshot.text[start:end], in_the_files_lines(text, snapshot)
        if text != old:
            change = minimal(old, text)
            reach = snapshot.line_start(snapshot.line_of(start)), end
            yield Place(start + change.start, start + change.end, change.text, likeness, reach=reach)


def label(rule: Clone) -> str:
    return "change this line likewise"
