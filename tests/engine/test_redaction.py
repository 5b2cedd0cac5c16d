"""Secrets are starred out where they stand, and nothing else is; known ones are not shown in any encoding."""

import html
import json
import re
from base64 import b64encode, urlsafe_b64encode
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mercury_engine.redaction import ForeignText, Secrets, mask_secrets, tells_secrets
from tests.cases import each_case


@each_case(Path(__file__).with_name("secrets.txt"))
def test_secrets_in_texts_are_masked_and_nothing_else(case):
    plain = case.drawn.replace("‹", "").replace("›", "")
    expected = re.sub("‹(.*?)›", lambda secret: re.sub("[^\\n]", "*", secret[1]), case.drawn, flags=re.DOTALL)
    assert mask_secrets(plain) == expected
    assert tells_secrets(plain) == (expected != plain)


PIECES = """
password=" api_key:' token= ghp_ a1B2c3D4e5F6g7H8i9J0 a1B2c3D4e5F6g7H8i9J0 " ' ://a: @ é𝔘 -----END Bearer sk- secret:
"""


@settings(max_examples=200)
@given(
    st.lists(
        st.sampled_from(["-----BEGIN PRIVATE KEY-----", "\n", "\r\n", " ", *PIECES.split()]) | st.text(max_size=5)
    ).map("".join)
)
def test_masking_moves_nothing(text):
    hidden = mask_secrets(text)
    assert len(hidden) == len(text)
    assert all(new in (old, "*") for old, new in zip(text, hidden, strict=True))
    assert [c for c in hidden if c in "\r\n"] == [c for c in text if c in "\r\n"]


ENCODED = (
    str,
    lambda key: b64encode(b"me:" + key.encode()).decode(),
    lambda key: urlsafe_b64encode(key.encode()).decode(),
    lambda key: quote(quote(key, safe="")),
    lambda key: json.dumps(json.dumps({"key": key})),
    html.escape,
    lambda key: "\n".join(key),
)
KEYS = st.text("".join(map(chr, range(33, 127))), min_size=8, max_size=40)
AROUND = st.text(max_size=20) | st.sampled_from(["x" * 150, " \n" * 5000, "&amp;", "\\", "%", "{{'"])


@settings(max_examples=300)
@example("0000000:", ENCODED[3], "%", "", 160)
@given(KEYS, st.sampled_from(ENCODED), AROUND, AROUND, st.integers(1, 400))
def test_known_secret_is_not_shown_wherever_text_is_cut(key, encode, before, after, most):
    said = encode(key)
    shown = Secrets([f"Bearer {key}"]).shown(ForeignText(f"{before} {said} {after}"), most)
    assert len(shown) <= most
    assert said not in shown
    parts = {key[at : at + 8] for at in range(len(key) - 7)}
    assert not any(part in shown and part not in before + after for part in parts)


def told(text, *headers, most=160) -> str:
    return Secrets(headers).shown(ForeignText(text), most)


@pytest.mark.parametrize(
    ("text", "headers", "expected"),
    [
        ("no key\n  here: café", (), "no key here: café"),
        ("the slot is gone", ("Bearer k3y-for-slots",), "the slot is gone"),
        ("bad key: k3y-for-slots!", ("Bearer k3y-for-slots",), "bad key: …!"),
        ("bad key: k3y-for-…", ("Bearer k3y-for-slots",), "bad key: ……"),
        ("hello me, s3cret", ("Basic bWU6czNjcmV0",), "hello me, …"),
        ("your sk-proj-abcdefgh is wrong", (), "your … is wrong"),
        ("bad abc", ("abc",), "bad ***"),
        ("bad ab", ("ab",), "bad ab"),
        ("a long text", (), "a long text"),
    ],
)
def test_foreign_text_is_shown_on_a_line_without_secrets(text, headers, expected):
    assert told(text, *headers) == expected
    assert told(expected, *headers) == expected


def test_foreign_text_is_not_shown_by_formatting_it():
    text = ForeignText("k3y")
    assert "k3y" not in f"{text} {text!r} {text!s}" + repr([text])
    assert not ForeignText("")


@pytest.mark.parametrize(
    ("key", "code", "repeats"),
    [
        ("k3y-for-slots", "connect('k3y-for-slots')", True),
        ("hunter2", "x = 'hunter2'", True),
        ("hf_VxKqPzRtYwLmNbGhJdSaFcEuOiTrQw", "x = 'hf_VxKqPzRtYwLm'", True),
        ("ollama", "import ollama", False),
        ("not-needed", "x = 'not-needed'", False),
        ("k3y-for-slots", "k3y-for", False),
        ("", "x", False),
    ],
)
def test_code_repeats_what_only_a_key_is(key, code, repeats):
    assert Secrets([f"Bearer {key}"]).are_in(ForeignText(code)) == repeats


def test_long_text_of_a_stranger_is_read_in_part():
    text = "a\\u0041&amp;"
    assert told(text * 500_000, "Bearer k3y-for-slots") == told(text * 500, "Bearer k3y-for-slots")
