"""The trained vocabulary is one that the engine accepts, loses nothing, and learns the text's indentation."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_engine.tokens.vocabulary import SPECIALS
from mercury_training.corpus.tokenizer_training import train_tokenizer

CODE = "def area(width, height):\n        if width > 12:\n            return width * height\n"


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory) -> Tokenizer:
    return train_tokenizer([CODE] * 20, tmp_path_factory.mktemp("tokenizer") / "tokenizer.json", 400)


def test_reserved_ids_come_first_and_runs_of_blanks_are_tokens(tokenizer):
    assert tuple(tokenizer.symbol(token) for token in range(64)) == SPECIALS
    assert tokenizer.vocabulary <= 400
    assert b" " * 7 in tokenizer.token_bytes
    assert b" width" in tokenizer.token_bytes
    assert b"12" not in tokenizer.token_bytes


@given(st.text(max_size=60))
@settings(max_examples=60)
def test_any_text_comes_back(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == text
