"""Our weights decoded token by token by others: llama.cpp with a prompt cache, and `generate` of transformers.

Both get the rows that our engine lays out, and choose tokens and present answers as it does. Every token costs them
a forward, and they have no copy bias, so their answers differ from ours.
"""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np

from bench.decode.peers import transformers_name
from mercury_engine.api import Draft, EngineError, EngineInfo, InfillRequest, Span
from mercury_engine.decode.answer import HoleAnswer, Presentation
from mercury_engine.decode.choice import Choice, Chooser
from mercury_engine.decode.confidence import read_calibration
from mercury_engine.decode.search import HOPELESS, LOW_TOKENS
from mercury_engine.engine import BAR
from mercury_engine.model.adapter import dequantized
from mercury_engine.model.config import TOKENIZER_FILE, ModelConfig, read_config
from mercury_engine.model.export import read
from mercury_engine.tokens import hints
from mercury_engine.tokens.layout import LayoutRow, budget_for, freeze, lay_out
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_engine.tokens.vocabulary import EOM, SPECIALS


class Reader(Protocol):
    """One sequence of tokens that can be extended or truncated."""

    def logits(self, tokens: np.ndarray) -> np.ndarray:
        """Append to the cache; return the logits of the last token."""
        ...

    def keep(self, length: int) -> None: ...


class Layout:
    """The parts that both engines share with ours: requests as rows of tokens, and the presentation of answers."""

    def __init__(self, folder: Path) -> None:
        self.config = read_config(folder / "config.json")
        self.tokenizer = Tokenizer.load(folder / TOKENIZER_FILE)
        self.chooser = Chooser(self.tokenizer, self.config.vocabulary)
        self._budget = budget_for(self.config.context)
        self._presentation = Presentation(self.tokenizer, read_calibration(folder), BAR)

    def row(self, request: InfillRequest) -> LayoutRow:
        if len(request.spans) != 1 or request.spans[0].start != request.spans[0].end:
            raise EngineError("this peer continues one place; ask one of our own engines for next edits")
        return lay_out(self.tokenizer, request, freeze(self.tokenizer, request, self._budget), self._budget)

    def answer(self, request: InfillRequest, row: LayoutRow) -> HoleAnswer:
        span = request.spans[0]
        wanted = min(span.budget, LOW_TOKENS) if request.effort == "low" else span.budget
        return HoleAnswer(self.tokenizer, row.holes[0], span, max(1, min(wanted, self._budget.context - len(row.ids))))

    def draft(self, answer: HoleAnswer, step: int, *, final: bool = False) -> Draft:
        return Draft(step, (self._presentation.show(answer, answer.decoded(), ""),), final)

    def info(self, engine: str, precision: str) -> EngineInfo:
        return EngineInfo(engine, self.config.name, f"cpu, {precision}", self.config.context)


class LeftToRight:
    """Greedy, one forward per token; the common prefix with the last request is not read again."""

    def __init__(self, layout: Layout, reader: Reader, name: str, precision: str) -> None:
        self._layout = layout
        self._reader = reader
        self._info = layout.info(name, precision)
        self._read: list[int] = []

    def infill(self, request: InfillRequest) -> Iterator[Draft]:
        row = self._layout.row(request)
        answer, probability = self._layout.answer(request, row), 1.0
        logits_V = self._reach(row.ids.tolist())
        for step in count(1):
            choice = self._layout.chooser.best(logits_V, answer.typed)
            answer.add(choice)
            probability *= choice.probability
            if answer.done or (request.effort == "low" and probability < HOPELESS):
                yield self._layout.draft(answer, step, final=True)
                return
            yield self._layout.draft(answer, step)
            logits_V = self._append([choice.token])

    def warm(self, request: InfillRequest) -> Iterator[None]:
        self._reach(self._layout.row(request).ids.tolist()[:-1])
        yield

    def info(self) -> EngineInfo:
        return self._info

    def _reach(self, ids: list[int]) -> np.ndarray:
        """Read to the end of `ids`; the last token is always read, for its logits."""
        pairs = enumerate(zip(self._read, ids[:-1], strict=False))
        common = next((at for at, (old, new) in pairs if old != new), min(len(self._read), len(ids) - 1))
        self._reader.keep(common)
        del self._read[common:]
        return self._append(ids[common:])

    def _append(self, ids: list[int]) -> np.ndarray:
        self._read += ids
        return self._reader.logits(np.array(ids, np.int32))


class Generate:
    """Plain `generate`: every request is read from its beginning."""

    def __init__(self, layout: Layout, model: Any, precision: str) -> None:
        self._layout = layout
        self._model = model
        self._info = layout.info("transformers", precision)
        self._permitted = [EOM, *range(len(SPECIALS), layout.tokenizer.vocabulary)]

    def infill(self, request: InfillRequest) -> Iterator[Draft]:
        import torch

        row = self._layout.row(request)
        answer = self._layout.answer(request, row)
        ids = torch.from_numpy(row.ids.astype(np.int64))[None]
        found = self._model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=answer.limit,
            do_sample=False,
            eos_token_id=self._ends(request.spans[0]),
            pad_token_id=EOM,
            prefix_allowed_tokens_fn=self._spelling(answer, ids.shape[1]),
            output_scores=True,
            return_dict_in_generate=True,
        )
        for token, scores in zip(found.sequences[0, ids.shape[1] :].tolist(), found.scores, strict=True):
            answer.add(Choice(token, float(scores[0].softmax(-1)[token])))
        yield self._layout.draft(answer, len(answer.choices), final=True)

    def warm(self, request: InfillRequest) -> Iterator[None]:
        return iter(())

    def info(self) -> EngineInfo:
        return self._info

    def _ends(self, span: Span) -> list[int]:
        spellings = enumerate(self._layout.tokenizer.token_bytes)
        newlines = [token for token, spelling in spellings if b"\n" in spelling] if span.mode == "line" else []
        return [EOM, *newlines]

    def _spelling(self, answer: HoleAnswer, start: int) -> Any:
        """The tokens that may come next: no reserved ones, and at first those that spell the partial word."""

        def allowed(batch: int, ids: Any) -> list[int]:
            typed = answer.typed
            for token in ids[start:].tolist():
                typed = self._layout.tokenizer.remaining(typed, token)
            return self._layout.tokenizer.allowed(typed).tolist() if typed else self._permitted

        return allowed


def dense_weights(folder: Path) -> tuple[ModelConfig, dict[str, np.ndarray]]:
    """The shipped weights as float32, without those that read hints; only of models with Qwen3's layers."""
    config, stored = read(folder)
    if config.role_scalars or config.softcap is not None or config.qkv_bias or not config.qk_norm or not config.tied:
        raise ValueError(f"{folder}: {config.name} has layers that Qwen3 does not have; no peer can decode it")
    plain = {name: weight for name, weight in dequantized(stored).items() if name not in hints.WEIGHTS}
    return msgspec.structs.replace(config, hints=False), plain


def qwen3(folder: Path, precision: str = "bfloat16") -> Any:
    """The same model in transformers."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    config, weights = dense_weights(folder)
    shape = Qwen3Config(
        vocab_size=config.vocabulary,
        hidden_size=config.width,
        intermediate_size=config.feed_forward,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        num_key_value_heads=config.kv_heads,
        head_dim=config.head_width,
        max_position_embeddings=config.context,
        rms_norm_eps=config.norm_epsilon,
        rope_parameters={"rope_type": "default", "rope_theta": config.rope_theta},
        tie_word_embeddings=True,
        attention_bias=False,
        bos_token_id=None,
        eos_token_id=None,
    )
    model = Qwen3ForCausalLM(shape)
    named = {transformers_name(name): torch.from_numpy(np.ascontiguousarray(array)) for name, array in weights.items()}
    model.load_state_dict(named | {"lm_head.weight": named["model.embed_tokens.weight"]})
    return model.to(getattr(torch, precision)).eval()
