"""Secrets are starred out where they stand, and nothing else is."""

import re
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_engine.redaction import mask_secrets, tells_secrets
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
