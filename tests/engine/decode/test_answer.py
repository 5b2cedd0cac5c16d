"""An answer ends where it should, and what is shown is whole words of a text that is sure enough."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mercury_engine.decode.answer import GapAnswer, Presentation
from mercury_engine.decode.choice import Choice, ids_of
from mercury_engine.decode.confidence import Calibration
from mercury_engine.decode.decoding import DecodingOptions, Forced
from mercury_engine.tokens.vocabulary import EOM
from tests.engine.tiny import TOKENIZER


def answer(text="", *, block=False, part="", limit=64, ended=False):
    found = GapAnswer(TOKENIZER, part, limit, block=block, margin=0)
    for token in [*TOKENIZER.encode(part + text), *([EOM] if ended else [])]:
        if not found.done:
            found.add(Choice(token, 0.9))
    return found


def shown(text, probability=0.99, *, bar=0.3, asked=0.0, ended=True, least=0, probabilities=None, **options):
    found = answer(text, ended=ended, **options)
    sure = probabilities or [probability] * len(found.ids)
    choices, options = [*map(Choice, found.ids, sure)], DecodingOptions(forced=Forced(found.ids[:least]))
    return Presentation(TOKENIZER, Calibration(), bar).show(found, choices, options, asked)


def test_answer_ends_at_its_end_its_line_or_its_limit():
    assert answer("a = 1", ended=True).complete
    assert answer("a = 1\nb").ids == TOKENIZER.encode("a = 1\n")
    assert answer("a\nb", block=True, ended=True).complete
    cut = answer("a = b + c", limit=3)
    assert (cut.done, cut.complete, len(cut.ids)) == (True, False, 3)


def test_begun_word_is_spelled_and_not_shown():
    found = shown("th = 1", part="wid")
    assert (found.text, found.complete) == ("th = 1", True)


@pytest.mark.parametrize(
    ("text", "settled"),
    [
        ("self.width", "self"),
        ("print(a", "print("),
        ("print(a)", "print(a)"),
        ("return ", "return "),
        ("wid", ""),
        ("ж", ""),
    ],
)
def test_last_word_is_settled_once_something_follows(text, settled):
    presentation = Presentation(TOKENIZER, Calibration(), 0.3)
    assert TOKENIZER.decode(ids_of(presentation.settled(answer(text)))) == settled
    assert TOKENIZER.decode(ids_of(presentation.settled(answer(text, ended=True)))[:-1]) == text


def test_line_is_shown_without_its_end():
    assert shown("print(a)\n", ended=False).text == "print(a)"
    assert shown("print(a)\r\n", ended=False).text == "print(a)"
    assert shown("print(a)\n", block=True).text == "print(a)\n"


def test_confidence_covers_every_token_but_the_end():
    found = shown("self.width")
    assert len(found.confidence) == len(TOKENIZER.encode("self.width"))


def test_answer_is_no_likelier_than_each_of_its_tokens():
    ids = TOKENIZER.encode("print(a)")
    found = shown("print(a)", probabilities=[0.99, 0.6, *[0.99] * (len(ids) - 1)])
    assert (found.text, found.complete) == ("print(a)", True)
    assert found.p_accept <= 0.6
    assert shown("print(a)", probabilities=[*[0.99] * len(ids), 0.6]).p_accept > 0.6, "its end is no part of it"


def test_unlikely_answer_is_cut_to_its_confident_words():
    ids = TOKENIZER.encode("self.width = xyz")
    sure = [0.99] * (len(ids) - 3) + [0.05] * 3 + [0.9]
    found = shown("self.width = xyz", probabilities=sure)
    assert found.text.rstrip() == "self.width ="
    assert not found.complete
    assert found.p_accept > 0.3
    assert shown("self.width = xyz", probabilities=sure, bar=0.0).text == "self.width = xyz"


def test_beginning_that_saves_most_keystrokes_on_average_is_shown():
    ids = TOKENIZER.encode("self.width = xyz")
    behind = len(ids) - len(TOKENIZER.encode("self.width"))
    unsure = [0.98] * (len(ids) - behind) + [0.8] * behind + [0.9]
    assert shown("self.width = xyz", probabilities=unsure, bar=0.1).text == "self.width = xyz"
    assert shown("self.width = xyz", probabilities=unsure, bar=0.1, asked=0.75).text == "self.width"
    unsure = [0.95] * (len(ids) - behind) + [0.3] * behind + [0.9]
    assert shown("self.width = xyz", probabilities=unsure, bar=0.1).text == "self.width"


def test_cut_never_splits_word():
    ids = TOKENIZER.encode("a.xyzzy")
    sure = [0.99] * (len(ids) - 1) + [0.01, 0.9]
    assert shown("a.xyzzy", probabilities=sure).text == "a."


def test_alternative_is_shown_at_least_until_it_differs():
    ids = TOKENIZER.encode("a.xyzzy")
    assert len(shown("a.xyzzy", probability=0.05, least=2).confidence) == 2
    assert len(shown("a.xyzzy", probability=0.05, least=len(ids) + 1).confidence) == len(ids)


def test_nothing_is_nothing_to_accept():
    found = shown("")
    assert (found.text, found.p_accept, found.complete) == ("", 0.0, True)


def test_half_a_character_is_not_shown():
    first_byte = TOKENIZER.byte_ids["é".encode()[0]]
    found = answer("a")
    found.add(Choice(first_byte, 0.9))
    presentation = Presentation(TOKENIZER, Calibration(), 0.0)
    assert presentation.show(found, found.choices).text == "a"


def inserted(text, margin):
    found = GapAnswer(TOKENIZER, "", 64, block=True, margin=margin)
    for token in TOKENIZER.encode(text):
        if not found.done:
            found.add(Choice(token, 0.9))
    return found


def test_block_is_complete_where_other_code_begins():
    found = inserted("return a\n\ndef other():\n    pass\n", 4)
    assert found.complete
    assert len(found.ids) < len(TOKENIZER.encode("return a\n\ndef other():\n"))
    filled = Presentation(TOKENIZER, Calibration(), 0.0).show(found, found.choices)
    assert (filled.text, filled.complete) == ("return a", True)
    assert len(filled.confidence) == len(TOKENIZER.encode("return a"))
    assert not inserted("return a\n\n    b\n", 4).done


def test_going_round_in_circles_is_no_end_but_nothing_more_is_decoded():
    found = inserted("    use(one, two)\n" * 9, 4)
    assert (found.done, found.circles, found.complete) == (True, True, False)
    filled = Presentation(TOKENIZER, Calibration(), 0.0).show(found, found.choices)
    assert (filled.text, filled.complete) == ("    use(one, two)\n", False)


PIECES = st.sampled_from(["self", ".width", " = ", "xyzzy", "(a)", "\n", "\n\n", "    ", "b\n    ", "\ndef f"])
TEXTS = st.lists(PIECES, min_size=1, max_size=6).map("".join)


@given(TEXTS, st.lists(st.floats(0.2, 1.0), min_size=40, max_size=40), st.sampled_from([0.5, 0.7]), st.booleans())
@example(" = \nself", [1.0, 0.25, *[1.0] * 38], 0.5, False)
def test_answer_that_is_given_up_would_show_nothing_more(text, probabilities, bar, ended):
    presentation = Presentation(TOKENIZER, Calibration(), 0.45)
    found = GapAnswer(TOKENIZER, "", 64, block=True, margin=4)
    given_up = None
    for token, probability in zip([*TOKENIZER.encode(text), *([EOM] if ended else [])], probabilities, strict=False):
        if found.done:
            break
        found.add(Choice(token, probability))
        if given_up is None and not presentation.may_show(found, bar):
            given_up = presentation.show(found, found.choices, bar=bar)
    shown = presentation.show(found, found.choices, bar=bar)
    if given_up is not None and (given_up.p_accept >= bar or shown.p_accept >= bar):
        assert shown == given_up


def test_answer_is_not_given_up_at_blanks_that_may_be_outside_of_it():
    presentation = Presentation(TOKENIZER, Calibration(), 0.45)
    found = GapAnswer(TOKENIZER, "", 64, block=True, margin=4)
    for token in TOKENIZER.encode("self.width"):
        found.add(Choice(token, 0.99))
    found.add(Choice(*TOKENIZER.encode("\n"), 0.05))
    assert presentation.may_show(found, 0.7)
    found.add(Choice(*TOKENIZER.encode("("), 0.9))
    assert not presentation.may_show(found, 0.7)
