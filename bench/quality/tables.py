"""The tables of the figures, for people."""

from collections.abc import Iterator, Sequence
from typing import Any


def tables(found: dict[str, Any]) -> Iterator[str]:
    yield f"{found['engine']}: {found['model']}; {found['machine']}"
    for name, contenders in found["fim"].items():
        yield from _fim_table(name, contenders)
    for name, given in found["next_edit"].items():
        yield from _next_edit_table(name, given)


def _fim_table(name: str, contenders: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield (
        f"{name:26}{'n':>5}  {'shown':>6} {'right':>14} {'begins':>6}  {'given':>6} {'right':>6}"
        f"  {'exact':16} {'line 1':>6} {'sim.':>5} {'chrF':>5} {'parses':>6} {'pass@1':>6} {'ms':>7} {'passes':>6}"
    )
    for by, given in contenders.items():
        yield f"{_fim_line(by, given)} {given['milliseconds'].get('p50', ''):>7} {given['passes'] or '':>6}"
        if len(contenders) == 1 or by == next(iter(contenders)):
            for kind, part in [*given["by_kind"].items(), *given["by_language"].items()]:
                yield _fim_line(f"  {kind}", part)
    for by, given in contenders.items():
        if "times_our_time" in given:
            yield _beside_line(by, given)
    ours = next(iter(contenders.values()))
    yield f"calibration error {ours['ece']}; quiet because: {ours['dropped']}"


def _fim_line(label: str, given: dict[str, Any]) -> str:
    return (
        f"{label:26}{given['n']:5}  {_percent(given['shown'])} {_spread(given['right_when_shown']):>14}"
        f" {_percent(given['begins_when_shown'])}"
        f"  {_percent(given['given'])} {_percent(given['right_when_given'])} {_percent(given['ended'])}"
        f"  {_spread(given['exact']):16}"
        f" {_percent(given['first_line'])} {given['similarity'][0]:5.2f} {given['chrf'][0]:5.1f}"
        f" {_percent(given['parses'])} {_percent(given['pass_at_1'])}"
    )


def _beside_line(by: str, given: dict[str, Any]) -> str:
    time, same = given["times_our_time"], _percent(given["same_answer"])
    taken = f"{time[0]:.2f} times our time ({time[1]:.2f} to {time[2]:.2f})" if time else "not timed"
    return f"  {by} takes {taken}, {given['times_our_passes']} times our passes; the same answer in {same.strip()}"


def _next_edit_table(name: str, given: dict[str, Any]) -> Iterator[str]:
    yield ""
    yield f"{name:26}{'n':>5}  {'show':16} {'quiet':16} {'right if shown':16} {'exact':16} {'located':>7} {'ΔchrF':>6}"
    for kind, part in [*given["by_kind"].items(), ("all", given)]:
        likeness = f"{part['delta_chrf'][0]:6.1f}" if part["delta_chrf"] else ""
        yield (
            f"  {kind:24}{part['n']:5}  {_spread(part['show']):16} {_spread(part['quiet']):16}"
            f" {_spread(part['right_when_shown']):16} {_spread(part['exact']):16}"
            f" {_percent(part['location']):>7} {likeness}"
        )
    yield f"score {given['score']}; quiet because: {given['dropped']}"


def _percent(found: Sequence[float] | None) -> str:
    return f"{found[0]:6.1%}" if found else "      "


def _spread(found: Sequence[float] | None) -> str:
    return f"{found[0]:.0%} [{found[1]:.0%} {found[2]:.0%}]" if found else ""
