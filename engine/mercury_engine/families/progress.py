"""A request to a diffusion model, its progress, and what stays encoded in between."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from mercury_engine.families.family import Family
from mercury_engine.families.slots import SURE, Settled
from mercury_engine.families.vocabulary import FamilyVocabulary
from mercury_engine.model.runtime import Cache, Runtime
from mercury_engine.tokens.prefix import common_length


class FamilyModel(Struct, frozen=True, eq=False):
    runtime: Runtime
    family: Family
    vocabulary: FamilyVocabulary


class FillTarget(Struct, frozen=True):
    """The rest of a line, something `inside` one, or a block, of at most `limit` tokens; those `sure` are settled
    together; a `rank` selects an answer other than the likeliest. `compare`: whether there is time to try gaps of
    several lengths."""

    what: Literal["line", "inside", "block"]
    limit: int
    sure: float = SURE
    rank: int = 0
    compare: bool = True


class FillProgress(Struct, frozen=True):
    """After a forward: the tokens settled from the left, whether they are the whole answer, and the token that
    probably follows them, -1 if unknown. `at_best` are the probabilities of all tokens of the answer if the open
    ones turn out certain; `slots` are the tokens of all slots, None where one is open. Before there are any, so many
    tokens of the text are `unread`."""

    settled: Sequence[Settled] = ()
    done: bool = False
    next: int = -1
    at_best: Sequence[float] = ()
    slots: Sequence[Settled | None] = ()
    unread: int = 0


NOTHING_YET = FillProgress()


class Encoded(Struct, eq=False):
    """The encoded part of one text: the tokens `ids` from its start, then `after`, the text after a gap, from the
    position `behind` on; -1 if it is not encoded any more. `patched` tokens were read later than those before them."""

    cache: Cache
    ids: list[int] = []
    after: list[int] = []
    behind: int = -1
    patched: int = 0

    def common(self, ids: Sequence[int]) -> int:
        """The number of these ids that are encoded."""
        return common_length(self.ids, ids)

    def keep(self, count: int) -> None:
        self.cache.truncate(count)
        del self.ids[count:]
        self.behind = -1
