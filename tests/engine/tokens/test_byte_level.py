"""A tokenizer made of its parts splits texts as the one that was published whole."""

import json

import pytest
from tokenizers import pre_tokenizers

from mercury_engine.api import EngineError
from mercury_engine.tokens.byte_level import SPLITS, byte_level, from_files

LETTERS = {letter: number for number, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}


def pieces(split, text):
    tokenizer = byte_level(LETTERS, [], [], split)
    return [piece for piece, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text)]


@pytest.mark.parametrize(
    ("split", "text", "expected"),
    [
        ("qwen2", "x = 123\n\n  it's", ["x", "Ġ=", "Ġ", "1", "2", "3", "ĊĊ", "Ġ", "Ġit", "'s"]),
        ("llama-bpe", "x=12345", ["x", "=", "123", "45"]),
        ("starcoder", "if x12: y", ["if", "Ġx", "1", "2", ":", "Ġy"]),
        ("seed-coder", "if (a) {\n  12", ["if", "Ġ(", "a", ")", "Ġ{", "Ċ", "Ġ", "Ġ", "1", "2"]),
        ("mellum", "a 12  b", ["a", "Ġ12", "Ġ", "Ġb"]),
        ("deepseek-coder", "a b,\n12", ["a", "Ġb", ",", "Ċ", "1", "2"]),
        ("gpt-2", "a 12  b", ["a", "Ġ12", "Ġ", "Ġb"]),
    ],
)
def test_texts_are_split_as_the_name_says(split, text, expected):
    assert pieces(split, text) == expected


@pytest.mark.parametrize("split", SPLITS)
def test_encoding_is_lossless(split):
    text = "def é(x):\r\n\treturn '中文' + \"it's\"  # 1234\n"
    tokenizer = byte_level(LETTERS, [], ["<|end|>"], split)
    assert tokenizer.decode(tokenizer.encode(text).ids) == text
    assert tokenizer.encode("a<|end|>").ids[-1] == len(LETTERS)


@pytest.mark.parametrize(("split", "expected"), [("llama-bpe", ["abc"]), ("qwen2", ["ab", "c"])])
def test_whole_word_needs_no_merges_in_llama_3(split, expected):
    tokenizer = byte_level(
        LETTERS | {"ab": 300, "bc": 301, "abc": 302}, [("a", "b"), ("b", "c"), ("a", "bc")], [], split
    )
    assert tokenizer.encode("abc").tokens == expected


def test_unknown_split_is_refused():
    with pytest.raises(EngineError, match="splits texts by 'tekken'"):
        byte_level(LETTERS, [], [], "tekken")


def test_parts_that_do_not_fit_are_refused():
    with pytest.raises(EngineError, match="not in its vocabulary"):
        byte_level({"a": 0, "b": 1}, [("a", "b")], [], "qwen2")


def test_tokenizer_is_read_from_the_files_of_a_folder(tmp_path):
    (tmp_path / "vocab.json").write_text(json.dumps({"a": 0, "b": 1, "ab": 2}))
    (tmp_path / "merges.txt").write_text("#version: 0.2\na b\n\n")
    (tmp_path / "tokenizer_config.json").write_text(
        json.dumps({"added_tokens_decoder": {"3": {"content": "<|mask|>"}}})
    )
    tokenizer = from_files(tmp_path)
    assert tokenizer.encode("ab<|mask|>b").ids == [2, 3, 1]


@pytest.mark.parametrize("missing", ["vocab.json", "merges.txt", "tokenizer_config.json"])
def test_folder_without_its_parts_is_named(tmp_path, missing):
    for name in ("vocab.json", "merges.txt", "tokenizer_config.json"):
        (tmp_path / name).write_text("{}")
    (tmp_path / missing).unlink()
    with pytest.raises(EngineError, match=missing if missing != "tokenizer_config.json" else "is no substitute"):
        from_files(tmp_path)
