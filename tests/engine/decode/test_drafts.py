"""Drafts from texts that are there: aligned anew after every kind of change, copied from the longest match."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercury_engine.api import Snippet
from mercury_engine.decode.drafts import DraftSource, PromptLookup, tokens_before
from mercury_engine.tokens.layout import freeze, lay_out
from mercury_engine.tokens.vocabulary import EOM
from tests.engine.tiny import BUDGET, TOKENIZER, gap


def rest(text, said, **options):
    """What a text proposes, one letter per token, after `said`."""
    source = DraftSource("old", [ord(letter) for letter in text], **options)
    for letter in said:
        source.advance(ord(letter))
    return source.proposal()


def check(text, said, expected):
    assert "".join(map(chr, rest(text, said).ids)) == expected


def test_text_continues_behind_what_was_replaced_added_or_removed():
    check("a+b*c", "", "a+b*c")
    check("a+b*c", "a+", "b*c")
    check("a+b*c", "a+x", "*c")
    check("a+b*c", "a+xyz+b", "*c")
    check("def f(a):", "def f(self, a", "):")
    check("a+b*c", "a*", "c")
    check("ab", "ab", "")
    check("ab", "abcd", "")


def test_evidence_grows_with_agreement_and_starts_over_after_a_change():
    levels = [level for _, level in rest("abcdefghij", "").evidence]
    assert levels == [0, 1, 1, 2, 2, 2, 2, 3, 3, 3]
    assert rest("abcdefghij", "abcdefg").evidence[0] == ("old", 3)
    assert rest("abcdefghij", "abcdX").evidence[0] == ("old", 0)


def test_canvas_knows_probabilities_until_the_first_deviation():
    fresh = rest("abc", "a", probabilities=[0.9, 0.2, 0.99])
    assert fresh.probabilities == (0.2, 0.99)
    assert fresh.evidence == (("old", 2), ("old", 9))
    stale = rest("abc", "x", probabilities=[0.9, 0.2, 0.99])
    assert stale.probabilities == ()
    assert stale.evidence[0] == ("stale", 0)


@given(st.text("abc", max_size=12), st.text("abc", max_size=12))
def test_whatever_is_said_the_rest_is_an_end_of_the_text(text, said):
    left = "".join(map(chr, rest(text, said).ids))
    assert text.endswith(left)
    if text.startswith(said):
        assert said + left == text


def row_of(marked, **options):
    asked = gap(marked, **options)
    return lay_out(TOKENIZER, asked, freeze(TOKENIZER, asked, BUDGET), BUDGET)


def copied(marked, said="", line=True, **options):
    row = row_of(marked, **options)
    lookup = PromptLookup.of(TOKENIZER, row, line=line)
    for token in TOKENIZER.encode(said):
        lookup.advance(token)
    proposal = lookup.proposal(row.part.encode() if not said else b"")
    assert len(proposal.evidence) == len(proposal.ids)
    return TOKENIZER.decode(proposal.ids), EOM in proposal.ids


def test_longest_match_is_copied_to_the_end_of_its_line_or_block():
    assert copied("total = price * count\nx\ntotal = pri$0\n") == (" price * count", True)
    marked = "if ready: launch(rocket)\nif steady: wait(rocket)\nif ready: $0\n"
    assert copied(marked)[0].strip() == "launch(rocket)"
    assert copied("a.width = 1\na.height = 2\na.wid$0\n")[0] == ".width = 1"
    assert copied("a.width = 1\na.xyz$0\n") == ("", False)
    assert copied("f(alpha, beta)\n\nx = $0\n", said="f(alpha,")[0] == " beta)"
    text, ended = copied("for a in b:\n    c()\nd()\nfor a in b:$0\n", line=False, block=True)
    assert text.startswith(("\n    c()\nd()\n", ":\n    c()\nd()"))
    assert not ended
    assert copied("$0") == ("", False)


def test_snippets_that_the_row_had_no_room_for_are_copied_too():
    related = Snippet("x.py", "y = 1\n" * 400), Snippet("net.py", "socket.settimeout(3)\n")
    assert copied("socket.set$0", snippets=related)[0] == ".settimeout(3)"
    assert copied("socket.set$0", snippets=related[:1])[0] == ""


@pytest.mark.parametrize(
    ("marked", "expected"),
    [("a = 1\nb = c$0\nd\n", "a = 1\nb ="), ("a = 1\n$0\n", "a = 1\n")],
)
def test_tokens_before_a_gap_spell_the_text_before_it(marked, expected):
    assert TOKENIZER.decode(tokens_before(row_of(marked))) == expected
