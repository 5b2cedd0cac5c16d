"""Answers of the engine for other people's diffusion models: their prompts, what is shown, and when it stops."""

import pytest

from mercury_engine.api import EngineError, Members
from mercury_engine.families.engine import FamilyEngine
from mercury_engine.families.family import FAMILIES, family_named
from mercury_engine.record import ModelRecord
from tests.engine.families.fakes import ScriptedRuntime, gap, tokenizer_of

MARKED = "def area(self):\n$0\n\n"
BODY = "return self.width *\n        self.height"


def engine_of(name, script, **options):
    family = family_named(name)
    tokenizer = tokenizer_of(family)
    runtime = ScriptedRuntime(family, tokenizer, script)
    record = ModelRecord(name="m", kind="diffusion", prompt=name)
    return FamilyEngine(runtime, tokenizer, record, family, **options), runtime


def says(text, probability=0.95):
    """Knows the text before the cursor and what follows it, up to its end token, whatever the size of the gap."""

    def script(runtime, sequence):
        ids = [*runtime.ids.bos, *runtime.tokenizer.encode(text)]
        end = next(iter(runtime.ids.ends), ids[-1])
        return lambda position: (ids[position] if position < len(ids) else end, probability)

    return script


def spelled(runtime, ids):
    names = {runtime.tokenizer.special(name): name for name in runtime.tokenizer.added}
    return "".join(names.get(token) or runtime.tokenizer.decode_bytes([token]).decode() for token in ids)


PROMPTS = {
    "dream": "<|beginoftext|>a = [\n" + "<|mask|>" * 16 + "\n]\n<|endoftext|>",
    "dreamon": "<|beginoftext|>a = [\n" + "<|mask|>" * 4 + "\n]\n<|endoftext|>",
    "open-dcoder": "a = [\n" + "<M>" * 16 + "\n]\n",
    "llada": "<|startoftext|>a = [\n" + "<|mdm_mask|>" * 16 + "\n]\n<|endoftext|>",
    "tiny-a2d": "a = [\n" + "<|mask|>" * 16 + "\n]\n",
    "tiny-a2d-bd3lm": "a = [\n" + "<|mask|>" * 26,
    "sdar": "a = [\n" + "<|MASK|>" * 2,
    "fast-dllm-v2": "a = [\n" + "|<MASK>|" * 26,
    "stable-diffcoder": "<[begin▁of▁sentence]>a = [\n" + "<[MASK_TOKEN]>",
}


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_prompts_are_as_published(family):
    engine, runtime = engine_of(family.name, says("a = [\n1"))
    list(engine.fill(gap("a = [\n$0\n]\n", block=family.length == "continue")))
    masked = next(sequence for sequence in runtime.sequences if runtime.ids.mask in sequence)
    assert spelled(runtime, masked) == PROMPTS[family.name]


def check(name, marked, text, expected, **fields):
    """The last draft for a model that would write `text` before the cursor, and on."""
    engine, runtime = engine_of(name, says(text))
    *_, last = engine.fill(gap(marked, **fields))
    assert last.final
    assert last.text == expected
    return last, runtime


def test_answer_ends_before_name_that_cannot_exist():
    known = (Members("self", ("height",)),)
    said = "def area(self):\nreturn self.width\n\ndef x"
    filled, _ = check("dream", MARKED, said, "return self", members=known)
    assert not filled.complete


def test_line_ends_at_its_end():
    filled, _ = check("dream", MARKED, "def area(self):\nreturn self.width\n\ndef x", "return self.width")
    assert filled.complete
    assert filled.p_accept > 0.25
    assert filled.confidence == pytest.approx([0.95] * len(filled.confidence), abs=0.01)


def test_insertion_into_a_line_is_short():
    for marked, size in (("a(\n$0\n", 16), ("(\n$0)\n", 8)):
        engine, runtime = engine_of("tiny-a2d", says("x"))
        next(engine.fill(gap(marked)))
        assert runtime.sequences[0].count(runtime.ids.mask) == size


def test_begun_word_is_not_part_of_answer():
    check("open-dcoder", "    return sel$0\n", "    return self.width\n" + "x" * 20, "f.width")
    check("sdar", "    return sel$0\n", "    return self.width", "f.width", block=True)


def test_block_goes_on_until_family_ends_it():
    for family in ("sdar", "fast-dllm-v2", "stable-diffcoder", "tiny-a2d-bd3lm"):
        filled, _ = check(family, MARKED, "def area(self):\n" + BODY, BODY, block=True, most_tokens=64)
        assert filled.complete


def test_overlong_answer_ends_with_a_whole_word():
    filled, _ = check("sdar", "a =\n$0", "a =\n" + "12 45 7890" * 5, "12 45", block=True, most_tokens=10)
    assert not filled.complete


def test_unsure_answer_is_unlikely_to_be_accepted():
    engine, _ = engine_of("open-dcoder", says("a\nbcdefghijklmnopqr", 0.5))
    *_, last = engine.fill(gap("a\n$0\n", most_tokens=8, effort="high"))
    assert last.text
    assert last.p_accept < 0.1
    assert not engine.info().calibrated


def test_hopeless_answer_is_given_up():
    counts = []
    for effort in ("low", "medium"):
        engine, runtime = engine_of("open-dcoder", says("a\n" + "123456789" * 3, 0.5))
        *_, last = engine.fill(gap("a\n$0\n", most_tokens=16, effort=effort, bar=0.75))
        counts.append(len(runtime.rows))
        assert last.p_accept < 0.1
    assert counts[0] < counts[1]


def test_drafts_grow_one_forward_at_a_time():
    engine, runtime = engine_of("tiny-a2d", says("a =\n" + "123456789" * 9))
    lengths = []
    for step, draft in enumerate(engine.fill(gap("a =\n$0\n", effort="high", most_tokens=16)), 1):
        assert draft.step == step
        assert draft.final or len(runtime.rows) == step
        lengths.append(len(draft.text))
    assert lengths == sorted(lengths)
    assert len(lengths) > 5


def test_closed_answer_stops():
    engine, runtime = engine_of("dream", says("a =\n" + "123456789" * 9))
    answering = engine.fill(gap("a =\n$0\n", effort="high"))
    next(answering)
    next(answering)
    answering.close()
    assert len(runtime.rows) == 2


def test_passed_deadline_ends_the_answer():
    ticks = iter(range(1000))
    engine, runtime = engine_of("dream", says("a =\n" + "1" * 99), clock=lambda: next(ticks))
    *_, last = engine.fill(gap("a =\n$0\n", effort="high", deadline_ms=9000.0))
    assert last.final
    assert len(runtime.rows) < 6


def test_family_that_continues_says_so_and_fills_lines_too():
    check("sdar", MARKED, "def area(self):\nreturn self.width\n\ndef x", "return self.width")
    engine, _ = engine_of("sdar", says(""))
    assert "sees nothing after the cursor" in engine.info().notes[0]
    engine, _ = engine_of("dream", says(""))
    assert not engine.info().notes


def test_as_much_around_the_cursor_as_there_is_room_for():
    marked = "before = 1\n" * 80 + "$0\n" + "after = 2\n" * 80
    engine, runtime = engine_of("dreamon", says(""), context=200)
    next(engine.fill(gap(marked, most_tokens=32)))
    (sequence,) = runtime.sequences
    assert 140 < len(sequence) <= 200
    read = spelled(runtime, sequence)
    before, _, after = read.partition("<|mask|>" * 4)
    assert before.startswith("<|beginoftext|>before")
    assert after.endswith("after = 2\n<|endoftext|>")
    assert before.count("before") > after.count("after") > 2


def test_typing_reads_only_what_is_new():
    text = "".join(f"a{number} = {number}\n" for number in range(40))
    engine, runtime = engine_of("sdar", says(text))
    list(engine.warm(gap(text[:200] + "$0", block=True)))
    assert sum(runtime.rows) > 150
    runtime.rows.clear()
    for size in (201, 202, 203):
        answering = engine.fill(gap(text[:size] + "$0", block=True))
        next(answering)
        answering.close()
    assert max(runtime.rows) <= 4
    assert engine.info().bytes > 0


def test_answers_that_take_turns_are_the_same():
    engine, _ = engine_of("fast-dllm-v2", says("def area(self):\n" + BODY))
    turns = [engine.fill(gap(MARKED, block=True, most_tokens=64)) for _ in range(2)]
    drafts = [list(pair) for pair in zip(*turns, strict=True)]
    assert drafts[-1][0] == drafts[-1][1]
    assert drafts[-1][0].text == BODY


def test_tokenizer_of_another_model_is_refused():
    family = family_named("dream")
    tokenizer = tokenizer_of(family)
    runtime = ScriptedRuntime(family, tokenizer, says(""))
    runtime.config.vocabulary = 99
    record = ModelRecord(name="m", kind="diffusion", prompt="dream")
    with pytest.raises(EngineError, match=r"the tokenizer has \d+ tokens, the model 99; .*add the model again"):
        FamilyEngine(runtime, tokenizer, record, family)


def test_another_answer():
    engine, _ = engine_of("open-dcoder", says("a\nbcdefghijklmnopqr"))
    drafts = [list(engine.fill(gap("a\n$0\n", most_tokens=8, seed=seed)))[-1] for seed in range(2)]
    assert drafts[0].text != drafts[1].text


@pytest.mark.parametrize(("name", "block"), [("dream", False), ("dreamon", False), ("sdar", True)])
def test_watchers_see_which_slots_are_still_masked(name, block):
    engine, _ = engine_of(name, says("return self.width\n", 0.6))
    drafts = list(engine.fill(gap("return sel$0\n", block=block, most_tokens=16, effort="medium", slots=True)))
    frames = [draft.slots for draft in drafts]
    assert any(not slot.text for frame in frames for slot in frame)
    assert drafts[-1].text.rstrip() == "f.width"
    assert "".join(slot.text for slot in frames[-1]).startswith("f.width")
    assert all(slot.settled == bool(slot.text) for frame in frames for slot in frame)
    for draft in engine.fill(gap("return sel$0\n", block=block, most_tokens=16)):
        assert not draft.slots


def test_text_around_gap_is_encoded_ahead():
    engine, runtime = engine_of("dream", says("a =\n" + "x" * 99))
    assert len(list(engine.warm(gap("a =\n" * 20 + "$0\n")))) == 1
    warmed = runtime.rows.pop()
    list(engine.fill(gap("a =\n" * 20 + "$0\n")))
    assert max(runtime.rows) < warmed
    runtime.rows.clear()
    assert list(engine.warm(gap("a =\n" * 20 + "$0\n", effort="high"))) == []
    list(engine.fill(gap("a =\n" * 20 + "$0\n", effort="high")))
    assert min(runtime.rows) >= warmed - 16, "with high effort each forward reads everything"
