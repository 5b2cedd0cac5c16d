"""The engine for autoregressive models: where answers end, how sure they are, what is read again and what is not."""

from itertools import count

import pytest
from msgspec.structs import replace

from mercury_engine.api import Edit, EngineError
from mercury_engine.decode.reading import ReadingPace
from mercury_engine.model.room import Room
from mercury_engine.record import ModelRecord
from tests.engine.autoregressive.models import FIM, MIDDLE, Scripted, engine, random_runtime
from tests.engine.tiny import FLAT, STEEP, gap

BAR = 0.54
LONG_FILE = "".join(f"a{number} = {number}\n" for number in range(80))


def final(answering, asked):
    *_, last = answering.fill(asked)
    assert last.final
    return last


def writing(marked, says, **options):
    """A model that writes `says` at the cursor; what it is asked for begins with the cursor's line."""
    head = marked.partition("$0")[0].rpartition("\n")[2]
    return Scripted(head + says, **options)


def check(marked, says, expected, *, complete=True, **fields):
    """What is inserted at the cursor if the model writes `says` there."""
    filled = final(engine(writing(marked, says)), gap(marked, **fields))
    assert (filled.text, filled.complete) == (expected, complete)
    return filled


def test_line_ends_where_model_or_line_ends():
    check("x = $0\n", "self.width", "self.width")
    check("x = $0\n", "self.width\ny = 1", "self.width")
    check("x = $0\r\n", "self.width\r\ny = 1", "self.width")


def test_begun_word_is_spelled_again_and_not_repeated():
    check("x = self.wi$0\n", "dth + 1\n", "dth + 1")
    check("    $0\n", "return 1\n", "return 1")
    check("x = sé$0\n", "lf\n", "lf")


def test_block_ends_where_its_statement_does():
    rest = "\n\nself.height\n" * 3
    check("def area(self):$0\n" + rest, "\n    return self.width" + rest, "\n    return self.width", block=True)


def test_block_ends_before_the_next_statement():
    rest = "\n\nself.height\n"
    check("def area(self):\n    return $0" + rest, "self.width\n\nself = 1\n", "self.width", block=True)
    check("def area(self):$0\n", "\n    return self.width\n\ndef self.height", "\n    return self.width", block=True)
    check("def area(self):\n    $0\n", "self = 1\n    self", "self = 1\n    self", block=True)


def test_budget_ends_answer_unfinished():
    filled = check("x =$0", " self.width" * 9, "", complete=False, most_tokens=0)
    assert filled.p_accept == 0
    check("x =$0", " self" * 9, " self self", complete=False, most_tokens=2)


def test_names_of_special_tokens_in_a_file_are_text():
    check("# <|fim_middle|>\nx = $0\n", "self", "self")


def test_likely_start_of_an_answer_is_given_while_somebody_types():
    def shown(sure, **fields):
        filled = final(engine(Scripted("self.width", sure=sure)), gap("$0\n", **fields))
        return filled.text, filled.complete, filled.p_accept >= BAR

    assert shown(0.9) == shown(0.9, bar=BAR) == ("self.width", True, True)
    assert shown(0.6) == ("self.width", True, False)
    assert shown(0.6, bar=BAR) == ("self", False, True)


def test_hopeless_answer_is_given_up_while_somebody_types():
    def tokens(**fields):
        return len(final(engine(Scripted("self." * 20, sure=0.2)), gap("$0\n", **fields)).confidence)

    assert tokens(bar=0.75) < tokens()
    assert tokens(bar=0.75) < tokens(bar=0.75, effort="medium")


class Clock:
    """Each look at it costs a millisecond."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 0.001
        return self.now


def test_last_draft_comes_before_deadline():
    answering = engine(Scripted("x = self" + ".width" * 40), clock=Clock(), drafting=False)
    *drafts, last = answering.fill(gap("x = $0\n", deadline_ms=12))
    assert [draft.step for draft in drafts] == list(range(1, len(drafts) + 1))
    assert 4 < len(drafts) < 12
    assert last.final
    assert last.text.startswith("self.width")
    assert not last.complete


def test_draft_with_nothing_new_is_the_same_again():
    *drafts, _ = engine(Scripted("x = '€'"), drafting=False).fill(gap("x = $0\n"))
    texts = [draft.text for draft in drafts]
    half = texts.index("'")
    assert drafts[half] is drafts[half + 1]
    assert drafts[half - 1] is not drafts[half]


def test_prompt_left_unread_by_a_deadline_is_read_by_the_next_request():
    runtime = Scripted("x = self")
    answering, asked = reading_slowly(runtime), gap(f"{LONG_FILE}x = $0\n", deadline_ms=1)
    lasts = [final(answering, asked) for _ in range(20)]
    unread = [draft.unread for draft in lasts if not draft.step]
    assert unread == sorted(unread, reverse=True)
    assert unread[0] > unread[-1] > 0
    assert lasts[-1].text == "self"
    assert max(runtime.reads) <= 256


def reading_slowly(runtime, **options):
    """Each forward over a prompt takes eight seconds: only chunks of the least size are read in time."""
    return engine(runtime, clock=Clock(), pace=ReadingPace(FLAT, count(0, 8).__next__), **options)


def test_drafts_say_how_much_of_the_prompt_is_unread_and_count_from_the_first_token():
    answering = reading_slowly(Scripted("x = self.width"), drafting=False)
    *drafts, last = answering.fill(gap("a = 1\n" * 160 + "x = $0\n"))
    reading = [draft for draft in drafts if draft.unread]
    assert [draft.step for draft in reading] == [0] * len(reading)
    assert len(reading) > 1
    assert (drafts[len(reading)].step, last.step > 1, last.unread) == (1, True, 0)


def test_warming_leaves_one_token_to_read():
    runtime = Scripted("x = self")
    answering, asked = engine(runtime), gap("a = 1\n" * 80 + "x = $0\n")
    for _ in answering.warm(asked):
        pass
    read, forwards = sum(runtime.reads), len(runtime.reads)
    assert final(answering, asked).text == "self"
    assert runtime.reads[forwards] <= 1 + 64
    assert read > 200


def check_typing(typed, most):
    """The rows of the first forward after each key, which reads what changed; the lines below stay read."""
    text, below = "import math\n\n" * 12 + "class Shape:\n    def area(self):\n        return ", "\n\nx = 1\n" * 9
    runtime = Scripted("nothing", middle=MIDDLE)
    answering = engine(runtime, FIM, drafting=False)
    read = []
    for end in range(len(typed) + 1):
        before = len(runtime.reads)
        final(answering, gap(f"{text}{typed[:end]}$0{below}", most_tokens=1))
        read.append(runtime.reads[before])
    assert read[0] > 80
    assert max(read[1:]) <= most


def test_typing_reads_only_what_changed():
    check_typing("self.width * self.height", 3)
    check_typing("self.width\n        y = self.height", 80)


def edits(*words):
    return tuple(Edit("other.py", 0, "x = 0\n", f"x = {word}\n") for word in words)


def check_edits(steps, expected, *, is_slow=True):
    """The newest edit, "" for none, in what the model reads for each request."""
    told = []
    runtime = Scripted(lambda read: told.append(read) or "x = self")
    answering = (reading_slowly if is_slow else engine)(runtime)
    newest = []
    for words in steps:
        final(answering, gap("a = 1\n" * 60 + "x = $0\n", edits=edits(*words)))
        newest.append(next((word for word in reversed(words) if f"+x = {word}\n" in told[-1]), ""))
    assert newest == expected


def test_settled_edit_does_not_make_a_slow_machine_read_all_again():
    steps = ["1"], ["1", "2"], ["1", "2", "3", "4"], ["1", "2", "3", "4", "5"], ["1", "2", "3", "4", "5", "6"]
    check_edits(steps, ["1", "2", "4", "5", "6"], is_slow=False)
    check_edits(steps, ["1", "1", "1", "5", "5"])
    check_edits([[], *steps[:3]], ["", "", "", "4"])


def test_edits_that_are_gone_are_not_told_any_more():
    check_edits([["1", "2"], ["1"]], ["2", "1"])
    check_edits([["1"], []], ["1", ""])


def test_drafts_from_the_file_save_forwards():
    text = "def area(self):\n    return self.width * self.height\n\ndef other(self):\n    return self.wi$0\n"
    says = "    return self.width * self.height\n"
    runtimes = [Scripted(says), Scripted(says), Scripted(says)]
    found = [
        final(engine(runtimes[0], drafting=False), gap(text)),
        final(engine(runtimes[1]), gap(text)),
        final(engine(runtimes[2], costs=STEEP), gap(text)),
    ]
    assert len({replace(draft, step=0) for draft in found}) == 1
    plain, drafted, steep = (len(runtime.reads) for runtime in runtimes)
    assert drafted < plain / 2
    assert steep <= plain


def test_seed_asks_for_another_answer():
    answering = engine(random_runtime())
    asked = [final(answering, gap("x = $0\n", seed=seed, effort="medium")).text for seed in range(4)]
    assert len(set(asked)) == 4
    assert asked[0] == final(answering, gap("x = $0\n", effort="medium")).text


def test_watchers_see_tokens_come_one_by_one():
    asked = gap("x = self.wi$0\n")
    drafts = list(engine(Scripted("x = self.width"), drafting=False).fill(replace(asked, slots=True)))
    counts = [len(draft.slots) for draft in drafts]
    assert counts == sorted(counts)
    last = drafts[-1]
    assert "".join(slot.text for slot in last.slots).startswith(last.text)
    assert all(slot.settled for slot in last.slots)
    assert last.text == final(engine(Scripted("x = self.width")), asked).text == "dth"


def test_dialect_of_another_model_is_refused():
    with pytest.raises(EngineError, match="no token '<PRE>'"):
        engine(Scripted(""), ModelRecord(name="other", kind="fim", prompt="codellama"))


def test_engine_describes_itself():
    runtime = Scripted(" self")
    answering = engine(runtime, room=Room(runtime, FIM.name, weights=1000))
    final(answering, gap("x = $0\n"))
    info = answering.info()
    assert (info.engine, info.model, info.calibrated) == ("autoregressive", FIM.name, False)
    assert (info.fills, info.rewrites, info.judges) == (True, False, False)
    assert 1 < info.characters_per_token < 5
    assert info.bytes > 1000
