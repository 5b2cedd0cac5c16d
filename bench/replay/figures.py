"""The figures of a replay: the requests, the latency of the answers, and their value."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

from msgspec import Struct

from bench.harness.measures import percentile, reason
from bench.harness.usage import Usage
from bench.replay.fate import Fate, fates, saved
from bench.replay.player import INLINE, SUPERSEDED, Exchange, Log, Shown

NAMES = {
    "inline": "ghost text by the model",
    "model": "by the model, shown or silent",
    "draft": "ghost text, first draft",
    "warm": "  on what was encoded",
    "cold": "  cold, shown or silent",
    "cached": "ghost text typed through",
    "next_edit": "next edit shown",
}
RESTS_MS = 5_000
"""Longer pauses do not count as typing."""


class Played(Struct):
    """The record of one editor's session."""

    name: str
    asked: list[Exchange]
    shown: list[Shown]
    logs: list[Log]
    server: Usage
    texts: int = 0
    wrong_texts: tuple[str, ...] = ()


class Spread(Struct, frozen=True):
    """`levels`: at 0, 5, … 100 percent."""

    n: int
    p50: float = math.nan
    p90: float = math.nan
    p99: float = math.nan
    most: float = math.nan
    levels: tuple[float, ...] = ()


def spread(values: Iterable[float]) -> Spread:
    """Nearest ranks: each is an actual measurement."""
    ordered = sorted(value for value in values if not math.isnan(value))
    if not ordered:
        return Spread(0)
    levels = (percentile(ordered, each) for each in range(0, 101, 5))
    return Spread(len(ordered), *(percentile(ordered, each) for each in (50, 90, 99)), ordered[-1], tuple(levels))


def _typing_hours(logs: Iterable[Log]) -> float:
    """Typing time: all pauses between two edits, long ones capped."""
    times = sorted(edit.t for log in logs for edit in log.edits)
    return sum(min(b - a, RESTS_MS) for a, b in pairwise(times)) / 3_600_000


def _judged(played: Played, inline: bool) -> list[list[Fate]]:
    """The fates of shown offers, document by document."""
    shown = [each for each in played.shown if (each.method == INLINE) == inline]
    return [
        fates(log.text, log.edits, [each.offer for each in shown if each.log == number])
        for number, log in enumerate(played.logs)
    ]


def latencies(asked: Sequence[Exchange]) -> dict[str, Spread]:
    """Milliseconds from sending a request to reading its answer, by outcome."""
    inline = [a for a in asked if a.method == INLINE]
    next_edit = [a for a in asked if a.method != INLINE and a.silence not in ("cancelled", SUPERSEDED)]
    model = [a for a in inline if a.by_model]
    return {
        "ghost text, first draft": spread(a.draft_ms for a in model),
        "ghost text by the model": spread(a.final_ms for a in model if a.is_shown),
        "  on what was encoded": spread(a.final_ms for a in model if a.is_shown and not a.cold),
        "  cold, shown or silent": spread(a.final_ms for a in model if a.cold),
        "by the model, shown or silent": spread(a.final_ms for a in model),
        "ghost text typed through": spread(a.final_ms for a in inline if a.is_shown and not a.by_model),
        "silent, by the model": spread(a.final_ms for a in model if not a.is_shown),
        "silent, no model asked": spread(a.final_ms for a in inline if not a.by_model and not a.is_shown and a.source),
        "next edit shown": spread(a.final_ms for a in next_edit if a.is_shown and not a.is_repeated),
        "next edit still on offer": spread(a.final_ms for a in next_edit if a.is_repeated),
        "next edit silent": spread(a.final_ms for a in next_edit if not a.is_shown),
    }


def figures(all_played: Sequence[Played], engine: Usage) -> dict[str, Any]:
    """One flat record, for the last line."""
    asked = [each for played in all_played for each in played.asked]
    inline, next_edit = ([a for a in asked if (a.method == INLINE) == is_inline] for is_inline in (True, False))
    ghost = [found for played in all_played for found in _judged(played, inline=True)]
    edits = [fate for played in all_played for found in _judged(played, inline=False) for fate in found]
    shown = [fate for found in ghost for fate in found]
    logs = [log for played in all_played for log in played.logs]
    keys = sum(edit.keys for log in logs for edit in log.edits)
    hours = sum(_typing_hours(played.logs) for played in all_played)
    spreads = latencies(asked)
    dropped = reasons(asked)
    return {
        "requests": len(asked),
        "inline_requests": len(inline),
        "next_edit_requests": len(next_edit),
        "inline_answers": spreads[NAMES["inline"]].n,
        "model_answers": spreads[NAMES["model"]].n,
        **{level: ms for name, kind in NAMES.items() for level, ms in named(name, spreads[kind]).items()},
        "levels": {name: [round(ms, 2) for ms in spreads[kind].levels] for name, kind in NAMES.items()},
        "type_through_share": share(spreads["ghost text typed through"].n, sum(a.is_shown for a in inline)),
        "cancelled": dropped.pop("cancelled", 0),
        "superseded": dropped.pop(SUPERSEDED, 0),
        "dropped": sum(dropped.values()),
        "lost": lost(asked),
        "reasons": dict(dropped.most_common()),
        "engine_passes": sum(a.steps for a in inline if a.by_model),
        "engine_tokens": sum(a.tokens for a in inline if a.by_model),
        "shown": len(shown),
        "shows_an_hour": round(len(shown) / hours, 1) if hours else None,
        "typed_as_shown_share": share(sum(fate.typed for fate in shown), len(shown)),
        "line_exact_share": share(sum(fate.line for fate in shown), len(shown)),
        "kept_after_30_s_share": share(sum(fate.kept for fate in shown), len(shown)),
        "characters_typed": keys,
        "characters_saved": sum(map(saved, ghost)),
        "characters_saved_share": share(sum(map(saved, ghost)), keys),
        "next_edits_shown": len(edits),
        "next_edit_shows_per_hour": round(len(edits) / hours, 1) if hours else None,
        "next_edits_made_share": share(sum(fate.typed for fate in edits), len(edits)),
        "typing_hours": round(hours, 4),
        "server_cpu_s": round(sum(played.server.processor_s for played in all_played), 2),
        "engine_cpu_s": round(engine.processor_s, 2),
        "server_rss_mb": round(max((played.server.most_mb for played in all_played), default=0.0), 1),
        "engine_rss_mb": round(engine.most_mb, 1),
        "engine_rss_growth_mb": round(engine.last_mb - engine.first_mb, 1),
        "engine_memory_mb": engine.line(),
        "texts_compared": sum(played.texts for played in all_played),
        "texts_wrong": sum(len(played.wrong_texts) for played in all_played),
    }


def lost(asked: Iterable[Exchange]) -> int:
    """The number of requests that were neither answered nor cancelled."""
    return sum(math.isnan(each.final_ms) or each.silence.startswith("error") for each in asked)


def reasons(asked: Sequence[Exchange]) -> Counter[str]:
    """Reasons of answered requests; unanswered ones are lost, and counted as such."""
    return Counter(reason(a.silence) for a in asked if not a.is_shown and not lost([a]))


def named(name: str, found: Spread) -> dict[str, float | None]:
    values = {"p50": found.p50, "p90": found.p90, "p99": found.p99}
    return {f"{name}_{level}_ms": None if math.isnan(ms) else round(ms, 2) for level, ms in values.items()}


def share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def table(all_played: Sequence[Played], found: dict[str, Any]) -> str:
    """The table: latencies, then reasons for silence, then the other figures."""
    asked = [each for played in all_played for each in played.asked]
    lines = [f"{'ms':30}{'n':>7}{'p50':>9}{'p90':>9}{'p99':>9}{'max':>9}"]
    for name, s in latencies(asked).items():
        lines.append(f"{name:30}{s.n:7}" + "".join(f"{v:9.1f}" for v in (s.p50, s.p90, s.p99, s.most) if s.n))
    for is_inline, title in ((True, "no ghost text because"), (False, "no next edit because")):
        lines += ["", title]
        counted = reasons([a for a in asked if (a.method == INLINE) == is_inline])
        lines += [f"  {count:6}  {why}" for why, count in counted.most_common()]
    lines.append("")
    skipped = ("reasons", "_ms", "levels", "engine_memory_mb")
    lines += [f"{name:30}{value!s:>12}" for name, value in found.items() if not name.endswith(skipped)]
    return "\n".join(lines)
