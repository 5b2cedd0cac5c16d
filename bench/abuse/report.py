"""What was sent and what was survived, as a table for people and one object for programs."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from bench.abuse.fuzz import Fuzzed, FuzzResult


def table(fuzzed: Fuzzed) -> str:
    return "\n".join(_lines(fuzzed))


def _lines(fuzzed: Fuzzed) -> Iterator[str]:
    columns = ("sessions", "messages", "answers", "texts", "survived")
    totals = summary(fuzzed)
    yield f"{'':44}" + "".join(f"{name:>10}" for name in columns)
    yield f"{'fuzzer':44}" + "".join(f"{totals[name]:10}" for name in columns)
    for what, number in sum((outcome.sent for outcome in fuzzed.outcomes), Counter()).most_common():
        yield f"  {what:42}{'':10}{number:10}"
    rest, peak = _most_memory(fuzzed.outcomes)
    yield f"  {_rate(fuzzed):.0f} messages/s; a server has {rest:.0f} MB at the end of a session, {peak:.0f} MB at most"


def _rate(fuzzed: Fuzzed) -> float:
    return fuzzed.messages / fuzzed.seconds if fuzzed.seconds else 0.0


def _most_memory(outcomes: Sequence[FuzzResult]) -> tuple[float, float]:
    """At the end of a session, and at any time."""
    at_the_end, peak = ((getattr(outcome, name) for outcome in outcomes) for name in ("rest_mb", "peak_mb"))
    return max(at_the_end, default=0.0), max(peak, default=0.0)


def complaints(fuzzed: Fuzzed) -> Iterator[str]:
    """What did not hold, each with how to see it again."""
    for outcome in fuzzed.outcomes:
        if outcome.wrong:
            yield f"session {outcome.plan.seed}:"
            yield from (f"    {problem}" for problem in outcome.wrong)
            yield f"    again: python -m bench.abuse --session {outcome.plan.seed}"
            yield f"    again, byte by byte: python -m bench.abuse --replay {fuzzed.files.get(outcome.plan.seed)}"


def summary(fuzzed: Fuzzed) -> dict[str, Any]:
    rest, peak = _most_memory(fuzzed.outcomes)
    return {
        "sessions": len(fuzzed.outcomes),
        "survived": sum(not outcome.wrong for outcome in fuzzed.outcomes),
        "messages": fuzzed.messages,
        "answers": sum(outcome.answers for outcome in fuzzed.outcomes),
        "texts": sum(outcome.texts for outcome in fuzzed.outcomes),
        "messages_per_s": round(_rate(fuzzed)),
        "rest_mb": round(rest),
        "peak_mb": round(peak),
    }
