"""Figures for answers: each a value with its confidence interval, or null if there is nothing to count."""

import statistics
from collections import Counter
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from bench.harness.measures import reason
from bench.next_edit.measure import Outcome
from bench.next_edit.measure import score as next_edit_score
from bench.quality.editor import AnswerCost
from mercury_training.evaluate.metrics import Interval, bootstrap, ece, reliability, wilson
from mercury_training.evaluate.scores import Result

PERCENTILES = range(0, 101, 5)


class AnsweredRow(Struct, frozen=True, kw_only=True):
    """One contender's answers to one row. `result` scores the answer to the explicit request; `right` is the event of
    its P(accept): that the true text begins with it. `shown_exact` and `shown_begins` are None if nothing was shown;
    `ended`: whether the answer holds nothing of the code behind the gap, None without an answer; `curve`: the
    similarity of the draft after each pass."""

    result: Result
    right: bool
    shown_exact: bool | None
    shown_begins: bool | None
    ended: bool | None
    silence: str
    cost: AnswerCost | None
    curve: tuple[float, ...]


def figures(found: Sequence[AnsweredRow]) -> dict[str, Any]:
    """The figures of one contender on one set."""
    results = [each.result for each in found]
    kinds, languages = (sorted({getattr(r, field) for r in results}) for field in ("kind", "language"))
    costs = [each.cost for each in found if each.cost]
    given = [each for each in found if each.result.suggestion.text]
    confidences, right = [each.result.suggestion.p_accept for each in given], [each.right for each in given]
    return {
        **_shares(found),
        "by_kind": {kind: _shares([e for e in found if e.result.kind == kind]) for kind in kinds},
        "by_language": {name: _shares([e for e in found if e.result.language == name]) for name in languages},
        "ece": _number(ece(confidences, right)),
        "reliability": [asdict(each) for each in reliability(confidences, right)],
        "dropped": dict(Counter(reason(each.silence) for each in found if each.silence).most_common()),
        "passes": _mean([cost.passes for cost in costs]),
        "characters_per_pass": _ratio(sum(len(c.drafts[-1]) for c in costs), sum(c.passes for c in costs)),
        "milliseconds": _percentiles([cost.milliseconds for cost in costs]),
        "reading_milliseconds": _percentiles([cost.reading_milliseconds for cost in costs]),
        "similarity_after_passes": [_mean(column) for column in zip(*(e.curve for e in found if e.curve), strict=True)],
    }


def _shares(found: Sequence[AnsweredRow]) -> dict[str, Any]:
    """With the gate: how often something is shown, and how often that is right. On explicit request: the same, and
    the similarity of the answers; `parses` is among those offered."""
    results = [each.result for each in found]
    shown = [each.shown_exact for each in found if each.shown_exact is not None]
    begins = [each.shown_begins for each in found if each.shown_begins is not None]
    given = [r.exact for r in results if r.suggestion.text]
    ended = [each.ended for each in found if each.ended is not None]
    parsed = [r.parses for r in results if r.suggestion.text and r.parses is not None]
    run = [r.passed for r in results if r.passed is not None]
    return {
        "n": len(found),
        "shown": _share(len(shown), len(found)),
        "right_when_shown": _share(sum(shown), len(shown)),
        "begins_when_shown": _share(sum(begins), len(begins)),
        "given": _share(len(given), len(found)),
        "right_when_given": _share(sum(given), len(given)),
        "ended": _share(sum(ended), len(ended)),
        "exact": _share(sum(r.exact for r in results), len(results)),
        "first_line": _share(sum(r.first_line for r in results), len(results)),
        "similarity": _bounds(bootstrap([r.similarity for r in results], statistics.fmean)),
        "chrf": _bounds(bootstrap([r.chrf for r in results], statistics.fmean)),
        "parses": _share(sum(parsed), len(parsed)),
        "pass_at_1": _share(sum(run), len(run)),
    }


def beside(ours: Sequence[AnsweredRow], theirs: Sequence[AnsweredRow]) -> dict[str, Any]:
    """A peer compared with us on the same rows: the median ratio of times, its interval and quartiles."""
    other = {each.result.id: each for each in theirs}
    pairs = [(each.cost, other[each.result.id].cost) for each in ours]
    known = [(mine, its) for mine, its in pairs if mine and its]
    ratios = [its.milliseconds / mine.milliseconds for mine, its in known if mine.milliseconds > 0]
    same = [mine.drafts[-1] == its.drafts[-1] for mine, its in known]
    return {
        "times_our_time": _bounds(bootstrap(ratios, statistics.median)),
        "times_our_time_quartiles": [_number(each) for each in statistics.quantiles(ratios)]
        if len(ratios) > 1
        else None,
        "times_our_passes": _ratio(sum(its.passes for _, its in known), sum(mine.passes for mine, _ in known)),
        "same_answer": _share(sum(same), len(same)),
    }


def next_edit_figures(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    kinds = sorted({each.kind for each in outcomes})
    shown = [each for each in outcomes if each.shown]
    confidences, right = [each.p_accept for each in shown], [each.exact for each in shown]
    return {
        **_next_edit_shares(outcomes),
        "by_kind": {kind: _next_edit_shares([each for each in outcomes if each.kind == kind]) for kind in kinds},
        "ece": _number(ece(confidences, right)),
        "reliability": [asdict(each) for each in reliability(confidences, right)],
        "dropped": dict(Counter(reason(each.silence) for each in outcomes if each.silence).most_common()),
        "milliseconds": _percentiles([each.milliseconds for each in outcomes]),
    }


def _next_edit_shares(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    due = [each for each in outcomes if each.kind != "none"]
    silent = [each for each in outcomes if each.kind == "none"]
    shown = [each for each in outcomes if each.shown]
    return {
        "n": len(outcomes),
        "score": next_edit_score(outcomes)["score"] if due and silent else None,
        "show": _share(sum(each.shown for each in due), len(due)),
        "quiet": _share(sum(not each.shown for each in silent), len(silent)),
        "right_when_shown": _share(sum(each.exact for each in shown), len(shown)),
        "exact": _share(sum(each.exact for each in due), len(due)),
        "location": _share(sum(each.located for each in due), len(due)),
        "delta_chrf": _bounds(bootstrap([each.delta_chrf for each in due], statistics.fmean)),
    }


def _share(successes: int, count: int) -> list[float] | None:
    return _bounds(wilson(successes, count)) if count else None


def _bounds(found: Interval) -> list[float] | None:
    values = (found.value, found.low, found.high)
    return [round(value, 4) for value in values] if found.value == found.value else None


def _number(value: float) -> float | None:
    return round(value, 4) if value == value else None


def _mean(values: Sequence[float]) -> float | None:
    return round(statistics.fmean(values), 3) if values else None


def _ratio(one: float, other: float) -> float | None:
    return round(one / other, 2) if other else None


def _percentiles(values: Sequence[float]) -> dict[str, float]:
    ordered = sorted(values)
    places = {percent: round((len(ordered) - 1) * percent / 100) for percent in PERCENTILES} if ordered else {}
    return {f"p{percent}": round(ordered[place], 2) for percent, place in places.items()}
