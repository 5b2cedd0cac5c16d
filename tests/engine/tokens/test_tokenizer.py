"""The tokenizer: any text survives, lines are independent, a begun word constrains exactly its bytes."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_engine.api import EngineError
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_engine.tokens.vocabulary import MAXIMUM_PART, SPECIALS

FILE = Path(__file__).parents[1] / "golden" / "tokenizer.json"
TOKENIZER = Tokenizer.load(FILE)

texts = st.one_of(
    st.text(max_size=60),
    st.text(alphabet="ab1_.( \t\r\n'sé日\x0c\u2028", max_size=60),
)


@settings(max_examples=300)
@given(texts)
def test_any_text_survives(text):
    ids = TOKENIZER.encode(text)
    assert TOKENIZER.decode(ids) == text
    assert all(len(SPECIALS) <= token < TOKENIZER.vocabulary for token in ids)


@settings(max_examples=300)
@given(texts, texts)
def test_finished_line_is_encoded_the_same_whatever_follows(first, second):
    assert TOKENIZER.encode(f"{first}\n{second}") == [
        *TOKENIZER.encode(f"{first}\n"),
        *TOKENIZER.encode(second),
    ]


@settings(max_examples=300)
@given(texts)
def test_lines_and_the_whole_text_agree(text):
    """What the cache of lines relies on: the pattern itself never reaches over a line's end."""
    whole = TOKENIZER._rust.encode(text, add_special_tokens=False).ids
    assert TOKENIZER.encode(text) == whole


def test_special_tokens_in_a_text_are_text():
    text = "".join(SPECIALS)
    assert min(TOKENIZER.encode(text)) >= len(SPECIALS)
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text


def test_lone_surrogate_becomes_one_character():
    assert TOKENIZER.decode(TOKENIZER.encode("a\ud800b")) == "a?b"
    assert TOKENIZER.split_part("a.\ud800")[1] == ".?"


def test_special_tokens_have_no_bytes():
    assert TOKENIZER.decode([0, *TOKENIZER.encode("a"), 3]) == "a"


def check_part(head, stable, part):
    ids, found = TOKENIZER.split_part(head)
    assert (TOKENIZER.decode(ids), found) == (stable, part)


def test_last_pre_token_is_left_to_canvas():
    check_part("", "", "")
    check_part("x", "", "x")
    check_part("return sel", "return", " sel")
    check_part("return self.", "return self", ".")
    check_part("return self.na", "return self", ".na")
    check_part("x = 12", "x = 1", "2")
    check_part("f(", "f", "(")
    check_part("f(  ", "f( ", " ")
    check_part("        ", "       ", " ")
    check_part("\t\t", "\t", "\t")
    check_part("größ", "", "größ")


def test_long_word_gives_up_its_beginning():
    check_part("x" * 40, "x" * (40 - MAXIMUM_PART), "x" * MAXIMUM_PART)
    check_part("é" * 17, "é", "é" * 16)


@pytest.mark.parametrize("line", ["x" * 100_000, "(" * 100_000, "é" * 50_000])
def test_huge_line_keeps_nobody_waiting(line):
    """Steps that grow with the square of its length would take minutes."""
    stable, part = TOKENIZER.split_part(line)
    assert TOKENIZER.decode(stable) + part == line


heads = st.text(alphabet="ab1_.( \t'sé日\"=", max_size=30)


@settings(max_examples=300)
@given(heads, st.sampled_from("ab1_.( \t'sé日\"="))
def test_next_character_changes_only_the_last_pre_token(head, typed):
    stable, part = TOKENIZER.split_part(head)
    assert TOKENIZER.decode(stable) + part == head
    longer, _ = TOKENIZER.split_part(head + typed)
    if not part.isspace() and len(part.encode()) < MAXIMUM_PART - 3:
        assert longer[: len(stable)] == stable


def test_part_is_spelled_byte_by_byte():
    assert TOKENIZER.decode_bytes(TOKENIZER.spell("aé")) == "aé".encode()
    assert len(TOKENIZER.spell("aé")) == 3


def slow_allowed(typed):
    return [
        token
        for token, spelling in enumerate(TOKENIZER.token_bytes)
        if spelling and (spelling.startswith(typed) or typed.startswith(spelling))
    ]


@settings(max_examples=200)
@given(st.one_of(st.text(alphabet="self. returnwidth", min_size=1, max_size=12), st.text(min_size=1, max_size=6)))
def test_allowed_tokens_are_those_that_fit_the_typed_bytes(text):
    typed = text.encode()
    assert TOKENIZER.allowed(typed).tolist() == slow_allowed(typed)


@settings(max_examples=200)
@given(st.text(alphabet="self. returnwidthé日", min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_any_walk_through_the_constraint_covers_exactly_the_typed_bytes(text, random):
    typed, taken = text.encode(), []
    while typed:
        token = random.choice(TOKENIZER.allowed(typed).tolist())
        typed = TOKENIZER.remaining(typed, token)
        taken.append(token)
    assert TOKENIZER.decode_bytes(taken).startswith(text.encode())
    assert not TOKENIZER.decode_bytes(taken[:-1]).startswith(text.encode())


def test_canonical_spelling_is_always_allowed():
    typed = b" self.wid"
    for token in TOKENIZER.encode(" self.width"):
        if typed:
            assert token in TOKENIZER.allowed(typed)
            typed = TOKENIZER.remaining(typed, token)


def check_refused(change, message):
    data = json.loads(FILE.read_text(encoding="utf-8"))
    change(data)
    with pytest.raises(EngineError, match=message):
        Tokenizer(json.dumps(data).encode(), "x.json")


def test_file_of_another_layout_is_refused():
    def swap(data):
        data["added_tokens"][2]["content"] = "<blank>"
        data["model"]["vocab"]["<blank>"] = data["model"]["vocab"].pop("<mask>")

    check_refused(swap, r"x.json: id 2 is '<blank>', the layout has '<mask>'")


def test_file_that_changes_text_is_refused():
    check_refused(lambda data: data.update(normalizer={"type": "NFC"}), "a normalizer changes the text")


def test_file_that_splits_otherwise_is_refused():
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    check_refused(lambda data: data.update(pre_tokenizer=byte_level), "does not split lines")
    check_refused(lambda data: data.update(pre_tokenizer=None), "does not split lines")


def test_file_with_additions_is_refused():
    extra = {"id": TOKENIZER.vocabulary, "content": "<extra token>", "special": True, "normalized": False}
    flags = {"single_word": False, "lstrip": False, "rstrip": False}
    check_refused(lambda data: data["added_tokens"].append(extra | flags), "'<extra token>', not spelled in bytes")


def test_file_without_alphabet_is_refused():
    data = json.loads(FILE.read_text(encoding="utf-8"))
    vocabulary = dict(zip(SPECIALS, range(len(SPECIALS)), strict=True))
    data["model"] |= {"vocab": vocabulary, "merges": []}
    with pytest.raises(EngineError, match="256 of 256 byte symbols are missing"):
        Tokenizer(json.dumps(data).encode())


def test_unreadable_files_are_named(tmp_path):
    with pytest.raises(EngineError, match=r"missing\.json: cannot read"):
        Tokenizer.load(tmp_path / "missing.json")
    (tmp_path / "broken.json").write_bytes(b"{\xff")
    with pytest.raises(EngineError, match=r"broken\.json: not a tokenizer file"):
        Tokenizer.load(tmp_path / "broken.json")
