"""The kernels of a GPU against what its memory and arithmetic allow, torch, and the best public alternatives there.

    python -m bench.kernels [--shape quicksilver dream-7b] [--plot docs/benchmarks] [--dollars-an-hour 3.5]
    python -m bench.kernels --quick                             one shape, and no compilation of torch's

A kernel that computes something else than the double-precision reference is reported as wrong, without a speed-up, and
the command fails. Without a GPU it prints the floors and what compiling for one gives.
"""

import argparse
import json
import math
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from bench.harness.measures import machine
from bench.kernels.clock import H200, Limits
from mercury_engine.model.config import ModelConfig
from mercury_training import plot

ROWS = 40
PASSES = (1, 8, 40, 72)
"""The rows of the passes: one token, a draft of eight, and drafts with canvases."""

CONTEXT = 1024
SESSIONS = 256
TOLERANCE = 2e-2
"""Relative to the length of the result: two products in bfloat16."""

SHIPPED = Path(__file__).parents[2] / "models/quicksilver/mercury_models/quicksilver"

Figures = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parsed(arguments)
    figures: Figures = {"machine": machine(), "torch": torch.__version__, "rows": ROWS, "context": CONTEXT}
    measure = _on_gpu if torch.cuda.is_available() else _without_gpu
    try:
        measure(options, figures)
    finally:  # what was measured until something failed, or time was up
        print(json.dumps(figures))
    wrong = [each["name"] for each in (*figures.get("kernels", ()), *figures.get("passes", ())) if _is_wrong(each)]
    sys.exit(f"wrong: {', '.join(wrong)}" if wrong else 0)


def _is_wrong(each: Figures) -> bool:
    return not each["error"] <= each.get("tolerance", TOLERANCE)


def _without_gpu(options: argparse.Namespace, figures: Figures) -> None:
    """Floors on a known GPU, and compiled resources; no times."""
    from mercury_kernels.compiled import SHAPES, compiled, launches

    print(f"no GPU here: floors on {H200.said}, and what compiling for sm_90 gives; no kernel was run\n")
    figures |= {"gpu": None, "floors_us": floors(), "compiled": []}
    for name, us in figures["floors_us"].items():
        print(f"  {name:44}{us:9.2f} µs")
    print(f"\n  {'kernel':18}{'shape':14}{'shared':>8}{'registers':>11}")
    for name in options.shape:
        for launch in launches(SHAPES[name], ROWS):
            made = compiled(launch, 90, name, ROWS)
            figures["compiled"].append(made._asdict())
            print(f"  {made.kernel:18}{made.shape:14}{made.shared:8}{made.registers:11}  {made.complaint}", flush=True)
    print()


def floors() -> dict[str, float]:
    from bench.kernels.passes import MODELS

    return {f"{name}, a pass of {ROWS} rows": round(floor_us(H200, config), 2) for name, config in MODELS.items()}


def floor_us(limits: Limits, config: ModelConfig) -> float:
    from bench.kernels.passes import pass_bytes, pass_operations

    return limits.floor_us(pass_bytes(config, CONTEXT + ROWS), pass_operations(config, ROWS, CONTEXT))


def _on_gpu(options: argparse.Namespace, figures: Figures) -> None:
    """Run on a GPU, whole passes first: users wait for those."""
    from bench.kernels.clock import measured_limits

    limits = measured_limits()
    print(f"{limits.said}\n")
    figures |= {"gpu": limits._asdict(), "passes": [], "kernels": []}
    for name in options.shape:
        figures["passes"].append(found := {"name": name, "error": math.inf})
        try:
            _whole_passes(options, limits, found)
        except Exception:  # the kernels can still be measured
            found["error"] = math.inf
            traceback.print_exc(file=sys.stdout)
        torch.cuda.empty_cache()
    for name in options.shape:
        for each in measured(name, limits, quick=options.quick):
            figures["kernels"].append(each)
            print("\n".join(table(each)), flush=True)
    if options.plot:
        plot.write(
            options.plot / "kernels-roofline.svg",
            "The kernels under the roof of this GPU",
            "operations a byte",
            "log10 of TFLOP/s",
            roofline(figures["kernels"], limits),
            logarithmic=True,
            zoomed=True,
        )


def measured(name: str, limits: Limits, *, quick: bool) -> Iterator[Figures]:
    from bench.kernels.cases import cases
    from bench.kernels.clock import graph_us, sets_beyond_cache
    from mercury_kernels.compiled import SHAPES

    for case in cases(SHAPES[name], ROWS, CONTEXT, "cuda", sets_beyond_cache):
        error = error_of(case)
        floor, calls, times = limits.floor_us(case.bytes, case.operations), sets_beyond_cache(case.bytes), {}
        for way, once in case.ways.items() if error <= TOLERANCE else ():
            if quick and way in ("torch.compile", "flex, no mask"):
                continue
            try:
                times[way] = graph_us(once, calls)
            except Exception as failed:  # one of theirs may not run here; ours has run
                times[way] = None
                print(f"    {way}: {_said(failed)}")
        yield {
            "name": f"{name}: {case.name}",
            "error": error,
            "bytes": case.bytes,
            "operations": case.operations,
            "floor_us": floor,
            "us": times,
        }
        torch.cuda.empty_cache()


def error_of(case: Any) -> float:
    """The error relative to the norm of the exact result; infinite if ours does not run."""
    try:
        found, expected = _flat(case.ways["ours"](0)), _flat(case.exact())
    except Exception as failed:
        print(f"    {case.name}: {_said(failed)}")
        return math.inf
    error = float((found - expected).norm() / expected.norm())
    return error if math.isfinite(error) else math.inf


def _flat(result: torch.Tensor | tuple[torch.Tensor, ...]) -> torch.Tensor:
    parts = result if isinstance(result, tuple) else (result,)
    return torch.cat([part.double().flatten() for part in parts])


def _said(failed: Exception) -> str:
    return f"{type(failed).__name__}: {str(failed).partition(chr(10))[0][:90]}"


def table(each: Figures) -> list[str]:
    """A kernel's lines. Speed-ups are against torch eager, and only for correct results."""
    lines = [f"{each['name']}: floor {each['floor_us']:.2f} µs, error {each['error']:.1e}"]
    if each["error"] > TOLERANCE:
        return [*lines, "    WRONG: no times"]
    eager = each["us"].get("torch eager")
    for way, us in each["us"].items():
        if us is None:
            lines.append(f"    {way:22} not here")
            continue
        gain = f"{eager / us:6.2f} x" if eager else ""
        lines.append(f"    {way:22}{us:9.2f} µs  {each['floor_us'] / us:5.0%} of the limit  {gain}")
    return lines


def roofline(kernels: Sequence[Figures], limits: Limits) -> plot.Lines:
    """The roof, and a point for each kernel."""
    ridge = limits.arithmetic / limits.bandwidth
    roof = [(x, math.log10(min(x * limits.bandwidth, limits.arithmetic) / 1e12)) for x in (1, ridge, 1000)]
    points = {
        each["name"]: [(each["operations"] / each["bytes"], math.log10(each["operations"] / each["us"]["ours"] / 1e6))]
        for each in kernels
        if each["us"].get("ours")
    }
    return {"roof": roof, **points}


def _whole_passes(options: argparse.Namespace, limits: Limits, found: Figures) -> None:
    """Time a model's passes with the chosen backends, only if they compute the same as torch."""
    from bench.kernels.passes import (
        MODELS,
        TOLERANCE,
        answer_ms,
        cost,
        difference,
        pass_us,
        random_network,
        served,
        together,
    )
    from mercury_engine.model.gpu.runtime import GpuRuntime
    from mercury_engine.model.gpu.step import Backends

    name, config = found["name"], MODELS[found["name"]]
    runtime = GpuRuntime(random_network(config, "cuda"))
    found |= {"backends": runtime.name, "tolerance": TOLERANCE, "floor_us": floor_us(limits, config)}
    found["error"] = error = difference(runtime, CONTEXT)
    print(f"{name} by {runtime.name}, {error:.1e} from torch's result")
    if _is_wrong(found):
        print("    WRONG: no times")
        return
    found["pass_us"] = {}
    for rows in PASSES:
        found["pass_us"][rows] = us = pass_us(runtime, rows, CONTEXT)
        print(f"  a pass of {rows:2} rows {us:8.1f} µs, {found['floor_us'] / us:.0%} of the limit", flush=True)
    if name != "quicksilver":
        return
    whole_numbers = GpuRuntime(random_network(config, "cuda", int8=True), backends=Backends())
    found["int8_pass_us"] = {rows: pass_us(whole_numbers, rows, CONTEXT) for rows in PASSES}
    for rows, us in found["int8_pass_us"].items():
        print(f"  of {rows:2} rows in int8 {us:8.1f} µs", flush=True)
    del whole_numbers
    for tokens in (9, 32):
        found[f"answer_{tokens}_ms"] = ms = answer_ms(runtime, CONTEXT, tokens)
        print(f"  {tokens:2} tokens drafted, verified, on the host {ms:6.2f} ms, {1000 * tokens / ms:,.0f} tokens/s")
    ms = together(runtime, CONTEXT, SESSIONS)
    rate = SESSIONS * 32 / ms * 1000
    found |= {"sessions": SESSIONS, "sessions_ms": ms, "tokens_a_second": rate}
    dollars, hourly = cost(rate, options.dollars_an_hour), options.dollars_an_hour
    found["dollars_a_million"] = dollars
    print(f"  {SESSIONS} sessions, 32 tokens each {ms:8.1f} ms, {rate:,.0f} tokens/s if every draft is right;")
    print(f"  a million tokens ${dollars:.4f}: ${hourly} an hour / (3600 s x tokens/s)", flush=True)
    found["served"] = []
    for sessions in (1, 16, SESSIONS):
        found["served"].append(each := served(options.model, sessions))
        rate, answers = each["tokens_a_second"], each["sessions"] / each["seconds"]
        print(
            f"  {options.model.name}, {sessions:3} clients: {answers:,.0f} answers/s, {rate:,.0f} tokens/s", flush=True
        )


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench.kernels", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shape", nargs="+", choices=("quicksilver", "dream-7b"), default=["quicksilver", "dream-7b"])
    parser.add_argument("--model", type=Path, default=SHIPPED, help="served to clients (default: the shipped model)")
    parser.add_argument("--plot", type=Path, help="draw the roofline into this folder")
    parser.add_argument("--dollars-an-hour", type=float, default=3.5, help="of one GPU")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args(arguments)
    if options.quick:
        options.shape = ["quicksilver"]
    return options
