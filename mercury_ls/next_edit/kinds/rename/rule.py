"""A name became another."""

import re
from collections.abc import Iterator

from msgspec.structs import replace

from mercury_ls.code.differences import LINE, WORD
from mercury_ls.code.lexemes import IMPORT
from mercury_ls.next_edit.examples import Example, Piece, PieceRule
from mercury_ls.next_edit.rule import Rule, in_label

ALIAS = re.compile(r"(?<![\w.])(?P<name>[^\W\d]\w*)[ \t]+as[ \t]+(?P<alias>[^\W\d]\w*)")
TRUTH_VALUES = ({"true", "false"}, {"True", "False"})
COMMENT = re.compile(r"\s*(?:#|//|/?\*|--)")


class Rename(PieceRule, frozen=True, kw_only=True):
    kind = "rename"
    is_indivisible = True

    @property
    def known_as(self) -> str:
        return self.before

    @property
    def done(self) -> str:
        return f"{in_label(self.before)} became {in_label(self.after)}"

    def joined(self, earlier: Rule) -> Rule:
        """An edit of code says more than one of a comment."""
        is_comment = [COMMENT.match(rename.lines_after) is not None for rename in (self, earlier)]
        kept_rename = replace(earlier, age=self.age) if is_comment == [True, False] else self
        return replace(kept_rename, count=self.count + 1, since=earlier.age, places=(*self.places, *earlier.places))


def learn(example: Example) -> Iterator[Rename]:
    for hunk in example.hunks:
        words = [piece for piece in hunk.pieces if _is_word(piece)]
        # `closed = false` that becomes `open = true` means the opposite, and its uses are not only renamed.
        if len(words) == 1 or not any(map(_is_turned, words)):
            yield from map(Rename.of, words)
    yield from _aliases(example.before, example.after)


def _is_word(piece: Piece) -> bool:
    return bool(WORD.fullmatch(piece.before) and WORD.fullmatch(piece.after))


def _is_turned(piece: Piece) -> bool:
    return {piece.before, piece.after} in TRUTH_VALUES


def _aliases(before: str, after: str) -> Iterator[Rename]:
    """`import a as b`: what was known as `a` is known as `b`."""
    for number, line in enumerate(LINE.findall(after)):
        for match in ALIAS.finditer(line) if IMPORT.match(line) else ():
            name, alias = match["name"], match["alias"]
            had = re.compile(rf"\b{name}\b(?![ \t]+as\b)")
            if had.search(before) and not had.search(after):
                yield Rename(
                    before=name,
                    after=alias,
                    left=(name, "as"),
                    lines_before=before,
                    lines_after=line,
                    line=number,
                    column=match.end(),
                )


def label(rule: Rename) -> str:
    return f"rename {in_label(rule.before)} → {in_label(rule.after)}"
