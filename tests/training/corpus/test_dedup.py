"""Copies are found whether exact, re-indented or slightly changed, and different code is not."""

import random

import numpy as np

from mercury_training.corpus.dedup import Seen, digest, signature


def program(seed: int, lines: int = 120) -> list[str]:
    draw = random.Random(seed)
    return [
        f"value_{draw.randrange(999)} = call_{draw.randrange(999)}(item_{draw.randrange(999)})" for _ in range(lines)
    ]


def reasons(*texts: str) -> list[str | None]:
    seen = Seen()
    return [seen.reason(digest(text.encode()), signature(text.encode())) for text in texts]


def test_first_of_several_copies_stays():
    text = "\n".join(program(1))
    indented = text.replace("\n", "\n    ")
    assert reasons(text, text, indented) == [None, "exact duplicate", "exact duplicate"]


def test_small_change_is_a_near_duplicate_and_large_one_is_not():
    lines = program(1)
    changed = [*lines[:60], "renamed = other(thing)", *lines[61:]]
    half = [*lines[:60], *program(2, 60)]
    assert reasons("\n".join(lines), "\n".join(changed), "\n".join(half)) == [None, "near duplicate", None]


def test_dropped_text_makes_no_later_text_a_copy():
    lines, seen = program(3), Seen()
    versions = ["\n".join(lines[shift : shift + 100]) for shift in (0, 10, 20)]
    found = [seen.reason(digest(text.encode()), signature(text.encode())) for text in versions]
    assert found == [None, "near duplicate", None]


def test_signature_estimates_share_of_common_shingles():
    lines = program(4, 400)
    one, other = (signature("\n".join(part).encode()) for part in (lines[:300], lines[100:]))
    assert abs(np.mean(one == other) - 0.5) < 0.2
    assert np.array_equal(signature(b""), signature(b"  \n"))
