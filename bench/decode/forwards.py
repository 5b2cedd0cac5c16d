"""The cost of an answer's forwards, against llama.cpp token by token."""

import os
import statistics
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np

from bench.decode.peers import QUANTISATIONS, LlamaPeer, random_weights, write_gguf
from bench.decode.random_model import filled, ids
from bench.decode.turns import Times, alternate, shown
from mercury_engine.model.openvino_runtime import OpenvinoRuntime
from mercury_engine.model.runtime import Cache, Rows

CONTEXT = 1024

ANSWERS = (16, 32, 64)

FORWARDS = (1, 2, 4)

SUFFIX_TOKENS = 256


def answers(runtime: OpenvinoRuntime, directory: Path, rounds: int) -> dict[str, object]:
    cache = filled(runtime, CONTEXT)
    peers = opened_peers(runtime, directory)
    print(f"\n{'tokens':>6}{'forwards':>9}  {'ours':24}" + "".join(f"{name:28}" for name in peers) + "speed-up")
    figures: dict[str, object] = {"peers": sorted(peers)}
    for tokens in ANSWERS:
        variants = {f"k{k}": _canvas_answer(runtime, cache, tokens, k) for k in FORWARDS}
        variants |= {name: _peer_answer(peer, tokens) for name, peer in peers.items()}
        times = alternate(variants, rounds)
        for k in FORWARDS:
            figures |= _answer_row(times, list(peers), tokens, k)
    figures |= _fim_order(peers, rounds)
    for peer in peers.values():
        peer.close()
    return figures


def opened_peers(runtime: OpenvinoRuntime, directory: Path) -> dict[str, LlamaPeer]:
    """llama.cpp in both quantisations, with its prompt cache filled like ours."""
    try:
        import gguf  # noqa: F401
        import llama_cpp  # noqa: F401
    except ImportError as error:
        print(f"no peer: {error}; pip install 'mercury-ls[peers]'")
        return {}
    threads = min(2, os.cpu_count() or 1)
    config, peers = msgspec.structs.replace(runtime.config, hints=False), {}
    for kind in QUANTISATIONS:
        path = write_gguf(config, directory / f"{kind}.gguf", kind, random_weights(config))
        peers[kind] = LlamaPeer(path, threads)
        peers[kind].read(ids(CONTEXT))
    return peers


def _canvas_answer(runtime: OpenvinoRuntime, cache: Cache, tokens: int, forwards: int) -> Callable[[], None]:
    """The cost of K denoising passes: the typed token and the canvas in one forward, then the canvas again."""

    def once() -> None:
        cache.truncate(CONTEXT)
        first = runtime.forward(rows(runtime, CONTEXT, 1, tokens), cache)
        cache.append(first, range(1))
        for _ in range(forwards - 1):
            runtime.forward(rows(runtime, CONTEXT + 1, 0, tokens), cache)

    return once


def rows(runtime: OpenvinoRuntime, start: int, new: int, canvas: int) -> Rows:
    """Clean rows and a canvas behind them, with the logits that the decoder reads: of the last clean row, and of all
    slots but the last."""
    count = new + canvas
    mask = np.ones((count, start + count), bool)
    mask[:new, start:] = np.tri(new, count, dtype=bool)
    drafting, wanted = np.arange(count) >= new, range(max(new - 1, 0), count - 1)
    return Rows(ids(count), places(runtime, start, count), mask_RC=mask, drafting_R=drafting, rows=wanted)


def places(runtime: OpenvinoRuntime, start: int, count: int) -> np.ndarray:
    """Positions, capped at those that the model knows: the cost of a pass does not depend on them."""
    return np.minimum(start + np.arange(count), runtime.config.context - 1).astype(np.int32)


def _peer_answer(peer: LlamaPeer, tokens: int) -> Callable[[], None]:
    def once() -> None:
        peer.keep(CONTEXT)
        peer.answer(ids(1), tokens)

    return once


def _answer_row(times: Times, peers: list[str], tokens: int, forwards: int) -> dict[str, object]:
    ours = times[f"k{forwards}"]
    line = f"{tokens:6}{forwards:9}  {shown(ours):24}" + "".join(f"{name} {shown(times[name]):22}" for name in peers)
    if not peers:
        print(line)
        return {f"speedup_k{forwards}_s{tokens}": None}
    best = min(peers, key=lambda name: statistics.median(times[name]))
    speedup = statistics.median(b / a for a, b in zip(ours, times[best], strict=True))
    print(f"{line}{speedup:6.2f} x")
    return {f"speedup_k{forwards}_s{tokens}": round(speedup, 2)}


def _fim_order(peers: dict[str, LlamaPeer], rounds: int) -> dict[str, object]:
    """llama.vim's order: prefix, suffix, middle. A typed character makes it read the suffix again."""
    if not peers:
        return {}
    variants = {}
    for name, peer in peers.items():

        def once(peer: LlamaPeer = peer) -> None:
            peer.keep(CONTEXT - SUFFIX_TOKENS)
            peer.read(ids(1 + SUFFIX_TOKENS))
            peer.answer(ids(1), 31)

        variants[name] = once
    times = alternate(variants, max(rounds // 2, 3))
    for name, values in times.items():
        print(f"    32 tokens in llama.vim's order, suffix of {SUFFIX_TOKENS} read again: {name} {shown(values)}")
    return {"fim_order_ms": {name: round(statistics.median(values), 1) for name, values in times.items()}}
