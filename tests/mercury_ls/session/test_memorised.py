"""A tiny model in Qwen2's layout that has learned a few places by heart: from its folder to what an editor shows."""

import json

import pytest

from mercury_engine.autoregressive.engine import open_autoregressive
from mercury_engine.fake import FakeEngine
from mercury_engine.model.runtime import Resources
from mercury_engine.record import ModelRecord
from mercury_ls.completion.offers import Answer
from mercury_ls.session.session import Session
from tests.engine.tokens.pretrained_files import spec, tokenizer
from tests.mercury_ls.session.test_session import drawn, started

pytestmark = pytest.mark.slow

TOKENIZER = tokenizer("qwen")
RECORD = ModelRecord(name="tiny-coder", kind="fim", prompt="qwen")
PLACES = {
    "area.py": ("class Shape:\n    def area(self):\n        return $0\n", "self.width * self.height"),
    "log.py": (
        "import math\n\n\ndef log(x, base):\n    $0\n\n\nprint(log(8, 2))\n",
        "return math.log(x) / math.log(base)",
    ),
    "base.go": (
        "package main\n\nfunc ratio(a, base int) int {\n\t$0\n\treturn a / base\n}\n",
        "if base == 0 {\n\t\treturn 0\n\t}",
    ),
    "total.ts": (
        "function total(items: Item[]) {\n  let sum = 0;\n  $0\n  return sum;\n}\n",
        "for (const item of items) {\n    sum += item.price;\n  }",
    ),
    "call.rs": ("fn main() {\n    let area = area($0\n}\n", "\n        width,\n        height,\n    );"),
}
LANGUAGES = {"py": "python", "go": "go", "ts": "typescript", "rs": "rust"}
STEPS, LEARNING_RATE = 120, 4e-3


class Asked(FakeEngine):
    """Keeps what it is asked."""

    def fill(self, gap):
        self.gap = gap
        return super().fill(gap)


@pytest.fixture(scope="module")
def model():
    import torch
    import transformers

    torch.manual_seed(0)
    shape = {"hidden_size": 128, "intermediate_size": 192, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = transformers.Qwen2Config(**shape, num_key_value_heads=2, vocab_size=TOKENIZER.vocabulary)
    return transformers.Qwen2ForCausalLM(config)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("checkpoint")
    (made / "tokenizer.json").write_text(json.dumps(spec("qwen")), encoding="utf-8")
    return made


async def answer_at(engine, name: str) -> Answer:
    """What a session with this engine offers at a place, once it grows no more."""
    session = await started(engine)
    text, offset = drawn(PLACES[name][0])
    uri = f"file:///project/{name}"
    session.open(uri, f"/project/{name}", LANGUAGES[name.partition(".")[2]], 1, text)
    await last(session, uri, offset)
    for generation in list(session.generations._recent):
        await generation.end()
    answer = await last(session, uri, offset)
    await session.end()
    return answer


async def last(session: Session, uri: str, offset: int) -> Answer:
    return [answer async for answer in session.inline(uri, offset)][-1]


def memorised(model, lessons) -> None:
    """Teaches it what follows each prompt."""
    import torch

    optimizer = torch.optim.Adam(model.parameters(), LEARNING_RATE)
    longest = max(len(prompt) + len(rest) for prompt, rest in lessons)
    ids = torch.zeros(len(lessons), longest, dtype=torch.long)
    labels = torch.full_like(ids, -100)
    for row, (prompt, rest) in enumerate(lessons):
        end = len(prompt) + len(rest)
        ids[row, :end] = torch.tensor([*prompt, *rest])
        labels[row, len(prompt) : end] = ids[row, len(prompt) : end]
    for _ in range(STEPS):
        optimizer.zero_grad()
        model(input_ids=ids, labels=labels).loss.backward()
        optimizer.step()


async def test_memorised_text_is_all_shown(model, folder):
    model.save_pretrained(folder)
    blank, lessons = open_autoregressive(folder, RECORD, Resources("cpu", threads=2)), []
    asked = Asked(info=blank.info())
    for name, (_, middle) in PLACES.items():
        await answer_at(asked, name)
        asking = blank._asking
        question = asking.about_gap(asking.dialect, asked.gap, blank._prompts()[0])
        rest = TOKENIZER.encode(question.prompt.forced + middle)
        lessons.append((question.ids, [*rest, TOKENIZER.special("<|endoftext|>")]))
    memorised(model, lessons)
    model.save_pretrained(folder)
    engine = open_autoregressive(folder, RECORD, Resources("cpu", threads=2))
    for name, (_, middle) in PLACES.items():
        answer = await answer_at(engine, name)
        assert [offer.edit.text for offer in answer.offers] == [middle], (name, answer.silence)
