"""What a perfect model behind the real language server loses before its answers reach the screen.

    python -m bench.oracle [--quick] [--unseen] [--virtual] [rows] [requests] [typing] [adaptation] [next] [edits]

The model is a server that knows the right answer. Whatever the user does not get is lost by the language server: by
kind of log probabilities and of a model that is half right (rows), by the time to the first token on request (requests)
and while somebody types (typing), to what it learns from its user (adaptation), between one suggestion and the next
(next), and of next edits in every format (edits).
"""

import argparse
import asyncio
import json
import random
from collections.abc import Callable, Sequence
from typing import Any, get_args

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from bench.harness.measures import machine, percentile
from bench.oracle.adaptation import adapted, comes_back
from bench.oracle.asked import AT_ONCE, Judged, Outcome, by_options, next_suggestions
from bench.oracle.desk import Setup, real
from bench.oracle.edits import FORMATS as EDIT_FORMATS
from bench.oracle.edits import Offered, all_rows, edits_asked
from bench.oracle.rows import SINGLE, Row, rows, sources
from bench.oracle.server import Options
from bench.oracle.truth import Wisdom
from bench.oracle.typist import EDITORS, Typed, tasks, typed_by
from bench.oracle.virtual import at_once, virtual

Figures = dict[str, Any]

WISDOMS: tuple[Wisdom, ...] = get_args(Wisdom)
LATENCIES = (150, 250, 400, 700, 2000)
TYPING_LATENCIES = (0, 150, 400, 1000)
HALF_RIGHT_MS = 150
HALF_RIGHT: tuple[Wisdom, ...] = ("sure", "doubting", "overlapping")
SEPARATED = ("right_of_shown", "shown_of_right")
KEPT = (0.3, 0.05)
SUGGESTIONS, LAST_SUGGESTIONS = 300, 100
ROWS_ON_REQUEST = 48
SESSION_KEYS, QUICK_KEYS = 220, 20
WAYS = ("typing", "request")
VIRTUAL = ("rows", "requests", "typing", "adaptation")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", help=f"of {', '.join(PARTS)}; all of them if none is named")
    parser.add_argument("--quick", action="store_true", help="less of everything")
    parser.add_argument("--unseen", action="store_true", help="rows of the files that nothing was looked at in")
    parser.add_argument(
        "--virtual",
        action="store_true",
        help="rows, requests, typing and adaptation in one process and in virtual time, which takes minutes",
    )
    parser.add_argument("--seed", type=int, default=0, help="which gaps are cut")
    chosen = parser.parse_args()
    if unknown := set(chosen.what) - set(PARTS):
        parser.error(f"no such part as {', '.join(sorted(unknown))}: use {', '.join(PARTS)}")
    files = sources(unseen=chosen.unseen)
    scene = _Scene(rows(files, seed=chosen.seed), [file.text for file in files], chosen.quick, chosen.unseen)
    found: Figures = {}
    for name, part in PARTS.items():
        if name in (chosen.what or PARTS):
            is_virtual = chosen.virtual and name in VIRTUAL
            at = replace(scene, setup=virtual) if is_virtual else scene
            found[name] = (at_once if is_virtual else asyncio.run)(part(at))
    print(json.dumps({"machine": machine(), "quick": chosen.quick, "unseen": chosen.unseen, **found}))


class _Scene(Struct, frozen=True):
    """What is measured, and where."""

    cut: Sequence[Row]
    texts: Sequence[str]
    quick: bool
    unseen: bool = False
    setup: Setup = real


async def _rows_part(at: _Scene) -> Figures:
    chosen = some(at.cut, 24) if at.quick else at.cut
    settings = {wisdom: Options(tokens_per_second=AT_ONCE, wisdom=wisdom) for wisdom in WISDOMS}
    if at.quick:
        settings = {name: settings[name] for name in ("absent", "sure")}
    settings["absent, runs on"] = Options(tokens_per_second=AT_ONCE, runs_on=True)
    outcomes = await by_options(chosen, at.texts, settings, at.setup)
    print(f"\n{len(chosen)} rows, a perfect model, no delay: shown, begun right (or whole), whole")
    print(_table("", outcomes, lambda row: "one line" if row.kind in SINGLE else "several lines"))
    print(_table("", outcomes[:1], lambda row: row.kind))
    print(_table("", outcomes[:1], lambda row: f"{row.language}, {'one line' if row.kind in SINGLE else 'several'}"))
    found = {outcome.setting: _figures(outcome.rows) for outcome in outcomes}
    return found | {"half_right": await _half_right(at, chosen)}


async def _half_right(at: _Scene, chosen: Sequence[Row]) -> Figures:
    """What is shown, while somebody types, of a model that is right about every other line."""
    settings = {wisdom: Options(tokens_per_second=AT_ONCE, wisdom=wisdom, right=0.5) for wisdom in HALF_RIGHT}
    if at.quick:
        settings = {"sure": settings["sure"]}
    found: Figures = {}
    print("half of the lines right, typing: of what is shown right; of the right ones shown")
    for outcome in await by_options(chosen, at.texts, settings, at.setup):
        told = found[outcome.setting] = {name: separated(held) for name, held in parts(outcome.rows).items()}
        for name, part in told.items():
            figures = "".join(f"{part[figure]:7.0%}" for figure in SEPARATED)
            print(f"{outcome.setting + ': ' + name:44}{part['n']:5}  {figures}")
    return found


def separated(held: Sequence[Judged]) -> Figures:
    shown = [judged for judged in held if judged.typing != "silent"]
    right = [judged for judged in held if judged.is_right]
    good = [judged for judged in held if judged.typing in ("whole", "begun")]
    return {
        "n": len(held),
        "right_of_shown": round(len(good) / max(len(shown), 1), 4),
        "shown_of_right": round(sum(judged.is_right for judged in good) / max(len(right), 1), 4),
    }


async def _requests_part(at: _Scene) -> Figures:
    chosen, latencies = some(at.cut, 8 if at.quick else ROWS_ON_REQUEST), LATENCIES[:2] if at.quick else LATENCIES
    settings = {f"{latency} ms": Options(first_ms=latency) for latency in latencies}
    outcomes = await by_options(chosen, at.texts, settings, at.setup)
    print("\nby milliseconds to the first token, 80 tokens a second: shown, begun right (or whole), whole")
    print(_table("", outcomes, lambda row: "all"))
    return {outcome.setting: _figures(outcome.rows) for outcome in outcomes}


async def _typing_part(at: _Scene) -> Figures:
    chosen = tasks(QUICK_KEYS if at.quick else SESSION_KEYS)
    settings = [(latency, 1.0) for latency in (TYPING_LATENCIES[:2] if at.quick else TYPING_LATENCIES)]
    if not at.quick:
        settings.append((HALF_RIGHT_MS, 0.5))
    found: Figures = {}
    print(f"\ntyping {len(chosen)} documents: keys saved, of the ideal by lines and by whole answers; requests")
    for editor in EDITORS:
        for latency, right in settings:
            name = f"{latency} ms" + (f", {right:.0%} right" if right < 1 else "")
            options = Options(first_ms=latency, right=right)
            typed = await typed_by(editor, options, chosen, f"{editor}, {name}", at.setup)
            found.setdefault(editor, {})[name] = _of_typing(typed)
            shares_saved = f"{typed.share:7.1%} of {typed.ideal} {typed.share_of_whole:7.1%} of {typed.whole}  "
            print(f"{editor:10}{name:20}{shares_saved}" + _described(typed))
    return found


def _of_typing(typed: Typed) -> Figures:
    counts = typed.counts
    return {
        "share": round(typed.share, 4),
        "share_of_whole": round(typed.share_of_whole, 4),
        "keys": typed.keys,
        "saved": typed.saved,
        "ideal": typed.ideal,
        "whole": typed.whole,
        "accepted": typed.accepted,
        "wrong": typed.wrong,
        "asked": typed.asked,
        "requests": counts.requests,
        "requests_per_key": round(counts.requests / max(typed.keys, 1), 3),
        "hung_up_in_vain": counts.vain,
        "stopped": counts.stopped,
        "tokens": counts.tokens,
    }


def _described(typed: Typed) -> str:
    counts = typed.counts
    return (
        f"{typed.keys:4} keys, {typed.accepted:3} accepted, {typed.wrong:3} wrong shown; {counts.requests:4} requests "
        f"({counts.requests / max(typed.keys, 1):.2f} a key), {counts.vain} left before the first token, "
        f"{counts.stopped} after it, {counts.tokens} tokens"
    )


async def _adaptation_part(at: _Scene) -> Figures:
    lines = [row for row in at.cut if row.kind in SINGLE and len(row.middle) > 8]
    chosen = some(lines, len(lines))
    count, last = (24, 12) if at.quick else (SUGGESTIONS, LAST_SUGGESTIONS)
    found: Figures = {}
    print(f"\nof the last {last} of {count} suggestions: shown; of those over the bar, right and wrong: shown")
    for wisdom in ("absent", "constant") if at.quick else ("absent", "constant", "overlapping", "sure"):
        told: Figures = {}
        for share in KEPT:
            end = await adapted(chosen, at.texts, wisdom, share, count, last, at.setup)
            told[f"{share:.0%}"] = to_builtins(end)
            of_right = f"{end.kept} of {end.right} right, {end.shown - end.kept} of {end.asked - end.right} wrong"
            of_likely = f"{end.likely_shown} of {end.likely} over the bar"
            print(f"{wisdom:12} keeps {share:4.0%}: {end.shown / end.asked:4.0%} shown, {of_likely}, {of_right}")
        told["back"] = await comes_back(chosen, at.texts, wisdom, at.setup)
        print(f"{wisdom:12} ten ignored, three accepted by hand, then {told['back']} of ten right ones shown")
        found[wisdom] = told
    return found


async def _next_part(at: _Scene) -> Figures:
    chosen = [row for row in at.cut if row.kind in ("empty body", "below first statement", "below docstring")]
    times = sorted(await next_suggestions(chosen[:6] if at.quick else chosen, at.texts, 150))
    came = [taken for taken in times if taken < float("inf")]
    p50 = round(percentile(times, 50), 1) if times and percentile(times, 50) < float("inf") else None
    print(f"\nfrom accepting to the next suggestion: p50 {p50} ms; {len(came)} of {len(times)} came")
    return {"p50_ms": p50, "came": len(came), "of": len(times)}


def some(cut: Sequence[Row], count: int) -> list[Row]:
    """As many, of all languages and kinds, always the same ones."""
    return random.Random(count).sample(list(cut), min(count, len(cut)))


def _figures(found: Sequence[Judged]) -> Figures:
    return {
        name: {"n": len(part), **{way: shares([getattr(judged, way) for judged in part]) for way in WAYS}}
        for name, part in parts(found).items()
    }


def parts(found: Sequence[Judged]) -> dict[str, list[Judged]]:
    """Those of one line, and those of several."""
    held: dict[str, list[Judged]] = {}
    for judged in found:
        held.setdefault("single" if judged.row.kind in SINGLE else "several", []).append(judged)
    return held


def shares(verdicts: Sequence[str]) -> Figures:
    def of(*names: str) -> float:
        return round(sum(verdict in names for verdict in verdicts) / len(verdicts), 4)

    return {
        "shown": of("whole", "begun", "over", "wrong"),
        "begun": of("whole", "begun"),
        "whole": of("whole"),
        "over": of("over"),
        "wrong": of("wrong"),
    }


def _table(title: str, outcomes: Sequence[Outcome], group: Callable[[Row], str]) -> str:
    """Shares while typing and on request, by groups of rows."""
    head = f"{title:44}{'n':>5}   {'typing':^27}   {'on request':^27}"
    names = "".join(f"{name:>7}" for name in ("shown", "begun", "whole", "wrong"))
    lines = [head, f"{'':49}  {names}  {names}"]
    for outcome in outcomes:
        groups: dict[str, list[Judged]] = {}
        for judged in outcome.rows:
            groups.setdefault(group(judged.row), []).append(judged)
        for name, held in sorted(groups.items()):
            lines.append(
                f"{outcome.setting + ': ' + name:44}{len(held):5}  {_cells(held, 'typing')}  {_cells(held, 'request')}"
            )
    return "\n".join(lines) + "\n"


def _cells(held: Sequence[Judged], way: str) -> str:
    told = shares([getattr(judged, way) for judged in held])
    wrong = told["wrong"] + told["over"]
    return "".join(f"{share:7.0%}" for share in (told["shown"], told["begun"], told["whole"], wrong))


async def _edits_part(at: _Scene) -> Figures:
    """In every format, on rows of their own."""
    chosen = all_rows(unseen=at.unseen, most=6 if at.quick else 0)
    settings = [(0, 1.0), (150, 1.0), (1200, 1.0), (150, 0.5)][: 1 if at.quick else None]
    print(
        "\nnext edits, by kind of row: of those where the model saw the place, offered, and all that is due there;"
        "\nof those where it was not, nothing wrong; quiet ones; over the server's, ms"
    )
    found: Figures = {}
    for name in EDIT_FORMATS:
        for latency, right in settings:
            setting = f"{latency} ms" + (f", {right:.0%} right" if right < 1 else "")
            offered = await edits_asked(name, chosen, right=right, first_ms=latency)
            kinds = list(dict.fromkeys(one.row.kind for one in offered))
            told = {kind: _of_edits([one for one in offered if one.row.kind == kind]) for kind in kinds}
            found.setdefault(name, {})[setting] = told
            for kind, numbers in told.items():
                values = "".join(f"  {figure} {value}" for figure, value in numbers.items())
                print(f"{name:14}{setting:20}{kind:10}{values}")
    return found


def _of_edits(offered: Sequence[Offered]) -> Figures:
    """Where a format shows the model no line that is to change, nothing but what rules know can be expected."""
    due = [one for one in offered if one.row.due and one.reached]
    unknown = [one for one in offered if one.row.due and not one.reached]
    quiet = [one for one in offered if not one.row.due]
    return {
        "n": len(due),
        "shown": _portion([one.shown for one in due]),
        "exact": _portion([one.shown and one.exact for one in due]),
        "unknown": len(unknown),
        "harmless": _portion([one.exact for one in unknown]),
        "quiet": _portion([not one.shown for one in quiet]),
        "over_ms": round(percentile([one.over_ms for one in due], 50), 1) if due else None,
    }


def _portion(verdicts: Sequence[bool]) -> float | None:
    return round(sum(verdicts) / len(verdicts), 4) if verdicts else None


PARTS = {
    "rows": _rows_part,
    "requests": _requests_part,
    "typing": _typing_part,
    "adaptation": _adaptation_part,
    "next": _next_part,
    "edits": _edits_part,
}
