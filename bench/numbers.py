"""The table of numbers in the README, made from what was measured."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

__all__ = ["table"]

Figures = Mapping[str, Any]
Row = tuple[str, str, str]
"""What, the number, and the command that prints it, whose options are in index.html."""

REPLAYED = {
    "line_exact_share": "the line as the person wrote it",
    "kept_after_30_s_share": "still there after 30 s",
    "characters_saved_share": "keystrokes saved",
}


def table(found: Figures) -> str:
    """Markdown. What was not measured has no row."""
    rows = [row for part in PARTS for row in part(found)]
    lines = [f"| {what} | {value} | `{' '.join(command.split()[:3])}` |" for what, value, command in rows]
    return "\n".join(["| what | | command |", "|---|---|---|", *lines])


def server(found: Figures) -> Iterator[Row]:
    if given := of(found, "server"):
        command = given["command"]
        yield "`initialize` answered, CPU time from spawn", f"{given['initialize_cpu_s']:.2f} s", command
        what = "language server, resident, with a 5,000-line file after 1,000 keystrokes"
        yield what, f"{given['server_rss_mb']:.0f} MB", command


def documents(found: Figures) -> Iterator[Row]:
    if given := of(found, "documents"):
        what = "a keystroke in that file: text, then its syntax tree when asked for"
        yield what, f"{given['didChange_p50_ms']:.2f} ms, {given['tree_p50_ms']:.2f} ms", given["command"]
        worst = f"{given['didChange_p50_ms_worst']:.2f} ms, {given['tree_p50_ms_worst']:.1f} ms"
        yield "the same when every edit is somewhere else", worst, given["command"]


def engine_call(found: Figures) -> Iterator[Row]:
    if given := of(found, "engine_call"):
        what = "a call to the engine server, beyond the engine itself"
        yield what, f"{given['engine_call_p50_ms']:.1f} ms", given["command"]


def replay(found: Figures) -> Iterator[Row]:
    if given := of(found, "replay"):
        levels = [given[f"inline_p{percent}_ms"] for percent in (50, 90, 99)]
        what = (
            f"a suggestion while typing, {given['inline_requests']} requests of the committed sessions: p50, p90, p99"
        )
        yield what, milliseconds(levels), given["command"]
        shares = [f"{given[name]:.0%}" for name in REPLAYED if given[name] is not None]
        if len(shares) == len(REPLAYED):
            yield f"of {given['shown']} shown: {', '.join(REPLAYED.values())}", "; ".join(shares), given["command"]


def load(found: Figures) -> Iterator[Row]:
    if given := of(found, "load"):
        crowds = given["crowds"]
        what = f"{', '.join(crowds)} editors at once: nine of ten answers of the model within"
        yield what, milliseconds([crowd["p90_ms"] for crowd in crowds.values()]), given["command"]


def milliseconds(levels: Sequence[float | None]) -> str:
    return ", ".join("none" if level is None else f"{level:.0f}" for level in levels) + " ms"


def decode(found: Figures) -> Iterator[Row]:
    if given := of(found, "decode"):
        command = given["command"]
        what = "random weights of the default model's shape: from a typed character to a verified line of nine tokens"
        busy = f"{given['keystroke_p50_ms']} ms; {given['keystroke_one_core_busy_ms']} ms with one core busy"
        yield what, busy, command
        yield "the same, token by token", f"{given['keystroke_ar_ms']} ms", command
        started = f"{given['cold_start_s']:.1f} s; {given['engine_rss_mb']} MB"
        yield "start to first answer; resident memory", started, command
        ratios = [given[f"speedup_k{forwards}_s64"] for forwards in (1, 2, 4)]
        if all(ratios):
            what = "llama.cpp, same shape, 64 tokens: times as long as one, two, four of our forwards"
            yield what, ", ".join(f"{ratio:.1f}" for ratio in ratios), command


def completions(found: Figures) -> Iterator[Row]:
    given = of(found, "quality")
    for name, contenders in given.get("fim", {}).items():
        part = next(iter(contenders.values()))
        command = given["command"]
        what = f"{name}, {part['n']} rows, {given['engine']}: shown under the default bar; right when shown"
        yield what, f"{share(part['shown'])}; {share(part['right_when_shown'])}", command
        kinds = ", ".join(f"{kind} {share(each['exact'])}" for kind, each in part["by_kind"].items())
        yield f"{name}: exact, asked outright", f"{share(part['exact'])} ({kinds})", command
        if part["pass_at_1"]:
            yield f"{name}: pass@1", share(part["pass_at_1"]), command
        if part["ece"] is not None:
            yield f"{name}: calibration error of P(accept)", str(part["ece"]), command
        yield (
            f"{name}: passes for an answer; characters a pass",
            f"{part['passes']}; {part['characters_per_pass']}",
            command,
        )


def next_edits(found: Figures) -> Iterator[Row]:
    given = of(found, "quality")
    for name, part in given.get("next_edit", {}).items():
        what = f"{name}, {part['n']} rows: shown when due; quiet when not; right when shown; score"
        values = [share(part[figure]) for figure in ("show", "quiet", "right_when_shown")]
        yield what, "; ".join([*values, str(part["score"])]), given["command"]


def peers(found: Figures) -> Iterator[Row]:
    given = of(found, "peers")
    for name, contenders in given.get("fim", {}).items():
        for by, part in contenders.items():
            if time := part.get("times_our_time"):
                what = f"{by} on {part['n']} rows of {name}, exact {share(part['exact'])}: time and passes ÷ ours"
                value = f"{time[0]:.2f} [{time[1]:.2f} {time[2]:.2f}]; {part['times_our_passes']}"
                yield what, value, given["command"]


PARTS: Sequence[Callable[[Figures], Iterator[Row]]] = (
    server,
    documents,
    engine_call,
    replay,
    load,
    decode,
    completions,
    next_edits,
    peers,
)


def of(found: Figures, name: str) -> Figures:
    """Nothing where it failed."""
    given = found.get(name, {})
    return {} if "error" in given else given


def share(found: Sequence[float] | None) -> str:
    return f"{found[0]:.0%} [{found[1]:.0%} {found[2]:.0%}]" if found else "none"
