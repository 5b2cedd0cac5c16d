"""The numbers and plots on the page in docs/benchmarks, from what was measured."""

import re
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.report.plots import drawn

HERE = Path(__file__).parents[2]
FIGURES, PAGE = HERE / "docs/benchmarks/figures.json", HERE / "docs/benchmarks/README.md"
BEGIN, END = "<!-- numbers: written by `make bench` -->", "<!-- end of numbers -->"

Figures = Mapping[str, Any]
Row = tuple[str, str, str]
"""A label, the number, and the command that prints it; figures.json has the options."""

REPLAYED = {
    "line_exact_share": "the line the person then wrote",
    "kept_after_30_s_share": "still there after 30 s",
    "characters_saved_share": "keystrokes saved",
}

VISITED = {
    "open": "a file opened",
    "key": "a key in a file that was read",
    "jump": "a jump of 100 lines",
    "return": "back to the file before",
}

PACES = {"read, tokens/s": "reading 512 tokens, tokens a second", "1 rows, ms": "a pass of one row, ms"}

CHANGED = {"renamed": "names changed", "removed": "parameters removed", "swapped": "parameters swapped"}

PEERS = {
    "ar": "the same engine, token by token",
    "copy": "no model, copying the longest match",
    "ngram": "no model, n-grams",
}


def write(page: Path, found: Figures) -> None:
    before, _, after = parts(page.read_text(encoding="utf-8"))
    page.write_text(before + section(found) + after, encoding="utf-8")


def parts(text: str) -> tuple[str, str, str]:
    """The text before the numbers, the numbers, and the text after them."""
    found = re.fullmatch(f"(.*{re.escape(BEGIN)}\n)(.*)({re.escape(END)}.*)", text, re.DOTALL)
    if found is None:
        raise ValueError(f"{PAGE.name}: the numbers have no place; put {BEGIN} and {END} where they belong")
    return found[1], found[2], found[3]


def section(found: Figures) -> str:
    machine = next((run["machine"] for run in found.values() if "machine" in run), "an unknown machine")
    told = f"Measured on {machine}. Shares have a 95 % confidence interval."
    plots = "\n".join(f"![{title}]({file})" for file, title in drawn(found).items())
    return f"\n{told}\n\n{table(found)}\n\n{plots}\n\n"


def table(found: Figures) -> str:
    """A table in Markdown. Figures that were not measured have no row."""
    rows = [row for part in PARTS for row in part(found)]
    lines = [f"| {what} | {value} | `{' '.join(command.split()[:3])}` |" for what, value, command in rows]
    return "\n".join(["| what | | command |", "|---|---|---|", *lines])


def server(found: Figures) -> Iterator[Row]:
    if given := of(found, "server"):
        command = given["command"]
        yield "`initialize` answered: CPU time since the start", f"{given['initialize_cpu_s']:.2f} s", command
        what = f"memory of the language server with a 5,000-line file, after {given['keystrokes']:,} keystrokes"
        yield what, f"{given['server_rss_mb']:.0f} MB", command
        what = "a keystroke and its request there, without a model: CPU time of the language server"
        yield what, f"{given['keystroke_cpu_ms']:.0f} ms", command


def latency(found: Figures) -> Iterator[Row]:
    if given := of(found, "latency"):
        command, files = given["command"], given["files"]
        for name, what in VISITED.items():
            step = given["steps"][name]
            value = f"{milliseconds([step['p50_ms'], step['p90_ms']])}; {step['shown']:.0%}"
            yield f"{what} ({files} files): first answer, p50, p90; something shown", value, command
        yield "memory of the engine there, at most", f"{given['engine_mb'][0]:.0f} MB", command


def latency_llama(found: Figures) -> Iterator[Row]:
    if given := of(found, "latency_llama"):
        for name, what in VISITED.items():
            step = given["steps"][name]
            told = f"{what} ({given['files']} files), llama.cpp with the base, asked as llama.vim asks: p50, p90"
            yield told, milliseconds([step["p50_ms"], step["p90_ms"]]), given["command"]


def pace(found: Figures) -> Iterator[Row]:
    """Beside llama.cpp with the same layers and bits, if that was measured."""
    given = of(found, "pace")
    for figure, what in PACES.items():
        rounds = {
            "llama.cpp" if name.startswith("llama.cpp ") else "ours": values
            for name, values in given.get("rounds", {}).items()
            if name.endswith(f" {figure}")
        }
        if rounds:
            told = "; ".join(f"{name} {statistics.median(values):.1f}" for name, values in rounds.items())
            yield f"{what}, medians of {len(rounds['ours'])} rounds", told, given["command"]


def judged(found: Figures) -> Iterator[Row]:
    """Beside what the other language server would do."""
    given = of(found, "judged")
    for kind, what in CHANGED.items():
        if verdicts := given.get(kind):
            told = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items() if count)
            changes = f"{sum(verdicts.values())} {what} in this project, judged by basedpyright"
            yield changes, told, given["command"]


def replay(found: Figures) -> Iterator[Row]:
    if given := of(found, "replay"):
        command, shown = given["command"], given["inline_answers"]
        what = f"{given['inline_requests']} requests while typing, as {given['client']} sends them"
        yield (
            f"{what}: latency of the {shown} suggestions shown by the model, p50, p90, p99",
            milliseconds(levels(given, "inline")),
            command,
        )
        what = f"latency of all {given['model_answers']} answers of the model, shown or not"
        yield what, milliseconds(levels(given, "model")), command
        yield "latency of those in a newly opened file", milliseconds(levels(given, "cold")), command
        yield from _busy(found)
        if given["type_through_share"] is not None:
            what = "of what is shown, typed through without asking the model: share; latency"
            yield what, f"{given['type_through_share']:.0%}; {milliseconds(levels(given, 'cached'), 1)}", command
        yield "latency of next edits shown", milliseconds(levels(given, "next_edit")), command
        shares = [f"{given[name]:.0%}" for name in REPLAYED if given[name] is not None]
        if len(shares) == len(REPLAYED):
            yield f"of {given['shown']} shown: {'; '.join(REPLAYED.values())}", "; ".join(shares), command


def _busy(found: Figures) -> Iterator[Row]:
    if given := of(found, "replay_busy"):
        value = f"{milliseconds(levels(given, 'inline'))}; {milliseconds(levels(given, 'model'))}"
        shown, answered = given["inline_answers"], given["model_answers"]
        what = f"with one core busy: latency of {shown} shown by the model; of all {answered} answers"
        yield what, value, given["command"]


def load(found: Figures) -> Iterator[Row]:
    if given := of(found, "load"):
        crowds, command = given["crowds"], given["command"]
        what = f"{', '.join(crowds)} editors at once: latency of the model's answers, p90"
        yield what, milliseconds([crowd["p90_ms"] for crowd in crowds.values()]), command
        number, last = list(crowds.items())[-1]
        if last["p90_ratio"] is not None:
            what = f"{number} editors: p90 relative to one editor; editors starved; requests lost"
            yield what, f"{last['p90_ratio']:.1f}; {last['starved']}; {last['lost']}", command


def levels(given: Figures, name: str) -> list[float | None]:
    return [given[f"{name}_p{percent}_ms"] for percent in (50, 90, 99)]


def milliseconds(levels: Sequence[float | None], digits: int = 0) -> str:
    told = ["none" if level is None else f"{level:.{digits}f}" for level in levels]
    return "none" if set(told) == {"none"} else f"{', '.join(told)} ms"


def _completions(found: Figures) -> Iterator[Row]:
    given = of(found, "quality")
    for name, contenders in given.get("fim", {}).items():
        part = next(iter(contenders.values()))
        command = given["command"]
        what = f"{name}, {part['n']} rows, {given['engine']}: shown by default; of those exact, beginning right"
        values = [share(part[figure]) for figure in ("shown", "right_when_shown", "begins_when_shown")]
        yield what, "; ".join(values), command
        kinds = ", ".join(f"{kind} {share(each['exact'])}" for kind, each in part["by_kind"].items())
        yield f"{name}: exact, on explicit request", f"{share(part['exact'])} ({kinds})", command
        if part["pass_at_1"]:
            yield f"{name}: pass@1", share(part["pass_at_1"]), command
        if part["ece"] is not None:
            yield f"{name}: calibration error of P(accept)", str(part["ece"]), command
        if part["passes"] is not None:
            what = f"{name}: passes per answer; characters per pass"
            yield what, f"{part['passes']:.1f}; {part['characters_per_pass']:.1f}", command


def _next_edits(found: Figures) -> Iterator[Row]:
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
                who = PEERS.get(by, by)
                rows = f"{part['n']} rows of {name}, exact {share(part['exact'])}"
                what = f"{who}, on {rows}: time, passes relative to ours"
                value = f"{time[0]:.2f} [{time[1]:.2f} {time[2]:.2f}]; {part['times_our_passes']}"
                yield what, value, given["command"]


PARTS: Sequence[Callable[[Figures], Iterator[Row]]] = (
    server,
    latency,
    latency_llama,
    pace,
    replay,
    load,
    judged,
    _completions,
    _next_edits,
    peers,
)


def of(found: Figures, name: str) -> Figures:
    """The figures of a measurement; empty if it failed."""
    given = found.get(name, {})
    return {} if "error" in given else given


def share(found: Sequence[float] | None) -> str:
    return f"{found[0]:.0%} [{found[1]:.0%} {found[2]:.0%}]" if found else "none"
