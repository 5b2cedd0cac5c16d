"""Tiny models for tests: random ones, and one that knows a few lines by heart."""

from functools import cache
from pathlib import Path

import torch
from torch.nn import functional

from mercury_engine.api import Gap
from mercury_engine.decode.costs import Costs
from mercury_engine.engine import MercuryEngine
from mercury_engine.model.config import TINY
from mercury_engine.model.torch_runtime import TorchRuntime
from mercury_engine.tokens.layout import Budget, budget_for, freeze, lay_out
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_engine.tokens.vocabulary import MASK
from mercury_training.models import create
from mercury_training.rows.blocks import Block, slot_positions
from mercury_training.rows.holes import AnchoredRow, answer_ids
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


def gap(marked, *, session="s", path="shapes.py", invoked=False, **fields):
    """The gap at `$0`, for somebody who types."""
    before, _, after = marked.partition("$0")
    return Gap(session=session, path=path, language="python", before=before, after=after, invoked=invoked, **fields)


def engine(runtime, *, costs=FLAT, bar=0.0, **options):
    return MercuryEngine(runtime, TOKENIZER, costs=costs, bar=bar, **options)


def final(answering, asked):
    *_, last = answering.fill(asked)
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
STEPS = 160
SIZES = {False: (15, 31), True: (31, 63)}
"""Of a line and of a block: the canvases that *instant* draws, and those that the policy draws for such limits."""


@cache
def learnt_runtime(config=TINY):
    """Knows `LINES` and `BLOCKS` by heart: reading, drafting and verifying."""
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
    """The gaps that the model was taught, each with its answer."""
    lines = [(line, 4) for line in LINES] + [(LONG_LINE, 8), (LONG_LINE, 12)]
    return [
        *((gap(f"{line[:cut]}$0\n", most_tokens=32), line[cut:]) for line, cut in lines),
        *((gap(f"{head}$0\n", block=True), body) for head, body in BLOCKS),
    ]


def lessons():
    """Rows with their answers, and the sizes of the canvases to learn."""
    for asked, text in asked_by_heart():
        row = lay_out(TOKENIZER, asked, freeze(TOKENIZER, asked, BUDGET), BUDGET)
        yield AnchoredRow.of(row), answer_ids(TOKENIZER, row.part, text), SIZES[asked.block]


def loss_on(model, taught):
    """Plain autoregression over the answers, and canvases behind every row, all lessons in one forward."""
    ids, positions, blocks, targets = [], [], [], []
    for row, answer, sizes in taught:
        start, stream, at = len(ids), with_answers(row, [answer]), len(row.ids) - 1
        blocks += [Block(b.size, b.parent + start if b.parent >= 0 else -1) for b in stream.blocks]
        ids += stream.ids.tolist()
        positions += stream.positions.tolist()
        rows = range(start + at, start + at + len(answer))
        targets += [(at, token, 1 / len(answer)) for at, token in zip(rows, answer, strict=True)]
        for size in sizes:
            slots, weights = canvas_slots(answer, size)
            rows = [start + at, *range(len(ids), len(ids) + size - 1)]
            targets += zip(rows, slots.tolist(), (weights / weights.sum()).tolist(), strict=True)
            blocks.append(Block(size, start + at, causal=False, group=start + size))
            ids += [MASK] * size
            positions += slot_positions(at, size).tolist()
    mask = torch.from_numpy(canvas_mask(blocks))
    hidden, _ = model(torch.tensor([ids]), torch.tensor([positions]), mask)
    rows, tokens, weights = zip(*targets, strict=True)
    logits = model.logits(hidden[0, list(rows)])
    losses = functional.cross_entropy(logits, torch.tensor(tokens), reduction="none")
    return (losses * torch.tensor(weights)).sum() / sum(weights)
