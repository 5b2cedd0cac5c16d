"""Turns results into figures: shares with intervals, paired timings, calibration, a table and a line of JSON."""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from mercury_training.corpus.syntax import count_errors
from mercury_training.evaluate.contestants import BASELINES, Suggestion
from mercury_training.evaluate.held_out import Reading
from mercury_training.evaluate.metrics import (
    Interval,
    bootstrap,
    chrf,
    ece,
    exact,
    exact_first_line,
    reliability,
    similarity,
    wilson,
)
from mercury_training.rows.fim_rows import FimRow, Kind

KINDS: tuple[Kind, ...] = ("single_line", "multi_line", "random_span")
SINGLE_LINE_HUMANEVAL = "humaneval/single-line"


class Result(Struct, frozen=True, kw_only=True, tag="result"):
    """One contestant's scored answer. `parses`: with no more errors than the true text; `passed`: None if not run."""

    set: str
    id: str
    by: str
    kind: Kind
    language: str
    copy: bool
    suggestion: Suggestion
    exact: bool
    first_line: bool
    similarity: float
    chrf: float
    parses: bool | None = None
    passed: bool | None = None


class Evaluated(Struct, frozen=True, kw_only=True):
    """All results. `subject` is the evaluated way of decoding, `reasons` say why figures are missing."""

    model: str
    device: str
    parameters: int | None
    subject: str
    results: Sequence[Result]
    readings: Sequence[Reading]
    reasons: dict[str, str]


def score(set_name: str, contestant: str, row: FimRow, suggestion: Suggestion, passed: bool | None) -> Result:
    answer, truth = suggestion.text, row.middle
    return Result(
        set=set_name,
        id=row.id,
        by=contestant,
        kind=row.kind,
        language=row.language,
        copy=row.copy,
        suggestion=suggestion,
        exact=exact(answer, truth),
        first_line=exact_first_line(answer, truth),
        similarity=similarity(answer, truth),
        chrf=chrf(answer, truth),
        parses=_parses(row, answer),
        passed=passed,
    )


def figures(evaluated: Evaluated) -> dict:
    """The contents of the last line. A missing figure is null, and `reasons` says why."""
    main = _main_set(evaluated)
    ours = _of(evaluated, set=main, by=evaluated.subject)
    subject = dict.fromkeys(KINDS) | _shares(ours)
    comparisons = {name: _exact_of(evaluated, main, name) for name in ("ar", "unverified")}
    lines = [result for result in ours if result.kind == "single_line"]
    pairs = _pairs(evaluated, main, "single_line")
    block_pairs = _pairs(evaluated, main, "multi_line")
    values = {
        "model": evaluated.model,
        "device": evaluated.device,
        "params": evaluated.parameters,
        "set": main,
        "n": len(ours),
        "decode": evaluated.subject,
        "bits_per_byte": _rounded(bits_per_byte(evaluated.readings)),
        "humaneval_infilling_single_line": _pass(evaluated, SINGLE_LINE_HUMANEVAL, evaluated.subject),
        **{f"{kind}_em": _value(subject[kind]) for kind in KINDS},
        "single_line_em_not_copied": _not_copied(evaluated, main, evaluated.subject),
        "ar_single_line_em": _value(comparisons["ar"].get("single_line")),
        "unverified_single_line_em": _value(comparisons["unverified"].get("single_line")),
        "ar_multi_line_em": _value(comparisons["ar"].get("multi_line")),
        "unverified_multi_line_em": _value(comparisons["unverified"].get("multi_line")),
        "accepted_per_forward": _per_forward(ours),
        "forwards_per_suggestion": _mean([r.suggestion.forwards for r in ours]),
        "ms_per_suggestion": _median([r.suggestion.milliseconds for r in lines]),
        "ms_per_suggestion_ar": _median([ar for _, ar in pairs]),
        "speedup_over_ar": _value(_speedup(pairs)),
        "multi_line_ms_per_suggestion": _median([ours for ours, _ in block_pairs]),
        "multi_line_ms_per_suggestion_ar": _median([ar for _, ar in block_pairs]),
        "multi_line_speedup_over_ar": _value(_speedup(block_pairs)),
        "ms_to_read_context": _median([r.suggestion.reading_milliseconds for r in ours]),
        "ece": _rounded(ece([r.suggestion.p_accept for r in ours], [r.exact for r in ours])),
        "intervals": {f"{kind}_em": _bounds(subject[kind]) for kind in KINDS}
        | {
            "speedup_over_ar": _bounds(_speedup(pairs)),
            "multi_line_speedup_over_ar": _bounds(_speedup(block_pairs)),
        },
        **{name: _baseline(evaluated, main, name) for name in BASELINES},
        "sets": {name: _set(evaluated, name) for name in _sets(evaluated)},
    }
    missing = {name for name, value in values.items() if value is None}
    values["reasons"] = {name: evaluated.reasons.get(name, "no rows of this kind were evaluated") for name in missing}
    return values


def table(evaluated: Evaluated) -> str:
    """The table: each set by kind and language, its rivals, calibration, and bits per byte."""
    lines = [f"{evaluated.model} on {evaluated.device}, decode {evaluated.subject}"]
    for name in _sets(evaluated):
        lines += ["", *_set_table(evaluated, name)]
    ours = _of(evaluated, by=evaluated.subject)
    if ours:
        lines += ["", "calibration: predicted chance of being accepted, against exact match"]
        confidences = [r.suggestion.p_accept for r in ours]
        lines += [
            f"  {bar.confidence:5.2f} predicted  {bar.accuracy:5.2f} exact  n {bar.count}"
            for bar in reliability(confidences, [r.exact for r in ours])
        ]
    if evaluated.readings:
        lines += ["", "bits per byte on held-out text"]
        for language in dict.fromkeys(reading.language for reading in evaluated.readings):
            chosen = [reading for reading in evaluated.readings if reading.language == language]
            lines.append(f"  {language:12} {bits_per_byte(chosen):6.3f}  {len(chosen)} documents")
    return "\n".join(lines)


def bits_per_byte(readings: Sequence[Reading]) -> float | None:
    size = sum(reading.bytes for reading in readings)
    return sum(reading.bits for reading in readings) / size if size else None


def _set_table(evaluated: Evaluated, name: str) -> list[str]:
    lines = [
        f"{name}",
        f"  {'':24} {'n':>5}  {'exact':20} {'first line':>10} {'similarity':>10} {'chrF':>5} {'parses':>6}"
        f" {'pass@1':20} {'ms p50':>7} {'p90':>7} {'tok/fwd':>7}",
    ]
    for contestant in dict.fromkeys([evaluated.subject, *(result.by for result in evaluated.results)]):
        results = _of(evaluated, set=name, by=contestant)
        for kind in KINDS:
            members = [result for result in results if result.kind == kind]
            if members:
                lines.append(_line(f"{contestant} {kind}", members))
            languages = dict.fromkeys(sorted(result.language for result in members))
            if contestant == evaluated.subject and len(languages) > 1:
                lines += [
                    _line(f"  {language}", [r for r in members if r.language == language]) for language in languages
                ]
    return lines


def _line(label: str, results: Sequence[Result]) -> str:
    times = sorted(result.suggestion.milliseconds for result in results)
    parsed = [result for result in results if result.parses is not None]
    run = [result for result in results if result.passed is not None]
    per_forward = _per_forward(results)
    return (
        f"  {label:24} {len(results):5}  {_shown(_share(results, 'exact')):20}"
        f" {_share(results, 'first_line').value:10.1%} {_mean([r.similarity for r in results]):10.3f}"
        f" {_mean([r.chrf for r in results]):5.1f} {_percent(parsed, 'parses'):>6}"
        f" {_shown(_share(run, 'passed')) if run else '':20} {statistics.median(times):7.1f}"
        f" {times[math.ceil(0.9 * len(times)) - 1]:7.1f} {'' if per_forward is None else per_forward:>7}"
    )


def _baseline(evaluated: Evaluated, main: str, name: str) -> dict[str, float | None]:
    shares = _exact_of(evaluated, main, name)
    return {
        "humaneval_infilling_single_line": _pass(evaluated, SINGLE_LINE_HUMANEVAL, name),
        **{f"{kind}_em": _value(shares.get(kind)) for kind in KINDS},
        "single_line_em_not_copied": _not_copied(evaluated, main, name),
    }


def _not_copied(evaluated: Evaluated, main: str, contestant: str) -> float | None:
    """The share of exact lines among those that occur nowhere else in their file."""
    lines = _of(evaluated, set=main, by=contestant, kind="single_line")
    return _value(_share([result for result in lines if not result.copy], "exact"))


def _set(evaluated: Evaluated, name: str) -> dict:
    """Every contestant's figures on one set."""
    return {
        contestant: {
            "n": len(results),
            **{f"{kind}_em": _value(share) for kind, share in _shares(results).items()},
            **{f"{kind}_em_interval": _bounds(share) for kind, share in _shares(results).items()},
            "similarity": _mean([result.similarity for result in results]),
            "similarity_interval": _bounds(bootstrap([result.similarity for result in results], statistics.fmean)),
            "parses": _value(_share([r for r in results if r.parses is not None], "parses")),
            "pass_at_1": _pass(evaluated, name, contestant),
            "pass_at_1_interval": _bounds(_share([r for r in results if r.passed is not None], "passed")),
        }
        for contestant in dict.fromkeys(result.by for result in evaluated.results)
        if (results := _of(evaluated, set=name, by=contestant))
    }


def _main_set(evaluated: Evaluated) -> str:
    """The largest set other than HumanEval."""
    sizes = {name: len(_of(evaluated, set=name, by=evaluated.subject)) for name in _sets(evaluated)}
    return max((name for name in sizes if not name.startswith("humaneval/")), key=sizes.__getitem__, default="")


def _sets(evaluated: Evaluated) -> list[str]:
    return list(dict.fromkeys(result.set for result in evaluated.results))


def _of(evaluated: Evaluated, **fields: str) -> list[Result]:
    return [r for r in evaluated.results if all(getattr(r, field) == value for field, value in fields.items())]


def _shares(results: Sequence[Result]) -> dict[str, Interval]:
    groups = {kind: [result for result in results if result.kind == kind] for kind in KINDS}
    return {kind: _share(members, "exact") for kind, members in groups.items() if members}


def _share(results: Sequence[Result], field: str) -> Interval:
    return wilson(sum(bool(getattr(result, field)) for result in results), len(results))


def _exact_of(evaluated: Evaluated, main: str, contestant: str) -> dict[str, Interval]:
    return _shares(_of(evaluated, set=main, by=contestant))


def _pass(evaluated: Evaluated, name: str, contestant: str) -> float | None:
    return _value(_share([r for r in _of(evaluated, set=name, by=contestant) if r.passed is not None], "passed"))


def _pairs(evaluated: Evaluated, main: str, kind: Kind) -> list[tuple[float, float]]:
    """Milliseconds for the same rows, ours and autoregressive."""
    ar = {r.id: r.suggestion.milliseconds for r in _of(evaluated, set=main, by="ar", kind=kind)}
    ours = _of(evaluated, set=main, by=evaluated.subject, kind=kind)
    return [(r.suggestion.milliseconds, ar[r.id]) for r in ours if r.id in ar]


def _speedup(pairs: Sequence[tuple[float, float]]) -> Interval | None:
    """The median ratio of the pairs."""
    ratios = [ar / ours for ours, ar in pairs if ours > 0]
    return bootstrap(ratios, statistics.median) if ratios else None


def _per_forward(results: Sequence[Result]) -> float | None:
    work = [(r.suggestion.settled, r.suggestion.forwards) for r in results]
    counted = [(settled, forwards) for settled, forwards in work if settled is not None and forwards]
    return _rounded(sum(s for s, _ in counted) / sum(f for _, f in counted)) if counted else None


def _parses(row: FimRow, answer: str) -> bool | None:
    errors, true_errors = (
        count_errors(row.language, row.prefix + middle + row.suffix) for middle in (answer, row.middle)
    )
    return None if errors is None or true_errors is None else errors <= true_errors


def _percent(results: Sequence[Result], field: str) -> str:
    return f"{_share(results, field).value:.0%}" if results else ""


def _shown(share: Interval) -> str:
    return f"{share.value:6.1%} [{share.low:.1%}, {share.high:.1%}]"


def _bounds(share: Interval | None) -> list[float] | None:
    return None if share is None or math.isnan(share.value) else [round(share.low, 4), round(share.high, 4)]


def _value(share: Interval | None) -> float | None:
    return None if share is None else _rounded(share.value)


def _mean(values: Iterable[float | None]) -> float | None:
    return _over(statistics.fmean, values)


def _median(values: Iterable[float | None]) -> float | None:
    return _over(statistics.median, values)


def _over(statistic: Callable[[Sequence[float]], float], values: Iterable[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return _rounded(statistic(present)) if present else None


def _rounded(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else round(value, 4)
