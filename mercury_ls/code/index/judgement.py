"""What is known of a name: it is the same as another, it is something else, or nothing says which."""

from collections.abc import Iterable
from enum import Enum


class Judgement(Enum):
    SAME = "same"
    OTHER = "other"
    UNKNOWN = "unknown"

    @classmethod
    def joined(cls, verdicts: "Iterable[Judgement]") -> "Judgement":
        """What all of them say; nothing, if they differ or there are none."""
        distinct = {*verdicts}
        return distinct.pop() if len(distinct) == 1 else cls.UNKNOWN


SAME, OTHER, UNKNOWN = Judgement.SAME, Judgement.OTHER, Judgement.UNKNOWN
