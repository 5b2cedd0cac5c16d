"""The engine on the GPU's runtime answers as it does on the reference runtime: tokens are chosen on the device."""

import numpy as np
import pytest
import torch

pytest.importorskip("triton")

from mercury_engine.model.gpu.runtime import GpuRuntime
from mercury_engine.model.gpu.step import Backends
from mercury_engine.model.gpu.weights import prepared
from tests.engine.tiny import engine, final, random_runtime, request

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # numpy computes in the interpreter
]

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


BACKENDS = Backends("triton", "triton") if DEVICE == "cuda" else Backends("torch", "torch")
"""Torch computes the layers where the interpreter would take long; our kernel chooses."""


def engines(batch=1):
    reference = random_runtime()
    weights = {name: weight.numpy() for name, weight in reference.model.state_dict().items()}
    network = prepared(reference.config, weights, device=DEVICE, dtype=torch.float32)
    return engine(GpuRuntime(network, device=DEVICE, backends=BACKENDS, batch=batch)), engine(reference)


def check(ours, theirs):
    for own, expected in zip(ours.spans, theirs.spans, strict=True):
        assert own.text == expected.text
        np.testing.assert_allclose(own.confidence, expected.confidence, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("marked", "fields"),
    [
        ("total = pri$0\n", {"effort": "instant"}),
        ("    def area(self):$0\n", {"budget": 4}),
        ("size = [[one]]\nprint(size, [[two]])\n", {"mode": "edit", "budget": 3}),
    ],
)
def test_answers_are_the_same(marked, fields):
    ours, theirs = engines()
    asked = request(marked, **fields)
    check(final(ours, asked), final(theirs, asked))


def test_clients_that_take_turns_share_passes():
    ours, theirs = engines(batch=4)
    asked = [request(f"value_{number} = $0\n", session=str(number), budget=3) for number in range(3)]
    turns = [ours.infill(each) for each in asked]
    last = [None] * len(turns)
    while any(draft is None or not draft.final for draft in last):
        for number, turn in enumerate(turns):
            last[number] = next(turn, last[number])
    for draft, each in zip(last, asked, strict=True):
        check(draft, final(theirs, each))
