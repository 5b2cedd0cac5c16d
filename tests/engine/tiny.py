"""Tiny models for tests: random ones, and one that knows a few lines by heart."""

from functools import cache
from itertools import product
from pathlib import Path

import torch
from torch.nn import functional

from mercury_engine.api import InfillRequest, Span, Window
from mercury_engine.decode.costs import Costs
from mercury_engine.engine import MercuryEngine
from mercury_engine.model.config import TINY
from mercury_engine.model.network import create
from mercury_engine.model.torch_runtime import TorchRuntime
from mercury_engine.tokens.blocks import Block, slot_positions
from mercury_engine.tokens.layout import Budget, answer_ids, budget_for, freeze, lay_out
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_engine.tokens.vocabulary import MASK
from mercury_training.rows.streams import canvas_slots, with_answers
from tests.masks import canvas_mask

TOKENIZER = Tokenizer.load(Path(__file__).parent / "golden" / "tokenizer.json")
BUDGET: Budget = budget_for(TINY.context)

FLAT = Costs((1, 8, 16, 32, 64), (1.0, 1.0, 1.0, 1.0, 1.0))
"""A device that does 64 rows as fast as one: canvases and drafts always pay."""

STEEP = Costs((1, 8, 16, 32, 64), (1.0, 8.0, 16.0, 32.0, 64.0))
"""A device where they never do."""

DOCUMENT = """\
import math

class Shape:
    def __init__(self, width, height):
        self.width = width
        self.height = height

    def area(self):
        return self.width * self.height

    def diagonal(self):
        return math.hypot(self.width, self.height)
"""


def request(marked, *, mode="line", session="s", path="shapes.py", invoked=False, **fields):
    """A completion at `$0` for somebody who types, or one span for each `[[old]]`."""
    if "$0" in marked:
        spans, text = [(marked.index("$0"), marked.index("$0"))], marked.replace("$0", "", 1)
    else:
        spans, text = [], marked
        while "[[" in text:
            start, end = text.index("[["), text.index("]]") - 2
            text = text.replace("[[", "", 1).replace("]]", "", 1)
            spans.append((start, end))
    budget = fields.pop("budget", 64)
    return InfillRequest(
        session=session,
        windows=(Window(path, "python", text),),
        spans=tuple(Span(0, start, end, mode, budget) for start, end in spans),
        invoked=invoked,
        **fields,
    )


def engine(runtime, *, costs=FLAT, bar=0.0, **options):
    return MercuryEngine(runtime, TOKENIZER, costs=costs, bar=bar, **options)


def final(answering, asked):
    *_, last = answering.infill(asked)
    return last


@cache
def random_runtime(seed=0):
    """Random weights large enough that every context says something else."""
    model = create(TINY, seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "norm" in name:
                weight.copy_(torch.rand(weight.shape, generator=generator) + 0.5)
            else:
                weight.mul_(6)
    return TorchRuntime(model)


LINES = (
    "total = price * count",
    "def area(self):",
    "return math.hypot(self.width, self.height)",
    "for index, name in enumerate(names):",
    "with open(path) as file:",
)
LONG_LINE = LINES[2]
BLOCKS = (("def load(path):", "\n    with open(path) as file:\n        return json.load(file)"),)
REWRITES = (
    ("[[size]] = 1\nprint([[size]])\n", ("length", "length")),
    ("[[if not ready:\n    wait()\n]]go()\n", ("while not ready:\n    wait(1)\n",)),
)
STEPS = 100
SIZES = {"line": (15, 31), "block": (31, 63), "edit": (31,)}
"""The canvases that *instant* draws, and those that the policy draws for such budgets."""


@cache
def learnt_runtime(config=TINY):
    """Knows `LINES`, `BLOCKS` and `REWRITES` by heart: reading, drafting and verifying."""
    model = create(config, 0)
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.95), weight_decay=0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1.5e-2, STEPS)
    taught = list(lessons())
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss_on(model, taught).backward()
        optimizer.step()
        schedule.step()
    return TorchRuntime(model)


def asked_by_heart():
    """The requests that the model was taught, each with its answers."""
    lines = [(line, 4) for line in LINES] + [(LONG_LINE, 8), (LONG_LINE, 12)]
    return [
        *((request(f"{line[:cut]}$0\n", budget=32), (line[cut:],)) for line, cut in lines),
        *((request(f"{head}$0\n", mode="block"), (body,)) for head, body in BLOCKS),
        *((request(marked, mode="edit", budget=32), answers) for marked, answers in REWRITES),
    ]


def lessons():
    """Rows with their answers, and the sizes of the canvases to learn."""
    for wanted, texts in asked_by_heart():
        row = lay_out(TOKENIZER, wanted, freeze(TOKENIZER, wanted, BUDGET), BUDGET)
        answers = [answer_ids(TOKENIZER, hole, text) for hole, text in zip(row.holes, texts, strict=True)]
        yield row, answers, SIZES[wanted.spans[0].mode]


def loss_on(model, taught):
    """Plain autoregression over the answers, and canvases on every anchor, all lessons in one forward."""
    ids, positions, blocks, targets = [], [], [], []
    for row, answers, sizes in taught:
        start, stream = len(ids), with_answers(row, answers)
        blocks += [Block(b.size, b.parent + start if b.parent >= 0 else -1) for b in stream.blocks]
        ids += stream.ids.tolist()
        positions += stream.positions.tolist()
        for answer, first in zip(answers, stream.starts, strict=True):
            following = start + (len(row.ids) if first < len(row.ids) else first + 1)
            rows = [start + first, *range(following, following + len(answer) - 1)]
            targets += [(at, token, 1 / len(answer)) for at, token in zip(rows, answer, strict=True)]
        for size, (hole, answer) in product(sizes, zip(row.holes, answers, strict=True)):
            slots, weights = canvas_slots(answer, size)
            rows = [start + hole.anchor, *range(len(ids), len(ids) + size - 1)]
            targets += zip(rows, slots.tolist(), (weights / weights.sum()).tolist(), strict=True)
            blocks.append(Block(size, start + hole.anchor, causal=False, group=start + size))
            ids += [MASK] * size
            positions += slot_positions(int(row.positions[hole.anchor]), size).tolist()
    mask = torch.from_numpy(canvas_mask(blocks))
    hidden, _ = model(torch.tensor([ids]), torch.tensor([positions]), mask)
    rows, tokens, weights = zip(*targets, strict=True)
    logits = model.logits(hidden[0, list(rows)])
    losses = functional.cross_entropy(logits, torch.tensor(tokens), reduction="none")
    return (losses * torch.tensor(weights)).sum() / sum(weights)
