"""Exact lines by how much is read."""

from msgspec.structs import replace

from mercury_engine.model.config import TINY
from mercury_engine.model.torch_runtime import TorchRuntime
from mercury_training.evaluate.context import LengthAnswer, answered, figures
from mercury_training.models import create
from mercury_training.rows.fim_rows import FimRow
from tests.engine.tiny import FLAT, TOKENIZER

LINES = "".join(f"value_{number} = {number}\n" for number in range(60))
ROW = FimRow(
    id="1", repo="", commit="", licence="", path="a.py", language="python", kind="single_line",
    prefix=LINES + "total = ", suffix="\n" + LINES, middle="1",
)  # fmt: skip


def test_length_bounds_what_is_read():
    runtime = TorchRuntime(create(replace(TINY, context=512, layers=1), 0))
    answers = list(answered(runtime, TOKENIZER, FLAT, [ROW, ROW], (128, 256, 512)))
    shortest, short, longest, *again = [answer.read for answer in answers]
    assert shortest < 200 < short < longest
    assert all(read < 5 for read in again), "the same row again"


def test_figures_are_those_of_the_answers():
    answers = [LengthAnswer(256, read, read > 200) for read in (100, 200, 300, 400)]
    assert figures(answers) == {"tokens": 256, "read": 250.0, "exact": 0.5, "interval": [0.15, 0.85]}
