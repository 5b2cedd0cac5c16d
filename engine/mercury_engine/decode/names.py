"""Names that exist, as rivals: where an answer reaches a member, the names known there compete, and the model chooses.

The likeliest of them are scored in one forward, side by side on the same cache, as whole names. What the model predicts
stays as it is: names are proposed to it, compared by its own probabilities and by how the file uses them, and one is
committed.
"""

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct

from mercury_engine.api import InfillRequest, Members
from mercury_engine.decode.choice import Choice, Chooser
from mercury_engine.model.runtime import Rows
from mercury_engine.tokens.blocks import Block, canvas_mask
from mercury_engine.tokens.prefix import HintBuilder, HintedPrefix
from mercury_engine.tokens.tokenizer import Tokenizer

__all__ = ["Candidate", "KnownNames", "Rivals", "is_settled", "rivals"]

RIVALS, TIED = 4, 12
"""How many names are scored in one forward: more find the right one no more often, unless they begin with the same
token, as where a part of the name is typed."""

MODEL, USES = 0.4, 0.36
"""Weights of the log probability of a name, and of the logarithm of one more than its uses: a conditional logit fitted
to the bootstrap model on 138 members in four repositories."""

RIGHT = (1.02, 0.29, 1.6)
"""How likely a chosen name is right: the bias of a logistic regression on the same members, and the weights of the log
probability of the name and of its share among its rivals."""

SURE = 0.9
"""A first token of this probability needs no comparison if it begins one name alone."""

LEAST = -30.0
"""The lowest log probability of a name."""

RECEIVER = re.compile(r"(?<![\w.])(?:[^\W\d]\w*\.)*[^\W\d]\w*\Z")
WORD = re.compile(r"\w*\Z")
LONGEST_RECEIVER = 80
QUOTES_AND_COMMENTS = re.compile(r"[\"'`#]|//")


class Candidate(Struct, frozen=True):
    """A name as the tokens by which the answer would go on, and how often it is used already. It is not `whole` if it
    ends in underscores, which share a token with what follows: these are left to the model."""

    path: tuple[int, ...]
    uses: int
    whole: bool = True


class KnownNames:
    """The members that exist behind the receivers of one line; `head` is the line up to the cursor."""

    def __init__(self, tokenizer: Tokenizer, members: Sequence[Members], head: str, part: str) -> None:
        self._tokenizer = tokenizer
        self._members: Mapping[str, Members] = {each.receiver: each for each in members if each.role == "member"}
        self._part = part
        self._typed = WORD.search(head)[0]
        self._before = head[: len(head) - len(part)]

    @classmethod
    def of(cls, tokenizer: Tokenizer, request: InfillRequest, part: str) -> "KnownNames | None":
        span = request.spans[0]
        if not request.members or len(request.spans) > 1 or span.start != span.end:
            return None
        text = request.windows[span.window].text
        return cls(tokenizer, request.members, text[text.rfind("\n", 0, span.start) + 1 : span.start], part)

    def candidates(self, ids: Sequence[int], token: int) -> list[Candidate]:
        """The names that may follow these tokens, of which the model would choose `token`; none where nothing is known,
        or where the model goes on with something that the list may lack."""
        if not ids and "" in self._members:
            members, start = self._members[""], self._part
            names = [(name[len(self._typed) :], uses) for name, uses in _pairs(members) if name.startswith(self._typed)]
        elif ids and self._tokenizer.token_bytes[token].startswith(b"."):
            members, start = self._behind(ids), "."
            names = [*_pairs(members)] if members else []
        else:
            return []
        found = [self._candidate(start, name, uses) for name, uses in names]
        unlisted = members is not None and not members.complete and all(one.path[0] != token for one in found)
        return [] if unlisted else found

    def _candidate(self, start: str, name: str, uses: int) -> Candidate:
        stem = name.rstrip("_") or name
        return Candidate(tuple(self._tokenizer.encode(start + stem)), uses, stem == name)

    def _behind(self, ids: Sequence[int]) -> Members | None:
        line = (self._before + self._tokenizer.decode(ids)).rpartition("\n")[2]
        receiver = RECEIVER.search(line[-LONGEST_RECEIVER:])
        if receiver is None or QUOTES_AND_COMMENTS.search(line):
            return None
        return self._members.get(receiver[0])


class Rivals(Struct, frozen=True, eq=False):
    """Candidates behind the last row of a prefix, side by side in one forward; `first` is that row's log probabilities,
    in which each spells what is left of `typed`."""

    candidates: tuple[Candidate, ...]
    first_V: np.ndarray
    typed: bytes

    def rows(self, prefix: HintedPrefix, cached: int, builder: HintBuilder) -> Rows:
        """The uncached end of the prefix, then a branch for each candidate."""
        count, last = len(prefix), int(prefix.positions_R[-1])
        pieces = [(prefix.ids_R[cached:], prefix.positions_R[cached:], prefix.hints_RH[cached:])]
        for candidate in self.candidates:
            ids = np.concatenate([prefix.ids_R, np.array(candidate.path, np.int32)])
            behind = np.arange(last + 1, last + 1 + len(candidate.path), dtype=np.int32)
            branch = builder.build(ids, np.concatenate([prefix.positions_R, behind]), prefix)
            pieces.append((branch.ids_R[count:], branch.positions_R[count:], branch.hints_RH[count:]))
        blocks = [Block(count), *(Block(len(candidate.path), parent=count - 1) for candidate in self.candidates)]
        ids_R, positions_R, hints_RH = (np.concatenate(column) for column in zip(*pieces, strict=True))
        wanted = range(count - cached, len(ids_R))
        return Rows(ids_R, positions_R, mask_RC=canvas_mask(blocks, cached), wanted=wanted, hints_RH=hints_RH)

    def chosen(self, logits_WV: np.ndarray, chooser: Chooser) -> tuple[Candidate, float]:
        """The best candidate, and what it counts for in the probability of the answer: the mean of what the model gives
        it and of how likely it is to be right, which tells right names from wrong ones better than either."""
        found, row = [], 0
        for candidate in self.candidates:
            branch_SV = logits_WV[row : row + len(candidate.path)]
            found.append(self._log_probability(candidate, branch_SV, chooser))
            row += len(candidate.path)
        scores = np.array([_score(*each) for each in zip(self.candidates, found, strict=True)])
        best = int(scores.argmax())
        among = float(scores[best] - np.logaddexp.reduce(scores))
        return self.candidates[best], (math.exp(found[best]) + _right(found[best], among)) / 2

    def _log_probability(self, candidate: Candidate, branch_SV: np.ndarray, chooser: Chooser) -> float:
        """Of the whole name, and of its end."""
        found = float(self.first_V[candidate.path[0]])
        typed = chooser.left(self.typed, candidate.path[0])
        for row_V, token in zip(branch_SV[:-1], candidate.path[1:], strict=True):
            found += float(chooser.log_probabilities(row_V, typed)[token])
            typed = chooser.left(typed, token)
        return max(found + (chooser.log_end_of_word(branch_SV[-1]) if candidate.whole else 0.0), LEAST)


def is_settled(candidates: Sequence[Candidate], choice: Choice) -> bool:
    """Whether the model is sure of one of the names."""
    return choice.probability >= SURE and sum(one.path[0] == choice.token for one in candidates) == 1


def rivals(candidates: Sequence[Candidate], logits_V: np.ndarray, typed: bytes, chooser: Chooser) -> Rivals:
    """The candidates that are likeliest by their first token and their uses, the shortest of equals."""
    first_V = chooser.log_probabilities(logits_V, typed)
    promises = [_score(candidate, float(first_V[candidate.path[0]])) for candidate in candidates]
    order = sorted(range(len(candidates)), key=lambda at: (-promises[at], len(candidates[at].path)))
    least = promises[order[:RIVALS][-1]]
    chosen = [candidates[at] for at in order[:TIED] if promises[at] >= least]
    return Rivals(tuple(chosen), first_V, typed)


def _score(candidate: Candidate, log_probability: float) -> float:
    return MODEL * log_probability + USES * math.log1p(candidate.uses)


def _right(log_probability: float, among: float) -> float:
    """The probability that a chosen name is right."""
    bias, own, relative = RIGHT
    return 1 / (1 + math.exp(-(bias + own * log_probability + relative * among)))


def _pairs(members: Members) -> zip:
    return zip(members.names, members.uses, strict=True)
