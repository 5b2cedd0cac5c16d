"""What was done and what was survived, as a table for people and one object for programs."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from bench.abuse.fuzz import Fuzzed, FuzzResult
from bench.abuse.kill import SOON, Killed
from bench.abuse.scarce import Observed
from bench.harness.measures import percentile

__all__ = ["complaints", "summary", "table"]

LONGEST = 110
PERCENTS = {"p50": 50, "p90": 90, "max": 100}


def table(fuzzed: Fuzzed, killed: Killed, scarce: Sequence[Observed]) -> str:
    return "\n".join([*fuzz_lines(fuzzed), *kill_lines(killed), *scarcity_lines(scarce)])


def fuzz_lines(fuzzed: Fuzzed) -> Iterator[str]:
    if not fuzzed.outcomes:
        return
    yield f"{'fuzzer':44}{'sessions':>10}{'messages':>10}{'answers':>10}{'texts':>10}{'survived':>10}"
    for transport in ("stdio", "tcp", "ws"):
        these = [each for each in fuzzed.outcomes if each.plan.transport == transport]
        if these:
            survived = sum(not each.wrong for each in these)
            sums = [sum(column) for column in zip(*((e.messages, e.answers, e.texts) for e in these), strict=True)]
            yield f"  {transport:42}{len(these):10}" + "".join(f"{n:10}" for n in sums) + f"{survived:10}"
    for what, number in sent(fuzzed.outcomes).most_common():
        yield f"  {what:42}{'':10}{number:10}"
    rest, peak = most_memory(fuzzed.outcomes)
    yield f"  {rate(fuzzed):.0f} messages/s; a server has {rest:.0f} MB at the end of a session, {peak:.0f} MB at most"
    yield ""


def kill_lines(killed: Killed) -> Iterator[str]:
    if not killed.faults:
        return
    columns = "".join(f"{name:>10}" for name in ("times", "editors", "p50", "p90", "max"))
    yield f"{'killer: seconds until suggestions came again':44}{columns}"
    for fault, number in killed.faults.most_common():
        yield f"  {fault:42}{number:10}" + spread(killed.recovered.get(fault, []))
    again = [seconds for fault, each in killed.recovered.items() if fault.endswith(SOON) for seconds in each]
    yield f"  {'any of these, soon after another':42}{'':10}" + spread(again)
    yield f"  {'all others':42}{killed.faults.total():10}" + spread(killed.times)
    yield f"  {killed.asked} requests by the editors, in {killed.seconds:.0f} s"
    yield ""


def spread(times: Sequence[float]) -> str:
    return f"{len(times):10}" + "".join(f"{at(times, percent):10.2f}" for percent in PERCENTS.values())


def at(times: Sequence[float], percent: float) -> float:
    return percentile(sorted(times), percent) if times else math.nan


def scarcity_lines(scarce: Sequence[Observed]) -> Iterator[str]:
    if not scarce:
        return
    yield f"{'scarcity':44}{'':10}  expected, and observed"
    for each in scarce:
        observed = each.observed if len(each.observed) <= LONGEST else each.observed[: LONGEST - 1] + "…"
        yield f"  {each.name:42}{each.outcome:>10}  {each.expected}: {observed}"
    yield ""


def sent(outcomes: Sequence[FuzzResult]) -> Counter[str]:
    total: Counter[str] = Counter()
    for each in outcomes:
        total += each.sent
    return total


def rate(fuzzed: Fuzzed) -> float:
    return fuzzed.messages / fuzzed.seconds if fuzzed.seconds else 0.0


def most_memory(outcomes: Sequence[FuzzResult]) -> tuple[float, float]:
    return max((e.rest_mb for e in outcomes), default=0.0), max((e.peak_mb for e in outcomes), default=0.0)


def complaints(fuzzed: Fuzzed, killed: Killed, scarce: Sequence[Observed]) -> Iterator[str]:
    """What did not hold, each with how to see it again."""
    for outcome in fuzzed.outcomes:
        if outcome.wrong:
            yield f"fuzz session {outcome.plan.seed}:"
            yield from (f"    {each}" for each in outcome.wrong)
            yield f"    again: python -m bench.abuse fuzz --session {outcome.plan.seed}"
            yield f"    again, byte by byte: python -m bench.abuse --replay {fuzzed.files.get(outcome.plan.seed)}"
    yield from killed.wrong
    for each in scarce:
        if each.outcome == "failed":
            yield f"{each.name}: {each.observed}\n    again: python -m bench.abuse scarcity --case {each.name!r}"


def summary(fuzzed: Fuzzed, killed: Killed, scarce: Sequence[Observed]) -> dict[str, Any]:
    rest, peak = most_memory(fuzzed.outcomes)
    return {
        "fuzz": {
            "sessions": len(fuzzed.outcomes),
            "survived": sum(not each.wrong for each in fuzzed.outcomes),
            "messages": fuzzed.messages,
            "answers": sum(each.answers for each in fuzzed.outcomes),
            "texts": sum(each.texts for each in fuzzed.outcomes),
            "messages_per_s": round(rate(fuzzed)),
            "rest_mb": round(rest),
            "peak_mb": round(peak),
        },
        "kill": {
            "faults": dict(killed.faults),
            "asked": killed.asked,
            "wrong": len(killed.wrong),
            "recovery_s": {name: none_for_nan(at(killed.times, percent)) for name, percent in PERCENTS.items()},
            "seconds": round(killed.seconds),
        },
        "scarcity": {each.name: each.outcome for each in scarce},
    }


def none_for_nan(seconds: float) -> float | None:
    return None if math.isnan(seconds) else round(seconds, 2)
