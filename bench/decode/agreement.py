"""Whether the fast path agrees with the slow one: OpenVINO with torch, verified answers with plain autoregression.

On rows of real code: how often the int8 weights and their float32 version have the same likeliest token; and how
many leading tokens of plain autoregression's answers the policy's answers share, with everything drafted that can
be.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.decode.trained import request
from mercury_engine.api import InfillRequest
from mercury_engine.decode.canvas import fuse
from mercury_engine.decode.costs import Costs
from mercury_engine.engine import MercuryEngine, open_engine
from mercury_engine.model.config import TOKENIZER_FILE
from mercury_engine.model.openvino_runtime import load
from mercury_engine.model.runtime import Runtime
from mercury_engine.tokens.layout import budget_for, freeze, lay_out
from mercury_engine.tokens.prefix import HintBuilder, HintedPrefix, common_prefix
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_ls.settings.models import resolve

SHIPPED = resolve("auto")
ROWS = Path(__file__).parents[1] / "sets/fim.jsonl"
DRAFTING = Costs((1, 64), (1.0, 1.0))
"""Costs of zero per row, so that canvases and drafts always pay, whatever else this machine does."""


def agreement(folder: Path, rows: Sequence[dict]) -> dict[str, object]:
    """Shares and their counts; without torch there is nothing to compare OpenVINO with, which is reported."""
    same, tokens, accepted = matching_tokens(folder, rows)
    figures = {"verified_as_ar": round(same / max(tokens, 1), 4), "verified_tokens": tokens, "accepted": accepted}
    print(f"\nverified answers begin with {same} of {tokens} tokens of plain autoregression; from drafts: {accepted}")
    try:
        from mercury_engine.model.torch_runtime import open_torch
    except ImportError as error:
        print(f"OpenVINO was not compared with torch: {error}; pip install '.[train]'")
        return {**figures, "openvino_as_torch": str(error)}
    runtime, reference = load(folder), open_torch(folder, device="cpu")
    tokenizer = Tokenizer.load(folder / TOKENIZER_FILE)
    found = [agreeing_rows(runtime, reference, prefix_of(runtime, tokenizer, row)) for row in rows]
    agreeing, count = sum(agreed for agreed, _ in found), sum(of for _, of in found)
    print(f"OpenVINO ({runtime.precision}) finds torch's likeliest token for {agreeing} of {count} rows of code")
    return {**figures, "openvino_as_torch": round(agreeing / max(count, 1), 4), "compared_rows": count}


def matching_tokens(folder: Path, rows: Sequence[dict]) -> tuple[int, int, dict[str, int]]:
    """Tokens up to the first difference, of all tokens of plain autoregression; and accepted drafts, by source."""
    tokenizer = Tokenizer.load(folder / TOKENIZER_FILE)
    engines = [open_engine(folder, decode=decode, costs=DRAFTING, bar=0.0) for decode in ("policy", "ar")]
    same = tokens = 0
    for number, row in enumerate(rows):
        ours, plain = (np.array(answer_tokens(engine, request(row, f"{number}"), tokenizer)) for engine in engines)
        same += common_prefix([ours], [plain])
        tokens += len(plain)
    return same, tokens, engines[0].report.accepted


def answer_tokens(engine: MercuryEngine, asked: InfillRequest, tokenizer: Tokenizer) -> list[int]:
    *_, last = engine.infill(asked)
    return tokenizer.encode(last.spans[0].text)


def prefix_of(runtime: Runtime, tokenizer: Tokenizer, row: dict) -> HintedPrefix:
    asked, budget = request(row, "agreement"), budget_for(runtime.config.context)
    found = lay_out(tokenizer, asked, freeze(tokenizer, asked, budget), budget)
    return HintBuilder.of(found, tokenizer, hints=runtime.config.hints).build(found.ids, found.positions)


def agreeing_rows(runtime: Runtime, reference: Runtime, row: HintedPrefix) -> tuple[int, int]:
    """The rows for which both have the same likeliest token, and the number of rows."""
    rows = fuse(0, row, 0).rows
    ours, theirs = (one.forward(rows, one.cache()).logits_WV.argmax(1) for one in (runtime, reference))
    return int((ours == theirs).sum()), len(ours)
