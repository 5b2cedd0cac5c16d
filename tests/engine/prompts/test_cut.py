"""An answer is cut at one line, or at one statement with its block, and repeats nothing that follows."""

import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from mercury_engine.api import Gap
from mercury_engine.prompts.cut import cut
from tests.cases import each_case


def gap(before, after, *, block=True, language="python"):
    return Gap(session="s", path="a.py", language=language, before=before, after=after, block=block)


def check(text, answer, shown, complete=True, *, finished=False):
    before, _, after = text.partition("$0")
    assert cut(gap(before, after, block=False), answer, finished=finished) == (shown, complete)


@each_case(Path(__file__).with_name("cut.txt"))
def test_answer_is_cut(case):
    """`⟦«shown»and the rest⟧` is what the model answers."""
    language, mode, *states = case.key.split()
    before, shown, rest, after = re.fullmatch("(.*)⟦«(.*)»(.*)⟧(.*)", case.drawn, re.DOTALL).groups()
    finished, complete = "finished" in states, "complete" in states
    asked = gap(before, after, block=mode == "block", language=language)
    assert cut(asked, shown + rest, finished=finished) == (shown, complete)


def test_answer_that_the_model_has_not_ended_is_not_complete():
    check("x = $0\n", "1", "1", True, finished=True)
    check("print($0)\n", "x)", "x)", False)


@given(st.text("a ({})[]\n:x", max_size=60), st.text("a ({})[]\n:x", max_size=60), st.text("a )}\nx", max_size=20))
def test_shown_text_is_the_start_of_the_answer(before, answer, after):
    for block in (False, True):
        for finished in (False, True):
            shown, _ = cut(gap(before, after, block=block), answer, finished=finished)
            assert answer.startswith(shown)


@given(st.text("ab (){}\n:", max_size=60))
def test_complete_block_stays_the_same_however_answer_goes_on(answer):
    shown = [cut(gap("", ""), answer[:n], finished=False) for n in range(len(answer) + 1)]
    done = [text for text, complete in shown if complete]
    assert len({*done}) <= 1
