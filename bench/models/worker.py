"""One contestant in a process of its own: it loads a model, then answers prompts that it reads from standard input.

Each keeps keys and values by its own means and re-reads only what changed. Times are taken here, around each answer.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

__all__ = ["main"]

Answer = Callable[[np.ndarray, int], Iterator[int]]
"""Greedy tokens after a prompt."""

PIECE = 512
"""Tokens of a prompt that are read together."""


def main() -> None:
    kind, path, threads = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    started = time.perf_counter()
    answer = {"ours": ours, "llama.cpp": llama, "genai": genai}[kind](path, threads)
    list(answer(np.arange(8, dtype=np.int32) + 64, 2))
    tell(load=time.perf_counter() - started)
    for line in sys.stdin:
        asked = json.loads(line)
        tell(**timed(answer, np.array(asked["prompt"], np.int32), asked["tokens"]))


def timed(answer: Answer, prompt: np.ndarray, tokens: int) -> dict[str, object]:
    started, cpu, found = time.perf_counter(), time.process_time(), []
    first = cpu_first = 0.0
    for token in answer(prompt, tokens):
        if not found:
            first, cpu_first = time.perf_counter() - started, time.process_time() - cpu
        found.append(int(token))
    whole = time.perf_counter() - started
    return {"first": first, "whole": whole, "cpu_first": cpu_first, "cpu": time.process_time() - cpu, "tokens": found}


def tell(**found: object) -> None:
    print(json.dumps(found | memory()), flush=True)


def memory() -> dict[str, int]:
    """Resident and most resident MiB, where the system says so."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    names = {"VmRSS": "resident", "VmHWM": "peak"}
    found = (line.partition(":") for line in lines)
    return {names[name]: int(value.split()[0]) // 1024 for name, _, value in found if name in names}


def common(one: np.ndarray, other: np.ndarray) -> int:
    size = min(len(one), len(other))
    different = np.flatnonzero(one[:size] != other[:size])
    return int(different[0]) if len(different) else size


def ours(path: Path, threads: int) -> Answer:
    from mercury_engine.model.decoder import open_decoder
    from mercury_engine.model.runtime import Resources, Rows
    from mercury_engine.record import ModelRecord

    record = ModelRecord(name=path.name, kind="fim", prompt="qwen", context=4096)
    runtime = open_decoder(path, record, Resources(device="cpu", threads=threads))
    cache, known = runtime.cache(), np.zeros(0, np.int32)

    def read(ids: np.ndarray) -> int:
        positions = np.arange(cache.length, cache.length + len(ids), dtype=np.int32)
        forward = runtime.forward(Rows(ids, positions, rows=[len(ids) - 1]), cache)
        cache.append(forward, range(len(ids)))
        return int(forward.logits_WV[0].argmax())

    def answer(prompt: np.ndarray, tokens: int) -> Iterator[int]:
        nonlocal known
        kept = min(common(known, prompt), len(prompt) - 1)
        cache.truncate(kept)
        token = 0
        for start in range(kept, len(prompt), PIECE):
            token = read(prompt[start : start + PIECE])
        known = prompt
        yield token
        for _ in range(tokens - 1):
            token = read(np.array([token], np.int32))
            yield token

    return answer


def llama(path: Path, threads: int) -> Answer:
    from bench.decode.peers import LlamaPeer

    peer, known = LlamaPeer(path, threads), np.zeros(0, np.int32)

    def answer(prompt: np.ndarray, tokens: int) -> Iterator[int]:
        nonlocal known
        kept = min(common(known, prompt), len(prompt) - 1)
        peer.keep(kept)
        token, known = peer.read(prompt[kept:]), prompt
        yield token
        for _ in range(tokens - 1):
            token = peer.read(np.array([token]))
            yield token

    return answer


def genai(path: Path, threads: int) -> Answer:
    import openvino_genai as genai
    from openvino import Tensor  # noqa: TID251  the peer has its own

    scheduler = genai.SchedulerConfig()
    scheduler.cache_size = 1
    scheduler.enable_prefix_caching = True
    scheduler.max_num_batched_tokens = PIECE
    pipeline = genai.ContinuousBatchingPipeline(
        str(path), scheduler, "CPU", {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1}
    )
    number = 0

    def answer(prompt: np.ndarray, tokens: int) -> Iterator[int]:
        nonlocal number
        number += 1
        wanted = genai.GenerationConfig(max_new_tokens=tokens, ignore_eos=True, apply_chat_template=False)
        handle = pipeline.add_request(number, Tensor(prompt[None].astype(np.int64)), wanted)
        while pipeline.has_non_finished_requests():
            pipeline.step()
            while handle.can_read():
                yield from next(iter(handle.read().values())).generated_ids

    return answer


if __name__ == "__main__":
    main()
