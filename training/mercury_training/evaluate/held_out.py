"""Bits per byte: how well a model as it ships predicts unseen documents."""

import math
import random
from collections.abc import Iterator

import numpy as np
from msgspec import Struct

from mercury_engine.model.runtime import Rows, Runtime
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_training.corpus.shards import Corpus
from mercury_training.rows.examples import TrainingExample, left_to_right

CHUNK = 256
CODE = ("python", "typescript", "tsx", "go", "rust")


class HeldOutText(Struct, frozen=True):
    path: str
    language: str
    text: str


class Reading(Struct, frozen=True):
    """The cost of the beginning of one document, as much of it as fits a context."""

    language: str
    bits: float
    bytes: int


def sample(corpus: Corpus, documents: int, seed: int = 0) -> dict[str, HeldOutText]:
    """`documents` held-out documents of each language, by repository and path; repositories are not weighted."""
    chosen: list[int] = []
    for language in CODE:
        numbers = [n for n, document in enumerate(corpus.held_out.documents) if document.language == language]
        chosen += random.Random(seed).sample(numbers, min(documents, len(numbers)))
    texts = {}
    for number in chosen:
        document = corpus.held_out.documents[number]
        text = corpus.held_out.text(number, corpus.tokenizer)
        texts[f"{document.repository}/{document.path}"] = HeldOutText(document.path, document.language, text)
    return texts


def read(runtime: Runtime, tokenizer: Tokenizer, document: HeldOutText) -> Reading:
    tokens = np.array(tokenizer.encode(document.text), np.int32)
    room = runtime.config.context
    example = _running(tokenizer, document, tokens, room)
    header = _running(tokenizer, document, tokens[:0], room).base
    cost = sum(_bits(runtime, example, header))
    return Reading(document.language, cost, len(tokenizer.decode_bytes(example.stream.ids[header:].tolist())))


def _running(tokenizer: Tokenizer, document: HeldOutText, tokens: np.ndarray, room: int) -> TrainingExample:
    example = left_to_right(tokenizer, document.path, document.language, tokens, room)
    assert example is not None, f"a context of {room} tokens has no room for a header"
    return example


def _bits(runtime: Runtime, example: TrainingExample, header: int) -> Iterator[float]:
    """The cost of the tokens from `header` on, a chunk of rows at a time."""
    ids, cache = example.stream.ids, runtime.cache()
    for start in range(0, len(ids) - 1, CHUNK):
        stop = min(start + CHUNK, len(ids) - 1)
        positions = np.arange(start, stop, dtype=np.int32)
        forward = runtime.forward(Rows(ids[start:stop], positions), cache)
        cache.append(forward, range(stop - start))
        first = max(start, header - 1)
        if first < stop:
            logits_RV = np.asarray(forward.logits_WV[first - start : stop - start], np.float64)
            yield float(_surprise(logits_RV, ids[first + 1 : stop + 1]).sum() / math.log(2))


def _surprise(logits_RV: np.ndarray, targets_R: np.ndarray) -> np.ndarray:
    """Cross entropy of each row, in nats."""
    highest_R = logits_RV.max(axis=1)
    total_R = np.log(np.exp(logits_RV - highest_R[:, None]).sum(axis=1)) + highest_R
    return total_R - logits_RV[np.arange(len(targets_R)), targets_R]
