"""Other people's tokenizers: any text survives, names of special tokens are text, parts are encoded as in the whole."""

import unicodedata
from copy import deepcopy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_engine.api import EngineError
from mercury_engine.prompts.pieces import Mark, Prompt, Special
from mercury_engine.tokens.pretrained import PretrainedTokenizer
from mercury_engine.tokens.vocabulary import MAXIMUM_PART
from tests.engine.tokens.pretrained_files import FIM, LAYOUTS, load, spec, tokenizer

each_layout = pytest.mark.parametrize("layout", LAYOUTS)

SIGNS = "self a 1 é ); ]) // = 's . _"
PIECES = st.sampled_from(["\n", "\n\n", "\r\n", "    ", " ", "\t", *SIGNS.split(), *FIM[:2]])
texts = st.text(max_size=40) | st.lists(PIECES).map("".join)


@each_layout
@settings(max_examples=60)
@given(text=texts)
def test_any_text_survives(layout, text):
    ids = tokenizer(layout).encode(text)
    expected = unicodedata.normalize("NFC", text) if layout == "qwen" else text
    assert tokenizer(layout).decode(ids) == expected


@each_layout
@settings(max_examples=120)
@given(text=texts)
def test_parts_are_encoded_as_within_the_whole(layout, text):
    """What the cache of parts relies on."""
    assert tokenizer(layout).encode(text) == list(tokenizer(layout)._encode_part(text))


def test_layouts_are_cut_somewhere():
    code = "def f(a):\n    return a\n\ndef g():\n    pass\n"
    cuts = {name: len(tokenizer(name)._boundary.split(code)) for name in LAYOUTS}
    assert cuts == dict.fromkeys(LAYOUTS, 3) | dict.fromkeys(("deepseek-coder", "llama"), 4)


@each_layout
@given(head=texts)
def test_split_text_is_whole(layout, head):
    kept, part = tokenizer(layout).split(head)
    assert kept + part == head
    assert len(part.encode()) <= MAXIMUM_PART
    assert "\n" not in part


@each_layout
@pytest.mark.parametrize(
    ("head", "part"),
    [("return self.wid", "wid"), ("x = se", " se"), ("f(a, ", " "), ("    ", " "), ("", ""), ("a" * 40, "a" * 32)],
)
def test_last_pre_token_is_taken_back(layout, head, part):
    assert tokenizer(layout).split(head)[1].lstrip(".") == part


@each_layout
@given(typed=st.sampled_from(["self", "se", " self", "é", "\t", "    x"]))
def test_begun_word_constrains_exactly_its_bytes(layout, typed):
    own, wanted = tokenizer(layout), typed.encode()
    expected = [
        token
        for token, spelled in enumerate(own.token_bytes)
        if spelled and (spelled.startswith(wanted) or wanted.startswith(spelled))
    ]
    assert own.allowed(wanted).tolist() == expected


def test_names_of_special_tokens_are_text():
    own = tokenizer("qwen")
    assert own.added == set(FIM)
    assert own.decode(own.encode("".join(FIM))) == "".join(FIM)
    assert own.decode([own.special("<|fim_prefix|>")]) == ""


def test_prompt_is_its_pieces_and_neighbouring_texts_are_one():
    own = tokenizer("qwen")
    prompt = Prompt((Special("<|fim_prefix|>"), "x = se", "lf", Special("<|fim_suffix|>"), "<|fim_middle|>"))
    assert own.encode_prompt(prompt) == [
        own.special("<|fim_prefix|>"),
        *own.encode("x = self"),
        own.special("<|fim_suffix|>"),
        *own.encode("<|fim_middle|>"),
    ]


def test_mark_is_a_token_where_model_has_it():
    prompt = Prompt(("a", Mark("<|marker_1|>"), "b"))
    without = tokenizer("qwen")
    assert without.encode_prompt(prompt) == without.encode("a<|marker_1|>b")
    file = deepcopy(spec("qwen"))
    number = 1 + max(token["id"] for token in file["added_tokens"])
    file["added_tokens"].append({**file["added_tokens"][-1], "content": "<|marker_1|>", "id": number})
    having = load(file)
    assert having.encode_prompt(prompt) == [*having.encode("a"), number, *having.encode("b")]
    assert having.decode([number]) == "<|marker_1|>"


def test_missing_token_names_remedy():
    with pytest.raises(EngineError, match=r"no token '<PRE>': this file splits it into \d tokens; .*--prompt"):
        tokenizer("qwen").special("<PRE>")


def test_runs_of_blanks_may_be_added_tokens():
    data = deepcopy(spec("starcoder"))
    content = " " * 12
    token = {"id": 500, "content": content, "special": False, "normalized": False}
    data["added_tokens"].append(token | dict.fromkeys(("single_word", "lstrip", "rstrip"), False))
    own = load(data)
    assert content not in own.added
    assert own.decode(own.encode(f"a\n{content}b")) == f"a\n{content}b"


def check_refused(change, message):
    data = deepcopy(spec("qwen"))
    change(data)
    with pytest.raises(EngineError, match=message):
        load(data)


def test_other_tokenizers_are_refused_by_name():
    check_refused(lambda data: data["model"].update(type="Unigram"), "Unigram")
    check_refused(lambda data: data.update(pre_tokenizer=None), "byte")
    check_refused(lambda data: data.pop("model"), "not a tokenizer file")
    check_refused(lambda data: data["model"].update(vocab=3), "not a tokenizer file")


def test_missing_file_is_named(tmp_path):
    with pytest.raises(EngineError, match=r"tokenizer\.json: cannot read"):
        PretrainedTokenizer(tmp_path / "tokenizer.json")


def sequence(*steps):
    return {"type": "Sequence", "normalizers": steps}


def replace(content, **pattern):
    return {"type": "Replace", "pattern": pattern, "content": content}


@pytest.mark.parametrize(
    ("normalizer", "said"),
    [
        (sequence(*[{"type": "NFC"}] * 65), "in 6[6-9] steps"),
        (sequence(*[sequence({"type": "NFC"})] * 40), "in 8[0-9] steps"),
        (sequence(*[replace("aa", String="a")] * 11), "8,192 times as long"),
        (sequence(*[{"type": "ByteLevel"}] * 6), "16,384 times as long"),
        (replace("a" * 2000, Regex=""), "8,004 times as long"),
        (replace("a", Regex="a" * 70_000), "bytes, and the limit is 65,536"),
    ],
)
def test_steps_that_would_take_long_for_every_text_are_refused(normalizer, said):
    with pytest.raises(EngineError, match=said):
        load({**spec("qwen"), "normalizer": normalizer})


def test_panic_of_library_is_reported_as_unusable_file():
    slow = {"type": "Split", "pattern": {"Regex": "a?" * 500 + "x"}, "behavior": "Isolated", "invert": False}
    steps = {"type": "Sequence", "pretokenizers": [slow, {"type": "ByteLevel", "add_prefix_space": False}]}
    with pytest.raises(EngineError, match="not a tokenizer file"):
        load({**spec("qwen"), "pre_tokenizer": steps})


def test_panic_while_encoding_is_an_error_of_the_model():
    own = load({**spec("qwen"), "normalizer": replace("aa", Regex="(a+)+$")})
    with pytest.raises(EngineError, match="cannot encode a text"):
        own.encode("a" * 60 + "!")
