"""Pieces and their scores become a tokenizer: the best whole is merged first, and bytes spell what no piece does."""

import json

import pytest

from mercury_engine.api import EngineError
from mercury_engine.tokens import sentencepiece
from mercury_engine.tokens.sentencepiece import of_pieces
from tests.engine.tokens.pretrained_files import load

BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
WORDS = {"▁": -5.0, "a": -6.0, "b": -7.0, "c": -8.0, "ab": -2.0, "bc": -1.0, "▁a": -3.0, "▁▁": -4.0, "abc": -9.0}


def made():
    return of_pieces(["<unk>", "<s>", *BYTES, *WORDS], [0.0] * 258 + list(WORDS.values()), ["<s>"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("abc", ["abc"]),
        ("ab", ["ab"]),
        ("aab bc", ["a", "ab", "▁", "bc"]),
        ("  a", ["▁", "▁a"]),
        ("a\né", ["a", "<0x0A>", "<0xC3>", "<0xA9>"]),
        ("", []),
    ],
)
def test_best_whole_is_merged_first(text, expected):
    assert made().encode(text).tokens == expected


def test_tokenizer_is_read_like_a_published_one():
    own = load(json.loads(made().to_str()))
    assert own.decode(own.encode("  abc <s>\né")) == "  abc <s>\né"
    assert own.added == {"<s>"}


def test_pieces_that_fit_together_in_too_many_ways_are_refused(monkeypatch):
    monkeypatch.setattr(sentencepiece, "MOST_MERGES", 2)
    with pytest.raises(EngineError, match="in more than 2 ways"):
        made()
