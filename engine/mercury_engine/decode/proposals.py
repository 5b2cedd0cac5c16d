"""Texts that an answer may begin with, proposed from outside: the model reads them side by side, and the best is taken.

Like drafts in speculative decoding they cost one forward together. How likely a proposal is right follows from the
model's probabilities of its tokens, and from how often proposals of its kind are.
"""

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from mercury_engine.api import InfillRequest
from mercury_engine.decode.choice import Chooser
from mercury_engine.model.runtime import Rows
from mercury_engine.tokens.blocks import Block, canvas_mask
from mercury_engine.tokens.prefix import HintBuilder, HintedPrefix
from mercury_engine.tokens.tokenizer import Tokenizer

__all__ = ["Drafted", "TakenProposal", "drafted", "side_by_side", "taken"]

MOST, LONGEST = 6, 48
"""How many proposals are read, and the most tokens of one."""

RIGHT = (1.37, 1.21, 0.26, 0.79)
"""How likely a proposal is right: the bias of a logistic regression, and the weights of its chance in log odds, of its
least log probability, and of the share of its tokens that the model itself would choose first."""

LEAST_RIGHT = 0.3
"""A proposal less likely to be right leaves the model to write on its own."""

LEAST = -12.0
"""The lowest log probability of a token."""


class Drafted(Struct, frozen=True):
    """A proposal as the tokens of an answer, and how often proposals like it are right."""

    ids: tuple[int, ...]
    chance: float


class TakenProposal(Struct, frozen=True):
    """The tokens that an answer begins with, and how likely these are right."""

    ids: tuple[int, ...]
    right: float


def drafted(tokenizer: Tokenizer, request: InfillRequest, part: str) -> list[Drafted]:
    """The proposals as the answer would spell them, behind the `part` of a word that it repeats."""
    span = request.spans[0]
    if len(request.spans) > 1 or span.start != span.end:
        return []
    odds: dict[tuple[int, ...], float] = {}
    for proposal in request.proposals:
        text = proposal.text.partition("\n")[0] if span.mode == "line" else proposal.text
        odds.setdefault(tuple(tokenizer.encode(part + text.rstrip())), proposal.chance)
    return [Drafted(ids, chance) for ids, chance in odds.items() if 0 < len(ids) <= LONGEST][:MOST]


def side_by_side(drafts: Sequence[Sequence[int]], prefix: HintedPrefix, cached: int, builder: HintBuilder) -> Rows:
    """The uncached end of a prefix, then each draft behind its last row; wanted are that row and the drafts."""
    count, last = len(prefix), int(prefix.positions_R[-1])
    pieces = [(prefix.ids_R[cached:], prefix.positions_R[cached:], prefix.hints_RH[cached:])]
    for ids in drafts:
        behind = np.arange(last + 1, last + 1 + len(ids), dtype=np.int32)
        whole = np.concatenate([prefix.ids_R, np.array(ids, np.int32)])
        branch = builder.build(whole, np.concatenate([prefix.positions_R, behind]), prefix)
        pieces.append((branch.ids_R[count:], branch.positions_R[count:], branch.hints_RH[count:]))
    ids_R, positions_R, hints_RH = (np.concatenate(column) for column in zip(*pieces, strict=True))
    blocks = [Block(count), *(Block(len(ids), parent=count - 1) for ids in drafts)]
    rows = range(count - cached - 1, len(ids_R))
    return Rows(ids_R, positions_R, mask_RC=canvas_mask(blocks, cached), rows=rows, hints_RH=hints_RH)


def taken(drafts: Sequence[Drafted], logits_WV: np.ndarray, typed: bytes, chooser: Chooser) -> TakenProposal | None:
    """The proposal that is most likely right, unless none is likely; the logits are those of `side_by_side`, and
    `typed` is left to spell."""
    beams, row = [], 1
    for draft in drafts:
        rows_SV = [logits_WV[0], *logits_WV[row : row + len(draft.ids) - 1]]
        beams.append(TakenProposal(draft.ids, _right(draft, rows_SV, typed, chooser)))
        row += len(draft.ids)
    best = max(beams, key=lambda beam: beam.right)
    return best if best.right >= LEAST_RIGHT else None


def _right(draft: Drafted, rows_SV: Sequence[np.ndarray], typed: bytes, chooser: Chooser) -> float:
    least, agreed = 0.0, 0
    for at, (row_V, token) in enumerate(zip(rows_SV, draft.ids, strict=True)):
        logs_V = chooser.log_probabilities(row_V, typed)
        least = min(least, max(float(logs_V[token]), LEAST))
        agreed += agreed == at and int(logs_V.argmax()) == token
        typed = chooser.left(typed, token)
    bias, chance, lowest, share = RIGHT
    odds = math.log(draft.chance / (1 - draft.chance))
    return 1 / (1 + math.exp(-(bias + chance * odds + lowest * least + share * agreed / len(draft.ids))))
