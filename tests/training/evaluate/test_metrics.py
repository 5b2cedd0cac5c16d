"""Metrics agree with figures worked out by hand, and with obvious slow versions."""

import math
from collections import Counter
from difflib import SequenceMatcher

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercury_training.evaluate.metrics import (
    Bin,
    bootstrap,
    chrf,
    delta_chrf,
    ece,
    exact,
    exact_first_line,
    reliability,
    similarity,
    wilson,
)

TEXTS = st.text("abc \n(é", max_size=24)


@pytest.mark.parametrize(
    ("answer", "truth", "right"),
    [
        ("return x", "return x", True),
        ("return x  ", "return x", True),
        ("a = 1 \nb = 2\t", "a = 1\nb = 2", True),
        ("a = 1\n", "a = 1", True),
        ("  return x", "return x", False),
        ("return x + 1", "return x", False),
        ("", "pass", False),
        ("a\n\nb", "a\nb", False),
    ],
)
def test_exact_ignores_trailing_blanks_only(answer, truth, right):
    assert exact(answer, truth) is right


def test_first_line_may_be_exact_alone():
    assert exact_first_line("if x: \n  a", "if x:\n  b")
    assert not exact_first_line("if y:\n  b", "if x:\n  b")


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [("", "", 1.0), ("", "a", 0.0), ("abc", "abc", 1.0), ("abcd", "bd", 4 / 6), ("kitten", "sitting", 8 / 13)],
)
def test_similarity_of_known_pairs(left, right, expected):
    assert similarity(left, right) == pytest.approx(expected)


@given(TEXTS, TEXTS)
def test_similarity_is_the_longest_common_subsequence(left, right):
    longest = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i, a in enumerate(left, 1):
        for j, b in enumerate(right, 1):
            longest[i][j] = longest[i - 1][j - 1] + 1 if a == b else max(longest[i - 1][j], longest[i][j - 1])
    total = len(left) + len(right)
    assert similarity(left, right) == pytest.approx(2 * longest[-1][-1] / total if total else 1.0)
    assert similarity(left, right) >= SequenceMatcher(None, left, right, autojunk=False).ratio() - 1e-12


@pytest.mark.parametrize(
    ("answer", "truth", "expected"),
    [
        ("", "", 100.0),
        ("", "a", 0.0),
        ("a", "", 0.0),
        ("abcdefg", "abcdefg", 100.0),
        ("a b", "ab", 100.0),
        ("xyz", "abc", 0.0),
        # 1-grams 2/3, 2-grams 1/2, 3-grams none, the same both ways
        ("abc", "abd", 100 * (2 / 3 + 1 / 2) / 3),
        # precision 1; recall (2/4 + 1/3) / 2 = 5/12, longer n-grams are not in both
        ("ab", "abcd", 100 * 5 * (5 / 12) / (4 + 5 / 12)),
    ],
)
def test_chrf_of_known_pairs(answer, truth, expected):
    assert chrf(answer, truth) == pytest.approx(expected)


def slow_grams(text, order):
    dense = [character for character in text if not character.isspace()]
    return ["".join(dense[i : i + order]) for i in range(len(dense) - order + 1)]


def slow_f(pairs):
    precisions, recalls = [], []
    for answer, truth in pairs:
        if not answer or not truth:
            continue
        left, common = list(truth), 0
        for gram in answer:
            if gram in left:
                left.remove(gram)
                common += 1
        precisions.append(common / len(answer))
        recalls.append(common / len(truth))
    if not precisions:
        return 0.0 if any(answer or truth for answer, truth in pairs) else 100.0
    p, r = sum(precisions) / len(precisions), sum(recalls) / len(recalls)
    return 100 * 5 * p * r / (4 * p + r) if p + r else 0.0


@given(TEXTS, TEXTS)
def test_chrf_is_the_slow_one(answer, truth):
    pairs = [(slow_grams(answer, n), slow_grams(truth, n)) for n in range(1, 7)]
    assert chrf(answer, truth) == pytest.approx(slow_f(pairs))


@pytest.mark.parametrize(
    ("before", "answer", "truth", "expected"),
    [
        ("same", "same", "same", 100.0),
        ("abc", "abc", "abcd", 0.0),
        ("abc", "abcd", "abc", 0.0),
        ("abc", "abcd", "abcd", 100.0),
        # adds x, b where xa, ab were due: 1- and 2-grams each half recalled, all precise
        ("x", "xa", "xab", 100 * 5 * 0.5 / 4.5),
        # takes c and bc, abc: all that was due
        ("abc", "ab", "ab", 100.0),
        # what one edit adds, the other takes
        ("ab", "abb", "a", 0.0),
    ],
)
def test_delta_chrf_of_known_edits(before, answer, truth, expected):
    assert delta_chrf(before, answer, truth) == pytest.approx(expected)


def slow_changes(before, after, order):
    counts = Counter(slow_grams(after, order))
    counts.subtract(slow_grams(before, order))
    return [("+" if count > 0 else "-", gram) for gram, count in counts.items() for _ in range(abs(count))]


@given(TEXTS, TEXTS, TEXTS)
def test_delta_chrf_is_the_slow_one(before, answer, truth):
    if answer.split() == truth.split():
        assert delta_chrf(before, answer, truth) == 100.0
        return
    pairs = [(slow_changes(before, answer, n), slow_changes(before, truth, n)) for n in range(1, 7)]
    expected = 100.0 if "".join(answer.split()) == "".join(truth.split()) else slow_f(pairs)
    assert delta_chrf(before, answer, truth) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("successes", "count", "low", "high"),
    [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0), (228, 240, 0.9147, 0.9712)],
)
def test_wilson_of_known_shares(successes, count, low, high):
    found = wilson(successes, count)
    assert (found.value, found.low, found.high) == pytest.approx((successes / count, low, high), abs=1e-4)


def test_zero_trials_say_nothing():
    found = wilson(0, 0)
    assert math.isnan(found.value)
    assert (found.low, found.high) == (0.0, 1.0)


@given(st.integers(1, 300).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_ends_where_the_share_is_that_many_deviations_off(trials):
    successes, count = trials
    found = wilson(successes, count)
    for end in (found.low, found.high):
        if 0 < end < 1:
            assert abs(found.value - end) == pytest.approx(1.959964 * math.sqrt(end * (1 - end) / count), abs=1e-6)


def test_bootstrap_repeats_itself_and_surrounds_the_mean():
    values = [float(i % 7) for i in range(70)]
    mean = lambda drawn: sum(drawn) / len(drawn)  # noqa: E731
    found = bootstrap(values, mean, seed=3)
    assert found == bootstrap(values, mean, seed=3)
    assert found.low < found.value == 3.0 < found.high
    assert found.high - found.low == pytest.approx(4 * 2 / math.sqrt(70), rel=0.2)
    assert bootstrap([2.0] * 5, mean) == (constant := bootstrap([2.0], mean))
    assert (constant.low, constant.value, constant.high) == (2.0, 2.0, 2.0)


def test_calibration_of_known_predictions():
    confidences, right = [0.95, 0.95, 0.1, 0.1, 1.0], [True, False, False, False, True]
    bins = reliability(confidences, right)
    assert bins[0] == Bin(2, 0.1, 0.0)
    assert (bins[1].count, bins[1].accuracy) == (3, 2 / 3)
    assert ece(confidences, right) == pytest.approx(2 / 5 * 0.1 + 3 / 5 * (2.9 / 3 - 2 / 3))
    assert math.isnan(ece([], []))


@given(st.lists(st.tuples(st.integers(0, 16).map(lambda i: i / 16), st.booleans()), min_size=1))
def test_calibration_is_the_slow_one(predictions):
    error = 0.0
    for low in range(10):
        inside = [(c, r) for c, r in predictions if low <= c * 10 < low + 1 or (low == 9 and c == 1.0)]
        if inside:
            error += abs(sum(c for c, _ in inside) - sum(r for _, r in inside)) / len(predictions)
    assert ece([c for c, _ in predictions], [r for _, r in predictions]) == pytest.approx(error)
