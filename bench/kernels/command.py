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
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from bench.harness.measures import machine
from bench.kernels.clock import H200, Limits
from mercury_training import plot

__all__ = ["main", "measured", "table"]

ROWS = 40
CONTEXT = 1024
SESSIONS = 256
TOLERANCE = 2e-2
"""Relative to the length of the result: two products in bfloat16."""

SHIPPED = Path(__file__).parents[2] / "engine/mercury_engine/models/bootstrap"

Figures = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> None:
    options = parsed(arguments)
    figures = on_gpu(options) if torch.cuda.is_available() else without_gpu(options)
    print(json.dumps({"machine": machine(), "torch": torch.__version__, "rows": ROWS, "context": CONTEXT, **figures}))
    wrong = [each["name"] for each in figures.get("kernels", ()) if each.get("error", 0) > TOLERANCE]
    sys.exit(f"wrong: {', '.join(wrong)}" if wrong else 0)


def without_gpu(options: argparse.Namespace) -> Figures:
    """Floors on the GPU that is known best, and resources; no times."""
    from mercury_kernels.compiled import SHAPES, compiled, launches

    print(f"no GPU here: floors on {H200.said}, and what compiling for sm_90 gives; no kernel was run\n")
    figures: Figures = {"gpu": None, "floors_us": floors(), "compiled": []}
    for name, us in figures["floors_us"].items():
        print(f"  {name:44}{us:9.2f} µs")
    print(f"\n  {'kernel':18}{'shape':14}{'shared':>8}{'registers':>11}")
    for name in options.shape:
        for launch in launches(SHAPES[name], ROWS):
            made = compiled(launch, 90, name, ROWS)
            figures["compiled"].append(made._asdict())
            print(f"  {made.kernel:18}{made.shape:14}{made.shared:8}{made.registers:11}  {made.complaint}", flush=True)
    print()
    return figures


def floors() -> dict[str, float]:
    from bench.kernels.passes import DREAM
    from mercury_engine.model.config import QUICKSILVER

    found = {}
    for config in (QUICKSILVER, DREAM):
        inner = config.width * config.head_width * 2 * (config.heads + config.kv_heads)
        layers = config.layers * (inner + 3 * config.width * config.feed_forward)
        weights = 2 * (layers + config.vocabulary * config.width)
        kept = 4 * config.layers * config.kv_heads * config.head_width * (CONTEXT + ROWS)
        operations = ROWS * (weights + 4 * config.layers * config.heads * config.head_width * CONTEXT)
        found[f"{config.name}, a pass of {ROWS} rows"] = round(H200.floor_us(weights + kept, operations), 2)
    return found


def on_gpu(options: argparse.Namespace) -> Figures:
    from bench.kernels.clock import measured_limits

    limits = measured_limits()
    print(f"{limits.said}\n")
    figures: Figures = {"gpu": limits._asdict(), "kernels": []}
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
    figures["passes"] = passes(options, limits)
    return figures


def measured(name: str, limits: Limits, *, quick: bool) -> Iterator[Figures]:
    from bench.kernels.cases import cases
    from bench.kernels.clock import graph_us, sets_beyond_cache
    from mercury_kernels.compiled import SHAPES

    for case in cases(SHAPES[name], ROWS, CONTEXT, "cuda", sets_beyond_cache):
        error = error_of(case) if case.exact else 0.0
        floor, calls, times = limits.floor_us(case.bytes, case.operations), sets_beyond_cache(case.bytes), {}
        for way, once in case.ways.items() if not math.isnan(error) and error <= TOLERANCE else ():
            if quick and way in ("torch.compile", "flex, no mask"):
                continue
            try:
                times[way] = graph_us(once, calls)
            except Exception as failed:  # one of theirs may not run here; ours is caught by the error
                times[way] = None
                print(f"    {way}: {type(failed).__name__}: {str(failed).splitlines()[0][:90] if str(failed) else ''}")
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
    found, expected = case.ways["ours"](0).double(), case.exact()
    error = float((found - expected).norm() / expected.norm())
    return error if math.isfinite(error) else math.inf


def table(each: Figures) -> list[str]:
    """A kernel's lines. Speed-ups are against torch eager, and only of what is right."""
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


def passes(options: argparse.Namespace, limits: Limits) -> Figures:
    from bench.kernels.passes import DREAM, answer_ms, cost, pass_bytes, pass_us, random_network, served, together
    from mercury_engine.model.config import QUICKSILVER
    from mercury_engine.model.gpu.runtime import GpuRuntime

    runtime = GpuRuntime(random_network(QUICKSILVER, "cuda"))
    found: Figures = {"ways": runtime.name, "pass_us": pass_us(runtime, 1 + 32, CONTEXT)}
    found["floor_us"] = limits.floor_us(pass_bytes(runtime.network, CONTEXT), 0)
    print(f"\nquicksilver by {runtime.name}")
    print(f"  a pass in a graph {found['pass_us']:8.1f} µs of at least {found['floor_us']:.1f}")
    for tokens in (9, 32):
        found[f"answer_{tokens}_ms"] = ms = answer_ms(runtime, CONTEXT, tokens)
        print(f"  {tokens:2} tokens drafted, verified, on the host {ms:6.2f} ms, {1000 * tokens / ms:,.0f} tokens/s")
    ms = together(runtime, CONTEXT, SESSIONS)
    rate = SESSIONS * 32 / ms * 1000
    found |= {"sessions": SESSIONS, "sessions_ms": ms, "tokens_a_second": rate}
    found["dollars_a_million"] = cost(rate, options.dollars_an_hour)
    print(f"  {SESSIONS} sessions, 32 tokens each {ms:8.1f} ms, {rate:,.0f} tokens/s if every draft is right;")
    dollars, hourly = found["dollars_a_million"], options.dollars_an_hour
    print(f"  a million tokens ${dollars:.4f}: ${hourly} an hour / (3600 s x tokens/s)")
    found["served"] = [served(SHIPPED, sessions) for sessions in (1, 16, SESSIONS)]
    for each in found["served"]:
        rate, answers = each["tokens_a_second"], each["sessions"] / each["seconds"]
        print(f"  shipped model, {each['sessions']:3} clients: {answers:,.0f} answers/s, {rate:,.0f} tokens/s in all")
    if "dream-7b" in options.shape:
        del runtime
        torch.cuda.empty_cache()
        runtime = GpuRuntime(random_network(DREAM, "cuda"))
        us, floor = pass_us(runtime, 33, CONTEXT), limits.floor_us(pass_bytes(runtime.network, CONTEXT), 0)
        found["dream_7b"] = {"ways": runtime.name, "pass_us": us, "floor_us": floor, "share": floor / us}
        print(f"dream-7b by {runtime.name}: a pass {us:.0f} µs, {floor / us:.0%} of the bandwidth limit")
    return found


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench.kernels", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shape", nargs="+", choices=("quicksilver", "dream-7b"), default=["quicksilver", "dream-7b"])
    parser.add_argument("--plot", type=Path, help="draw the roofline into this folder")
    parser.add_argument("--dollars-an-hour", type=float, default=3.5, help="of one GPU")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args(arguments)
    if options.quick:
        options.shape = ["quicksilver"]
    return options
