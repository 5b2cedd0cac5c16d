"""Answers under random schemas: the engine's own decoding, with logits drawn at random over the shipped vocabulary in
place of a model, so that nothing is valid by luck."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import numpy as np

from bench.harness.random_schemas import random_schema
from mercury_engine.api import ChatRequest, Effort, Message
from mercury_engine.chat.calls import Dialogue, dialogue_of
from mercury_engine.chat.reading import Manner
from mercury_engine.chat.talker import Talker
from mercury_engine.chat.template import ChatTemplate, Source
from mercury_engine.model.room import Room
from mercury_engine.tokens.pretrained import PretrainedTokenizer

EFFORTS: tuple[Effort, ...] = ("instant", "low", "medium", "high")
BUDGETS = (16, 32, 64, 128, 256)
TEMPLATE = (
    "{% for message in messages %}<|user|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
ROWS = 509
VOCABULARY = Path(__file__).parents[1] / "golden/tokenizer.json"


class _RandomRuntime:
    """Logits drawn at random, others for each position and `salt`, and the same in every forward."""

    name, device, precision, batch = "random", "cpu", "float32", 1

    def __init__(self, vocabulary: int) -> None:
        self.config = SimpleNamespace(vocabulary=vocabulary, context=1 << 16, name="random")
        self.salt = 0
        self._table = np.random.default_rng(0).standard_normal((ROWS, vocabulary), np.float32)

    def cache(self) -> "_Counting":
        return _Counting()

    def forward(self, rows: Any, cache: Any) -> Any:
        drawn = [(31 * int(rows.positions_R[row]) + 7 * self.salt) % ROWS for row in rows.wanted]
        return SimpleNamespace(logits_WV=self._table[drawn])


class _Counting:
    """A cache that knows its length only."""

    length = bytes = 0

    def bytes_for(self, rows: int) -> int:
        return 0

    def append(self, forward: Any, rows: Sequence[int]) -> None:
        self.length += len(rows)

    def truncate(self, length: int) -> None:
        self.length = length


def talker_of(folder: Path) -> Talker:
    """Our test vocabulary with the tokens of a conversation."""
    spec = json.loads(VOCABULARY.read_bytes())
    first = 1 + max([*spec["model"]["vocab"].values(), *(token["id"] for token in spec.get("added_tokens", ()))])
    flags = {"special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    names = ("<|user|>", "<|assistant|>", "<|end|>", "<|mask|>")
    spec["added_tokens"] = [{"id": first + at, "content": name, **flags} for at, name in enumerate(names)]
    (folder / "tokenizer.json").write_text(json.dumps(spec), encoding="utf-8")
    tokenizer = PretrainedTokenizer(folder / "tokenizer.json")
    runtime = _RandomRuntime(len(tokenizer.token_bytes))
    manner = Manner(block=32, mask=tokenizer.special("<|mask|>"))

    def dialogue() -> Dialogue:
        return dialogue_of(ChatTemplate(Source(TEMPLATE, TEMPLATE, {}), tokenizer))

    return Talker(Room(runtime, "random"), tokenizer, manner, dialogue)


def validity(talker: Talker, schemas: int) -> dict[str, Any]:
    """How many answers under a random schema, effort and budget are valid, how many are cut, and whose are wrong."""
    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    counts, wrong = {"valid": 0, "length": 0}, []
    for seed in range(schemas):
        schema, draw = random_schema(seed), random.Random(seed)
        request = _asked(schema, draw.choice(EFFORTS), draw.choice(BUDGETS), seed, draw.choice([0.0, 1.0]))
        talker.runtime.salt = seed
        *_, last = talker.chat(request)
        if last.finish == "length":
            counts["length"] += 1
            continue
        try:
            jsonschema.Draft202012Validator(schema, format_checker=checker).validate(json.loads(last.text))
            counts["valid"] += 1
        except (ValueError, jsonschema.ValidationError) as error:
            wrong.append(f"seed {seed}: {error}")
    return counts | {"wrong": wrong}


def _asked(schema: Any, effort: Effort, budget: int, seed: int, temperature: float) -> ChatRequest:
    return ChatRequest(
        session="random",
        messages=(Message("user", f"schema {seed}"),),
        schema=json.dumps(schema),
        most_tokens=budget,
        effort=effort,
        seed=seed,
        temperature=temperature,
    )
