"""The engine on the GPU's runtime answers as it does on the reference runtime: tokens are chosen on the device."""

import numpy as np
import pytest
import torch

pytest.importorskip("triton")

from mercury_engine.model.gpu.runtime import GpuRuntime
from mercury_engine.model.gpu.step import Backends
from mercury_engine.model.gpu.weights import prepared
from tests.engine.tiny import engine, final, gap, random_runtime

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
    assert ours.text == theirs.text
    np.testing.assert_allclose(ours.confidence, theirs.confidence, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("marked", "fields"),
    [
        ("total = pri$0\n", {"effort": "instant"}),
        ("    def area(self):$0\n", {"most_tokens": 4}),
    ],
)
def test_answers_are_the_same(marked, fields):
    ours, theirs = engines()
    asked = gap(marked, **fields)
    check(final(ours, asked), final(theirs, asked))


def test_clients_that_take_turns_share_passes():
    ours, theirs = engines(batch=4)
    asked = [gap(f"value_{number} = $0\n", session=str(number), most_tokens=3) for number in range(3)]
    turns = [ours.fill(each) for each in asked]
    last = [None] * len(turns)
    while any(draft is None or not draft.final for draft in last):
        for number, turn in enumerate(turns):
            last[number] = next(turn, last[number])
    for draft, each in zip(last, asked, strict=True):
        check(draft, final(theirs, each))
