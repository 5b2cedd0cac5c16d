"""What is asked, and what the answers mean, without any server."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercury_engine.api import Diagnostic, Edit, EngineError, Gap, Region, Regions, Snippet
from mercury_engine.prompts.edits import FORMATS, edit_format
from mercury_engine.prompts.edits.asked import EditPrompt
from mercury_engine.prompts.edits.chat import CHAT_EDIT
from mercury_engine.prompts.edits.inception import INCEPTION_EDIT
from mercury_engine.prompts.pieces import Prompt
from mercury_engine.remote import asking
from mercury_engine.remote.heard import StreamedText
from mercury_engine.remote.protocols import Event, protocol_named

WINDOW = """\
def area(width, height):
    return width * height


def volume(width, height):
    return area(width, height)
"""
CURSOR = WINDOW.index("height):\n    return area")
CHAT = protocol_named("chat")
SECRET = 'API_KEY = "sk-1234567890abcdef1234"\n'


def region(text=WINDOW, cursor=CURSOR, **fields) -> Regions:
    return Regions(session="s", regions=(Region("shapes.py", "python", text),), cursor=cursor, **fields)


def gap(before, after="", **fields) -> Gap:
    return Gap(session="s", path="shapes.py", language="python", before=before, after=after, **fields)


def heard(text: str, end="stop") -> StreamedText:
    said = StreamedText()
    said.add(Event(text, end=end))
    return said


def attempt_at(form, asked):
    (attempt,) = asking.rewriting(CHAT, form, asking.masked_regions(asked), asked, address="", budget=8192)
    return attempt


def shown(attempt, answer: str, end="stop"):
    rewrites = attempt.show(heard(answer, end))
    return rewrites and rewrites.regions[0]


def rewritten(form, answer: str, asked=None, end="stop"):
    attempt = attempt_at(form, asked or region())
    return attempt, shown(attempt, answer, end)


FUNCTIONS = "def area(w, h):\n    return w * h\n" + "".join(f"\n\ndef f{n}():\n    return {n}\n" for n in range(8))
CHANGED = FUNCTIONS.replace("w * h", "abs(w * h)")


@pytest.mark.parametrize(
    ("form", "before"),
    [
        (edit_format("zeta-2"), ""),
        (edit_format("zeta"), "<|editable_region_start|>\n"),
        (edit_format("sweep"), ""),
        (INCEPTION_EDIT, "```python\n"),
    ],
    ids=lambda each: getattr(each, "name", ""),
)
@pytest.mark.parametrize(
    ("lines", "expected"),
    [(2, None), (6, None), (9, CHANGED), (12, CHANGED)],
    ids=["the edit alone", "too few lines", "three lines", "more"],
)
def test_rewrite_that_repeats_old_text_is_whole(form, before, lines, expected):
    said = before + CHANGED[: len("".join(CHANGED.splitlines(keepends=True)[:lines])) + 3]
    asked = region(FUNCTIONS, FUNCTIONS.index("w * h"))
    attempt = attempt_at(form, asked)
    filled = shown(attempt, said, "")
    assert (filled and filled.text) == expected


def test_blocks_that_name_their_ends_do_not_end_early():
    form, asked = edit_format("zeta-2.1"), region(FUNCTIONS, FUNCTIONS.index("w * h"))
    attempt = attempt_at(form, asked)
    assert attempt.show(heard(f"<|marker_1|>\n{CHANGED}<|marker_2|>\n", "")) is None


def test_lines_that_stand_twice_do_not_show_where_a_rewrite_is():
    text = "a = 0\n" + "b = 1\nc = 2\nd = 3\n" * 2 + "e = 4\n"
    changed = text.replace("a = 0", "a = 9")
    asked = region(text, 0)
    form = edit_format("zeta-2")
    attempt = attempt_at(form, asked)
    assert shown(attempt, "".join(changed.splitlines(keepends=True)[:4]), "") is None
    assert shown(attempt, "".join(changed.splitlines(keepends=True)[:8]), "").text == changed


LINES = st.lists(st.sampled_from(["a = 1", "b = 2", "", "    c", "}", "d()", "e()"]), min_size=1, max_size=12)


@given(LINES, LINES, st.data())
def test_rewrite_that_ends_early_keeps_the_old_rest(old, new, data):
    written = "\n".join([*new, *old])
    asked = EditPrompt(Prompt(()), "\n".join(old) + "\n", 0, len("\n".join(old)) + 1, lambda text: text)
    cut = written[: data.draw(st.integers(0, len(written)))]
    if (early := asked.rejoined(cut)) is not None:
        whole = cut.rpartition("\n")[0]
        assert early.startswith(whole)
        assert asked.window.endswith(early[len(whole) :])


EDIT = Edit("shapes.py", 0, "def area(w, height):", "def area(width, height):")
INCEPTION_PROMPT = Path(__file__).with_name("inception.txt").read_text("utf-8")


def test_inceptions_edit_prompt():
    attempt, _ = rewritten(
        INCEPTION_EDIT, "None", region(snippets=(Snippet("units.py", "INCH = 2.54\n"),), edits=(EDIT,))
    )
    assert attempt.ask.prompt == INCEPTION_PROMPT


@pytest.mark.parametrize(
    ("answer", "new"),
    [
        (f"```python\n{WINDOW.replace('volume', 'box')}```", WINDOW.replace("volume", "box")),
        (f"```\n{WINDOW.replace('volume', 'box')}\n```\n", WINDOW.replace("volume", "box")),
        ("None", WINDOW),
        ("```\nNone\n```", WINDOW),
        (f"```python\n{WINDOW}```", WINDOW),
    ],
)
def test_inception_answer_is_read_as_a_rewrite(answer, new):
    _, filled = rewritten(INCEPTION_EDIT, answer)
    assert filled.text == new
    assert filled.complete
    assert (filled.p_accept > 0) == (new != WINDOW)


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
def test_formats_can_all_be_asked(form):
    attempt, filled = rewritten(form, "")
    assert "volume" in attempt.ask.prompt
    assert filled.text == WINDOW
    assert filled.p_accept == 0


def test_rewrite_means_nothing_before_its_end_or_if_it_was_cut():
    begun = f"```\n{WINDOW.replace('volume', 'box')}"
    _, filled = rewritten(INCEPTION_EDIT, begun, end="")
    assert filled is None
    _, filled = rewritten(INCEPTION_EDIT, begun, end="length")
    assert (filled.text, filled.complete, filled.refused) == (WINDOW, False, "it was cut off before its end")


@pytest.mark.parametrize(
    ("form", "answer", "reason"),
    [
        (INCEPTION_EDIT, "```python\n```", "it is empty"),
        (INCEPTION_EDIT, "```\nx = 1<|fim_middle|>\n```", "it has marks of a format of prompts in it"),
        (CHAT_EDIT, "Sorry, I cannot do that.", "it is not the lines that were asked for, or only a part of them"),
        (edit_format("zeta-2.1"), WINDOW, "it does not name the blocks that it changes"),
        (edit_format("zeta-2"), "", "it is empty"),
    ],
    ids=lambda part: getattr(part, "name", None),
)
def test_refused_answer_says_why(form, answer, reason):
    _, filled = rewritten(form, answer)
    assert (filled.text, filled.complete, filled.p_accept, filled.refused) == (WINDOW, True, 0.0, reason)


# Secrets


def test_secrets_do_not_leave_the_machine_and_come_back():
    asked = region(SECRET + WINDOW, CURSOR + len(SECRET))
    attempt, filled = rewritten(INCEPTION_EDIT, f"```\n{masked(SECRET + WINDOW).replace('volume', 'box')}```", asked)
    assert "sk-1234" not in attempt.ask.prompt
    assert filled.text == SECRET + WINDOW.replace("volume", "box")


def test_rewrite_of_secret_is_none():
    asked = region(SECRET + WINDOW, CURSOR + len(SECRET))
    new = masked(SECRET + WINDOW).replace("API_KEY", "KEY").replace("volume", "box")
    _, filled = rewritten(INCEPTION_EDIT, f"```\n{new}```", asked)
    assert (filled.text, filled.p_accept) == (SECRET + WINDOW, 0.0)
    assert filled.refused == "it rewrites lines with a secret, which was not sent"


def masked(text: str) -> str:
    return asking.masked_regions(region(text, 0)).regions[0].old


def test_everything_is_masked():
    asked = region(
        snippets=(Snippet("k.py", SECRET),),
        edits=(Edit("k.py", 0, SECRET, SECRET, SECRET, SECRET, True),),
        diagnostics=(Diagnostic("k.py", 0, 0, SECRET),),
    )
    assert "sk-" not in repr(asking.masked_regions(asked))


def test_private_key_is_masked_around_an_edit():
    line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\n"
    asked = asking.masked_regions(region(edits=(Edit("id.pem", 9, "a\n", "b\n", 3 * line, line + "d = 1\n"),)))
    assert asked.edits[0].above == 3 * ("*" * 52 + "\n")
    assert asked.edits[0].below == "*" * 52 + "\nd = 1\n"


def test_answer_that_copies_mask_is_none():
    asked = asking.masked_gap(gap(SECRET + 'KEY = "'))
    mistral = protocol_named("mistral")
    (attempt, *_) = asking.filling_unprompted(mistral, asked, hides=True, address="", budget=2048)
    assert attempt.show(heard("***********")).p_accept == 0
    assert attempt.show(heard("other")).p_accept > 0


def test_secret_around_the_cursor_is_masked_on_both_sides():
    before, _, after = SECRET.partition("7890")
    asked = asking.masked_gap(gap(before, after))
    assert (len(asked.before), len(asked.after)) == (len(before), len(after))
    assert "sk-" not in asked.before
    assert "abcdef" not in asked.after


# Prompts that the server puts together


def test_files_stand_before_the_prompt_where_the_model_was_trained_so():
    asked = gap(WINDOW[:CURSOR], WINDOW[CURSOR:], snippets=(Snippet("units.py", "INCH = 2.54"),))
    mistral = protocol_named("mistral")
    (attempt,) = asking.filling_unprompted(mistral, asked, hides=False, address="there", budget=2048)
    assert attempt.ask.prompt == f"+++++ units.py\nINCH = 2.54\n\n+++++ shapes.py\n{WINDOW[:CURSOR]}"
    assert attempt.ask.suffix == WINDOW[CURSOR:]
    assert attempt.sent.endswith("of shapes.py and 1 snippet to there")


def test_long_windows_are_cut_at_lines():
    text = "".join(f"line {number}\n" for number in range(2000))
    at = text.index("line 1000\n")
    deepseek, asked = protocol_named("deepseek"), gap(text[:at], text[at:])
    (attempt,) = asking.filling_unprompted(deepseek, asked, hides=False, address="", budget=512)
    assert len(attempt.ask.prompt) + len(attempt.ask.suffix) < 512 * 3
    assert attempt.ask.prompt.startswith("line ")
    assert attempt.ask.prompt.endswith("line 999\n")
    assert attempt.ask.suffix.startswith("line 1000\n")
    assert attempt.ask.suffix.endswith("\n")


def test_format_refuses_its_own_marks():
    with pytest.raises(EngineError, match="code_to_edit"):
        rewritten(INCEPTION_EDIT, "", region(WINDOW + "# <|code_to_edit|>\n"))
    with pytest.raises(EngineError, match="nothing was sent"):
        rewritten(edit_format("sweep"), "", region(WINDOW + "# <|endoftext|>\n"))


def test_answer_is_over_where_nothing_more_belongs_to_it_although_only_its_start_is_shown():
    asked = gap("def area(w, h):\n    return", "\n", block=True, bar=0.5)
    llama = protocol_named("llama-infill")
    (attempt,) = asking.filling_unprompted(llama, asked, hides=False, address="", budget=8192)
    stream = StreamedText()
    stream.add(Event(" w", log_probs=(-0.05,)))
    attempt.show(stream)
    assert not stream.is_enough
    stream.add(Event(" * h", log_probs=(-3.0,)))
    stream.add(Event("\n\n\ndef volume(", log_probs=(-0.05,)))
    draft = attempt.show(stream)
    assert (draft.text, draft.complete, stream.is_enough) == (" w", False, True)
