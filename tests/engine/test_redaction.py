"""Secrets are starred out where they stand, and nothing else is."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_engine.redaction import mask_secrets, tells_secrets


def masked(drawn: str):
    """What stands in angle quotes is masked, and nothing else."""
    plain = drawn.replace("‹", "").replace("›", "")
    expected = ""
    for index, part in enumerate(drawn.replace("›", "‹").split("‹")):
        expected += "".join("*" if c != "\n" else c for c in part) if index % 2 else part
    assert mask_secrets(plain) == expected
    assert tells_secrets(plain) == (expected != plain)


@pytest.mark.parametrize(
    "drawn",
    [
        "key = ‹ghp_abcdefghijklmnopqrstuvwxyz0123456789›",
        "client(‹sk-proj-abcdefghijklmnop1234›)",
        "id: ‹AKIAIOSFODNN7EXAMPLE›",
        "h = {'Authorization': 'Bearer ‹abcdefgh12345678.xyz›'}",
        "jwt = '‹eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmN›'",
        'password = "‹hunter2›"',
        "DB_PASSWORD: '‹x›'",
        'os.environ.setdefault("SECRET_KEY", "‹insecure›")',
        'password: str = "‹hunter2›"',
        "POSTGRES_PASSWORD=‹hunter2›\nUSER=bob",
        'api_key = "‹Zm9vYmFyMTIzNDU2Nzg5›"',
        "API_TOKEN=‹a8f5f167f44f4964e6c998dee827110c›",
        "url = 'postgres://bob:‹s3cr3t›@host/db'",
        "-----BEGIN RSA PRIVATE KEY-----‹\nMIIE\nabcd\n›-----END RSA PRIVATE KEY-----\nafter",
        "-----BEGIN OPENSSH PRIVATE KEY-----‹\nMIIE›",
    ],
)
def test_secrets_in_texts_are_masked(drawn):
    masked(drawn)


@pytest.mark.parametrize(
    "text",
    [
        "",
        'token = "identifier"',
        "password = get_password()",
        "password = self.password",
        'label = {"password": "Please enter your password"}',
        'secret = f"{prefix}"',
        'password = "${DB_PASSWORD}"',
        "tokens = tokenizer.encode(text)",
        "# a token is a word; the password: none",
        "https://example.com/a:b@c",
        "-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----",
        "risk-assessment-of-everything-here",
        ".sk-navigation-container-inner { }",
    ],
)
def test_other_texts_stay_as_they_are(text):
    masked(text)


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
