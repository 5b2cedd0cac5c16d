"""Drafts of several sources as one tree, so that one pass verifies all of them (SpecInfer, Miao et al. 2024)."""

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter

import numpy as np
from msgspec import Struct

from mercury_engine.decode.drafts import DraftedTokens, Evidence

LEAST_REACHED = 0.02
"""A token that is less likely to be reached is no part of a tree: its row would gain nothing."""

Grounds = tuple[Evidence, ...]
"""The evidence of every source that drafts a token; empty where only one token is possible."""


class DraftTree(Struct, frozen=True, eq=False):
    """Tokens in the order of how likely they are `reached`, which means that they and all tokens before them are right.

    Token n follows token `parents[n]`, or what is committed already if that is -1.
    """

    ids: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()
    grounds: tuple[Grounds, ...] = ()
    reached: tuple[float, ...] = ()

    @classmethod
    def chain(cls, ids: Sequence[int]) -> "DraftTree":
        """Tokens of which each follows the one before, without evidence."""
        return cls(tuple(ids), tuple(range(-1, len(ids) - 1)), ((),) * len(ids), (1.0,) * len(ids))

    @property
    def is_chain(self) -> bool:
        return self.parents == tuple(range(-1, len(self.ids) - 1))

    def head(self, count: int) -> "DraftTree":
        return DraftTree(self.ids[:count], self.parents[:count], self.grounds[:count], self.reached[:count])

    def following(self, number: int) -> Iterator[int]:
        """The numbers of the tokens that follow a token, or what is committed for -1."""
        return (other for other, parent in enumerate(self.parents) if parent == number)

    def next(self, number: int, token: int) -> int | None:
        """The number of this token behind a token; None if it was not drafted there."""
        return next((other for other in self.following(number) if self.ids[other] == token), None)

    def judged(self, number: int, token: int) -> Iterator[tuple[Evidence, bool]]:
        """The evidence for what was drafted behind a token, and whether it was right: `token` follows there."""
        for following in self.following(number):
            for evidence in self.grounds[following]:
                yield evidence, self.ids[following] == token

    @property
    def depths(self) -> list[int]:
        """How many drafted tokens each one follows."""
        depths: list[int] = []
        for parent in self.parents:
            depths.append(0 if parent < 0 else depths[parent] + 1)
        return depths


NO_DRAFT = DraftTree()


def grow(proposals: Sequence[DraftedTokens], probability: Callable[[Evidence], float]) -> DraftTree:
    """The tree of all proposals. Where several tokens may follow, they share what is certain at most."""
    root = _Branch()
    for proposal in proposals:
        root.add(proposal, probability)
    drafted = sorted(root.behind(1.0), key=lambda entry: -entry[0])
    numbers = {id(root): -1} | {id(branch): number for number, (_, _, branch, _) in enumerate(drafted)}
    return DraftTree(
        tuple(token for _, token, _, _ in drafted),
        tuple(numbers[id(parent)] for _, _, _, parent in drafted),
        tuple(branch.grounds for _, _, branch, _ in drafted),
        tuple(reached for reached, _, _, _ in drafted),
    )


class _Branch(Struct, eq=False):
    """What may follow the tokens up to here, and why."""

    share: float = 0.0
    grounds: Grounds = ()
    next: "dict[int, _Branch]" = {}

    def add(self, proposal: DraftedTokens, probability: Callable[[Evidence], float]) -> None:
        """Add a proposal, with its alternatives as far as they are likely enough."""
        ends = [(1.0, self)]
        for options in proposal.options():
            shares = [(probability(evidence) if evidence else 1.0, token, evidence) for token, evidence in options]
            shares.sort(key=itemgetter(0), reverse=True)
            following = []
            for reached, branch in ends:
                for share, token, evidence in shares:
                    if reached * share < LEAST_REACHED:
                        break
                    behind = branch.next.setdefault(token, _Branch())
                    behind.share = max(behind.share, share)
                    behind.grounds += (evidence,) if evidence else ()
                    following.append((reached * share, behind))
            ends = following

    def behind(self, reached: float) -> "Iterator[tuple[float, int, _Branch, _Branch]]":
        """The tokens behind this one, how likely each is reached, and its parent, which comes earlier."""
        most = max(1.0, sum(branch.share for branch in self.next.values()))
        for token, branch in self.next.items():
            own = reached * branch.share / most
            if own >= LEAST_REACHED:
                yield own, token, branch, self
                yield from branch.behind(own)


def stops(reached: Sequence[float], parents: Sequence[int], ends: Sequence[bool]) -> np.ndarray:
    """How likely verification stops behind what is committed and behind each token: that none of those drafted there is
    right. It never stops where a token `ends` the answer."""
    stopping = np.array([1.0, *reached])
    np.subtract.at(stopping, np.array(parents, int) + 1, reached)
    stopping[[False, *ends]] = 0.0
    return np.maximum(stopping, 0.0)
