"""Slots are settled by certainty, the leftmost first among equals; gaps grow and shrink."""

import numpy as np
import pytest

from mercury_engine.families.family import family_named
from mercury_engine.families.slots import Slots
from mercury_engine.families.vocabulary import FamilyVocabulary
from tests.engine.families.fakes import tokenizer_of

DREAM_ON = family_named("dreamon")
TOKENIZER = tokenizer_of(DREAM_ON)
VOCABULARY = FamilyVocabulary(DREAM_ON, TOKENIZER, TOKENIZER.vocabulary + 3)
EXPAND, DELETE = VOCABULARY.expand, VOCABULARY.delete


def logits(*said):
    """A row for each token with its probability."""
    rows = np.zeros((len(said), TOKENIZER.vocabulary + 3), np.float32)
    others = len(TOKENIZER.token_bytes) - len(TOKENIZER.added) + 2 - 1
    for row, (token, probability) in zip(rows, said, strict=True):
        row[token if isinstance(token, int) else ord(token)] = np.log(probability / (1 - probability) * others)
    return rows


def shown(slots):
    """Settled bytes, `.` for an open slot."""
    return "".join("." if token == VOCABULARY.mask else chr(token) for token in slots.ids)


def check(said, expected, *, limit=8, **options):
    slots = Slots(VOCABULARY, len(said), limit=limit, **options)
    slots.settle(logits(*said))
    assert shown(slots) == expected
    return slots


def test_sure_slots_are_all_settled_at_once():
    check([("a", 0.95), ("b", 0.5), ("c", 0.91)], "a.c")


def test_surest_slot_is_settled_in_any_case():
    check([("a", 0.3), ("b", 0.5), ("c", 0.4)], ".b.")


def test_leftmost_of_about_equally_sure_slots_is_settled():
    check([("a", 0.2), ("b", 0.497), ("c", 0.5)], ".b.")


def test_probabilities_are_those_among_the_permitted():
    slots = check([("a", 0.95), ("b", 0.6)], "a.")
    assert slots.leading == [(ord("a"), pytest.approx(0.95, abs=0.005))]


def test_expansion_becomes_two_open_slots():
    check([("a", 0.95), (EXPAND, 0.95), ("c", 0.95)], "a..c")


def test_expansion_stops_at_the_limit():
    check([(EXPAND, 0.95), (EXPAND, 0.95)], "...", limit=3)
    full = Slots(VOCABULARY, 2, limit=2)
    full.settle(logits((EXPAND, 0.95), ("b", 0.95)))
    assert shown(full) == ".b"


def test_deletion_takes_open_slots_behind_it_along():
    check([("a", 0.5), (DELETE, 0.95), ("c", 0.5), ("d", 0.95), ("e", 0.5)], ".d")


def test_gap_may_vanish():
    slots = check([(DELETE, 0.95), (DELETE, 0.95)], "")
    assert not slots.open
    assert slots.leading == []


def test_windows_are_settled_one_after_the_other():
    said = [("a", 0.95), ("b", 0.3), ("c", 0.95), ("d", 0.95)]
    check(said, "a...", window=2)
    check(said, "a...", window=2, start=1)
    check(said, "a.cd", window=4)


def test_begun_word_is_spelled_from_the_left():
    check([("x", 0.95), ("b", 0.3), ("c", 0.95)], "abc", typed=b"ab")
    check([("x", 0.95), ("b", 0.3), ("c", 0.5)], "ab.", typed=b"ab")


def test_another_choice_than_the_likeliest():
    row = logits(("a", 0.9))
    row[0, ord("b")] = row[0, ord("a")] - 1
    slots = Slots(VOCABULARY, 1, limit=1, rank=1)
    slots.settle(row)
    assert shown(slots) == "b"
