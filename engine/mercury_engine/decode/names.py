"""Names that exist: which may follow where an answer needs one, and the evidence in the text for each."""

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Protocol

from msgspec import Struct

from mercury_engine.api import Gap, Members, NameRole

USES, ALIKE, SPECIAL = 0.76, 1.2, -1.9
"""The evidence for a name besides the model: the logarithm of one more than its uses, the overlap of its parts with
the name being assigned to, and whether it is special, as `__init__` is."""

LEAD = re.compile(rb"[^A-Za-z0-9_\x80-\xff]*")
GAP = re.compile(r"\W")
PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
JOINT = r"(?:\?\.|\.|::|->)"
LONGEST_JOINT = 2
DOTTED = rf"(?<![\w.>:])(?:[^\W\d]\w*{JOINT})*[^\W\d]\w*"
MEMBER = re.compile(rf"{JOINT}(?P<name>[^\W\d]\w*+)(?!\s*=(?!=))")
RECEIVER = re.compile(rf"({DOTTED}){JOINT}\Z")
BEHIND = re.compile(rf"{JOINT}\Z")
CALLED = re.compile(rf"({DOTTED})\((?:[^()]*,)?\s*\Z")
ARGUMENT = re.compile(r"[(,]\s*\Z")
MODULE = re.compile(r"\s*from\s+([\w.]+)\s+import\b[\w\s,(]*\Z")
EXPRESSION = re.compile(
    r"(?:[=(\[{,:+*/%<>|&^~!-]|\b(?:return|in|and|or|not|if|elif|while|assert|yield|await|raise|is|else))\s*\Z"
)
TARGET = re.compile(r"(?:^|[\s(,.])([^\W\d]\w*+)\s*+(?::.*)?\Z", re.DOTALL)
QUOTES_AND_COMMENTS = re.compile(r"[\"'`#]|//")
LONGEST_LINE = 200

FOLLOWING: Collection[NameRole] = ("member", "import")
"""Roles where one of the known names must follow."""
PLACES: Mapping[NameRole, re.Pattern[str]] = {"keyword": ARGUMENT, "scope": EXPRESSION}
"""Roles where one of these may follow, or something else."""


class Encoding(Protocol):
    """The required part of a tokenizer."""

    @property
    def token_bytes(self) -> Sequence[bytes]: ...

    def encode(self, text: str) -> list[int]: ...


class NameCandidate(Struct, frozen=True):
    """A name as the tokens by which the answer would continue, and the evidence for it besides the model. It is not
    `whole` if the model has to end it, as where underscores at the end share a token with what follows."""

    path: tuple[int, ...]
    evidence: float = 0.0
    whole: bool = True


class KnownNames:
    """The names that exist at the places of one answer. `head` is the line up to the cursor; the answer begins by
    repeating its end, `respelled`."""

    def __init__(
        self, tokenizer: Encoding, members: Sequence[Members], head: str, respelled: str, *, compete: bool = True
    ) -> None:
        self._tokenizer = tokenizer
        self._compete = compete
        self._typed = _word_at_end(head)
        self._before = head[: len(head) - len(respelled)]
        self._again = respelled
        self._begins = len(respelled) - len(self._typed)
        self._members: Mapping[tuple[NameRole, str], Members] = {
            (member.role, member.receiver): member for member in members
        }

    @classmethod
    def of(cls, tokenizer: Encoding, gap: Gap, respelled: str) -> "KnownNames | None":
        """The known names; at a low effort, only of the few places where nothing but a name can follow."""
        if not gap.members:
            return None
        hurried = gap.effort in ("instant", "low")
        members = [member for member in gap.members if not hurried or member.role in FOLLOWING]
        return cls(tokenizer, members, gap.before.rpartition("\n")[2], respelled, compete=gap.invoked)

    def candidates(self, said: bytes, context: bytes, token: int) -> list[NameCandidate]:
        """The names that may follow an answer that has `said` this, and has yet to spell the `context` before
        the cursor; none where nothing is known, or where the model, whose next token is `token`, continues
        with something that the lists may lack."""
        if not self._compete:
            return []
        ahead = max(context, self._tokenizer.token_bytes[token], key=len)
        lead = LEAD.match(ahead)[0].decode("utf-8", "replace")  # pyright: ignore[reportOptionalSubscript]
        answer = said.decode("utf-8", "replace")
        line = (self._before + answer).rpartition("\n")[2]
        begun = "" if lead else _word_at_end(line)
        is_name = len(lead.encode()) < len(ahead)
        if begun and answer and not context:
            return []
        typed = ""
        if len(answer) + len(lead) - len(begun) == self._begins:
            head = (line + lead).removesuffix(begun)[-LONGEST_LINE:]
            names, typed = list(self._at_cursor(head, is_name=is_name)), self._typed
        elif begun or len(answer) < self._begins:
            return []
        else:
            head = (line + lead)[-LONGEST_LINE:]
            names = list(self._ahead(head, (answer + lead)[len(self._again) :], is_name=is_name))
        assigning = head.rfind("=")
        target = TARGET.search(head, head.rfind("=", 0, assigning) + 1, assigning) if assigning >= 0 else None
        assigned = _parts(target[1]) if target else frozenset()
        candidates = [
            candidate for members in names for candidate in self._candidates(members, typed, lead, begun, assigned)
        ]
        is_free = not all(map(_is_closed, names))
        return [] if is_free and all(candidate.path[0] != token for candidate in candidates) else candidates

    def fitting(self, text: str, *, complete: bool) -> int:
        """The length of an answer, with what it spells again, up to the first member that cannot exist. One that it
        assigns to may be new, and one at the end of an answer that is not `complete` may continue."""
        text_before = self._before + text
        first = len(self._before) + min(self._begins - LONGEST_JOINT, 0)
        for match in MEMBER.finditer(text_before, max(first, 0)):
            start, end = match.span("name")
            line = text_before[text_before.rfind("\n", 0, start) + 1 : start][-LONGEST_LINE:]
            names = self._closed(line, start - len(self._before))
            if names is None or match["name"] in names:
                continue
            if complete or end < len(text_before) or not any(name.startswith(match["name"]) for name in names):
                return max(0, match.start() - len(self._before))
        return len(text)

    def existing(self, text: str, *, complete: bool) -> tuple[str, bool]:
        """The same for what an answer adds to the text before the cursor, and whether it is complete."""
        fitting = max(0, self.fitting(self._again + text, complete=complete) - len(self._again))
        return text[:fitting], complete and fitting == len(text)

    def _closed(self, line: str, start: int) -> Collection[str] | None:
        """The names of which one must follow a line, at this place in the answer; None if others may."""
        receiver = RECEIVER.search(line)
        at_cursor = start == self._begins
        if start < self._begins or not (receiver or at_cursor) or QUOTES_AND_COMMENTS.search(line):
            return None
        members = self._members.get(("member", receiver[1] if receiver and not at_cursor else ""))
        return members.names if members and _is_closed(members) else None

    def _at_cursor(self, line: str, *, is_name: bool) -> Iterator[Members]:
        for (role, receiver), members in self._members.items():
            allowed = role in FOLLOWING or (is_name and PLACES[role].search(line))
            if not receiver and allowed:
                yield members

    def _ahead(self, line: str, added: str, *, is_name: bool) -> Iterator[Members]:
        """The places that the answer reaches: behind known receivers, and where a name may begin."""
        if QUOTES_AND_COMMENTS.search(line):
            return
        receiver = RECEIVER.search(line)
        if receiver or BEHIND.search(line):
            yield from self._of("member", receiver[1] if receiver else None)
        elif is_name and (module := MODULE.match(line)):
            yield from self._of("import", module[1])
        elif is_name:
            match = CALLED.search(line)
            same_call = ARGUMENT.search(line) and "(" not in added and ")" not in added
            yield from self._of("keyword", "" if same_call else match[1] if match else None)
            if EXPRESSION.search(line):
                yield from self._of("scope", "")

    def _of(self, role: NameRole, receiver: str | None) -> Iterator[Members]:
        if receiver is not None and (role, receiver) in self._members:
            yield self._members[role, receiver]

    def _candidates(
        self, members: Members, typed: str, lead: str, begun: str, assigned: frozenset[str]
    ) -> Iterator[NameCandidate]:
        for name, uses in zip(members.names, members.uses, strict=True):
            ending = "=" if members.role == "keyword" else ""
            rest = name[len(begun) :] + ending
            if name.startswith(typed) and rest:
                stem = rest.rstrip("_") or rest
                path = self._tokenizer.encode(lead + stem)
                yield NameCandidate(tuple(path), _evidence(name, uses, assigned), stem == rest and not ending)


def _word_at_end(text: str) -> str:
    """The word that a text ends with, found from behind: a long line costs no more than its length."""
    gap = GAP.search(text[::-1])
    return text[len(text) - gap.start() :] if gap else text


def _evidence(name: str, uses: int, assigned: frozenset[str]) -> float:
    parts = _parts(name) if assigned else assigned
    alike = len(parts & assigned) / len(parts | assigned) if parts else 0.0
    return USES * math.log1p(uses) + ALIKE * alike + SPECIAL * name.startswith("__")


def _is_closed(members: Members) -> bool:
    """True if nothing but these names may be there."""
    return members.complete and members.role in FOLLOWING


@lru_cache(1 << 12)
def _parts(name: str) -> frozenset[str]:
    return frozenset(part.lower() for part in PARTS.findall(name))
