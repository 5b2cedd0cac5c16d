"""A trained model's answers to the same rows by each way of decoding: our policy, plain AR, and AR with copies."""

import json
import statistics
import time
from itertools import islice
from pathlib import Path
from typing import get_args

from bench.next_edit.cases import Case, cases
from mercury_engine.api import InfillRequest, Span, Window
from mercury_engine.decode.policy import Decode
from mercury_engine.engine import MercuryEngine, open_engine

EDITS = "edits"
AROUND = 30
"""Lines before and after an edit that a model reads."""
BINS = {"1-8": (1, 8), "9-16": (9, 16), "17-32": (17, 32), "33-": (33, 1 << 30)}
MODES = {"single_line": "line", "multi_line": "block", "random_span": "block"}


def compare(folder: Path, rows: Path, edits: Path, limit: int) -> dict[str, object]:
    """Wall time by length of the answer, and of edits, in pairs: each row is answered in every way before the next."""
    ways = get_args(Decode)
    engines = {way: open_engine(folder, decode=way, bar=0.0) for way in ways}
    times: dict[str, list[dict[str, float]]] = {name: [] for name in (*BINS, EDITS)}
    same = asked = 0
    due = (case for case in cases(edits) if case.expected)
    for number, asking in enumerate([*read(rows, limit), *islice(due, limit)]):
        found = {way: _timed(engine, request(asking, f"{number}-{way}")) for way, engine in engines.items()}
        length = found["ar"][2]
        name = next(name for name, (low, high) in BINS.items() if low <= max(length, 1) <= high)
        times[EDITS if isinstance(asking, Case) else name].append({way: ms for way, (_, ms, _) in found.items()})
        same += found["policy"][0] == found["ar"][0]
        asked += 1
    _report(times)
    shares = {way: engine.report.shares() for way, engine in engines.items()}
    print(f"policy agrees with AR: {same} of {asked}; actions of the policy: {shares['policy']}")
    return {"bins": ratios(times), "same_as_ar": same / max(asked, 1), "shares": shares, "n": asked}


def read(path: Path, limit: int) -> list[dict]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for _, line in zip(range(limit), lines, strict=False)]


def request(row: dict | Case, session: str) -> InfillRequest:
    return _rewriting(row, session) if isinstance(row, Case) else _filling(row, session)


def _rewriting(case: Case, session: str) -> InfillRequest:
    """A request for the lines of the next edit and one line on either side."""
    snapshot, (change, *_) = case.snapshot, case.expected
    first, last = snapshot.line_of(change.start), snapshot.line_of(max(change.end - 1, change.start))
    start, end = snapshot.line_start(max(first - AROUND, 0)), snapshot.line_stop(last + AROUND)
    asked = Span(0, snapshot.line_start(max(first - 1, 0)) - start, snapshot.line_stop(last + 1) - start, "edit")
    return InfillRequest(
        session=session,
        windows=(Window(snapshot.path, snapshot.language, snapshot.text[start:end]),),
        spans=(asked,),
        edits=case.history.edits(),
        effort="medium",
    )


def _filling(row: dict, session: str) -> InfillRequest:
    text, at = row["prefix"] + row["suffix"], len(row["prefix"])
    mode = MODES.get(row["kind"], "line")
    return InfillRequest(
        session=session,
        windows=(Window(row["path"], row["language"], text),),
        spans=(Span(0, at, at, mode),),
        effort="medium",
    )


def _timed(engine: MercuryEngine, asked: InfillRequest) -> tuple[str, float, int]:
    """The answer, its milliseconds once the context is read, and its length in tokens."""
    for _ in engine.warm(asked):
        pass
    began = time.perf_counter()
    *_, last = engine.infill(asked)
    filled = last.spans[0]
    return filled.text, 1000 * (time.perf_counter() - began), len(filled.confidence)


def ratios(times: dict[str, list[dict[str, float]]]) -> dict[str, dict[str, float]]:
    """Our time relative to the better of the others, as the median over the rows of each bin and of all."""
    everything = {**times, "all": [entry for entries in times.values() for entry in entries]}
    return {
        name: {
            "n": len(entries),
            "policy_ms": round(statistics.median(e["policy"] for e in entries), 1),
            "ar_ms": round(statistics.median(e["ar"] for e in entries), 1),
            "ratio": round(statistics.median(e["policy"] / min(e["ar"], e["ar+copy"]) for e in entries), 2),
        }
        for name, entries in everything.items()
        if entries
    }


def _report(times: dict[str, list[dict[str, float]]]) -> None:
    print(f"\n{'tokens':8}{'rows':>6}{'policy':>10}{'ar':>10}{'ratio':>8}")
    for name, found in ratios(times).items():
        print(f"{name:8}{found['n']:6}{found['policy_ms']:10.1f}{found['ar_ms']:10.1f}{found['ratio']:8.2f}")
