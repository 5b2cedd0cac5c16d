"""Real open weights through the product: what they compute, and what a user gets of them."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from bench.quality import editor
from bench.quality.contenders import opened
from bench.quality.measure import ends_in_place
from mercury_engine import model_folders
from mercury_engine.api import ChatReply, ChatRequest, Message, Tool
from mercury_engine.model.decoder import open_decoder
from mercury_engine.model.runtime import Resources, Rows
from mercury_engine.record import read_record
from mercury_engine.tokens.pretrained import PretrainedTokenizer
from mercury_ls.serve import added
from mercury_ls.settings.schema import Settings
from mercury_training.corpus.syntax import count_errors
from mercury_training.rows.fim_rows import FimRow
from tests.real.weights import found

pytestmark = [pytest.mark.real, pytest.mark.slow]

CODERS = ("qwen2.5-coder-0.5b-instruct", "qwen2.5-coder-1.5b-instruct")
DRAWN = Path(__file__).parents[1] / "mercury_ls/completion/rows"
LANGUAGES = ("python", "typescript", "go", "rust")
READ = (DRAWN / "python.txt").read_text(encoding="utf-8")[:600]
CLEAR = {"int8": 0.5, "int4": 2.5}
"""By how many nats a token has to be likelier than all others for the same one to be the likeliest after rounding."""
MOST_DIVERGENCE = {"int8": 0.002, "int4": 0.1}
"""Nats, on average, from the reference, which has the weights of the file."""
WEATHER = Tool(
    "weather",
    parameters=json.dumps({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}),
)
PERSON = json.dumps(
    {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"],
        "additionalProperties": False,
    }
)


class Added(NamedTuple):
    """A model that was added by the command, and what that printed."""

    name: str
    file: Path
    printed: str

    @property
    def folder(self) -> Path:
        return model_folders.added()[self.name]


def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "mercury_ls", *arguments], capture_output=True, text=True)


def weights_of(name: str) -> Path:
    if (file := found(name)) is None:
        pytest.skip(f"the weights of {name} are not here: python -m tests.real.weights {name}")
    return file


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Of a user who has added nothing yet."""
    with pytest.MonkeyPatch.context() as patch:
        for kind in ("DATA", "CONFIG", "STATE", "CACHE"):
            patch.setenv(f"XDG_{kind}_HOME", str(tmp_path_factory.mktemp(kind.lower())))
        yield


@pytest.fixture(scope="module", params=CODERS)
def coder(request: pytest.FixtureRequest, homes: None) -> Added:
    file = weights_of(request.param)
    process = ran("model", "add", str(file), "--name", request.param, "--yes")
    assert process.returncode == 0, process.stderr
    return Added(request.param, file, process.stdout)


def test_added_model_understands_its_prompts(coder):
    assert "it answers in its format" in coder.printed
    assert "next edits   by rules alone" in coder.printed


def test_memory_is_as_announced(coder):
    announced = re.search(r"in memory +about ([\d,]+) MB", coder.printed)
    measured = re.search(r"([\d,]+) MB of memory", ran("model", "test", coder.name).stdout)
    assert announced
    assert measured
    assert megabytes(measured[1]) <= megabytes(announced[1])


def megabytes(printed: str) -> int:
    return int(printed.replace(",", ""))


def test_logits_are_those_of_the_reference(coder):
    pytest.importorskip("gguf", reason="the reference reads files with gguf, which the extra `real` brings")
    from tests.real import reference

    record = read_record(coder.folder)
    ids = PretrainedTokenizer(coder.folder / "tokenizer.json").encode(READ)
    runtime = open_decoder(coder.folder, record, Resources())
    rows = Rows(np.array(ids, np.int32), np.arange(len(ids), dtype=np.int32))
    expected_TV = reference.logits(coder.file, ids)
    ours_TV = runtime.forward(rows, runtime.cache()).logits_WV[:, : expected_TV.shape[1]]
    second_T, first_T = np.sort(expected_TV, axis=1)[:, -2:].T
    is_clear_T = first_T - second_T > CLEAR[record.precision]
    assert (ours_TV.argmax(axis=1) == expected_TV.argmax(axis=1))[is_clear_T].all()
    assert divergence(expected_TV, ours_TV) <= MOST_DIVERGENCE[record.precision]


def divergence(expected_TV: np.ndarray, ours_TV: np.ndarray) -> float:
    expected_TV, ours_TV = (x_TV - np.logaddexp.reduce(x_TV, axis=1, keepdims=True) for x_TV in (expected_TV, ours_TV))
    return float(np.mean(np.sum(np.exp(expected_TV) * (expected_TV - ours_TV), axis=1)))


def drawn_rows() -> Iterator[FimRow]:
    for language in LANGUAGES:
        for number, drawn in enumerate((DRAWN / f"{language}.txt").read_text(encoding="utf-8").split("\n----\n")):
            prefix, _, rest = drawn.partition("⟦")
            middle, _, suffix = rest.partition("⟧")
            yield FimRow(
                id=f"{language}-{number}",
                repo="",
                commit="",
                licence="",
                path=f"row.{language}",
                language=language,
                kind="multi_line",
                prefix=prefix,
                suffix=suffix,
                middle=middle,
            )


async def test_answers_on_request_come_and_end_where_they_should(coder):
    rows, given, parsed, ended = [*drawn_rows()], 0, 0, 0
    async with opened(f"peer:{coder.name}") as contender:
        for row in rows:
            answer = (await editor.complete(contender, row)).answer
            before, after = row.prefix + row.middle + row.suffix, row.prefix + answer + row.suffix
            if answer:
                given += 1
                parsed += count_errors(row.language, after) <= count_errors(row.language, before)
                ended += ends_in_place(row, answer)
    assert given >= 0.9 * len(rows)
    assert parsed >= 0.95 * given
    assert ended >= 0.98 * given


def replied(coder: Added, **request) -> ChatReply:
    with added.opened(coder.name, Settings(), lambda *_: None) as engine:
        return [*engine.chat(ChatRequest(session="s", **request))][-1]


def test_instruct_model_chats(coder):
    asked = Message("user", "What is the capital of France? Answer with one word.")
    assert "Paris" in replied(coder, messages=(asked,), most_tokens=16).text


def test_answer_matches_its_schema(coder):
    asked = Message("user", "Alice is 30 years old. Describe her as JSON.")
    assert json.loads(replied(coder, messages=(asked,), schema=PERSON).text) == {"name": "Alice", "age": 30}


def test_tool_is_called_with_its_argument(coder):
    asked = Message("user", "What is the weather in Oslo?")
    (call,) = replied(coder, messages=(asked,), tools=(WEATHER,), tool_choice="weather").calls
    assert (call.name, json.loads(call.arguments)) == ("weather", {"city": "Oslo"})


def test_model_without_infilling_is_refused_with_a_remedy(homes):
    process = ran("model", "add", str(weights_of("smollm2-135m-instruct")), "--yes")
    assert process.returncode == 1
    assert "was not trained to fill in the middle" in process.stderr
    assert "model recommend" in process.stderr
