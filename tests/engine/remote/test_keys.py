import sys
from types import SimpleNamespace

import pytest

from mercury_engine.api import EngineError
from mercury_engine.record import ModelRecord
from mercury_engine.remote.keys import headers_of, key_at

KEY = "sk-1234567890abcdef"


def refusal(place, environ=None) -> str:
    with pytest.raises(EngineError) as raised:
        key_at(place, environ or {})
    assert KEY not in str(raised.value)
    assert raised.value.__cause__ is None or KEY not in str(raised.value.__cause__)
    return str(raised.value)


def test_key_is_read_from_environment():
    assert key_at("env:MISTRAL_API_KEY", {"MISTRAL_API_KEY": f" {KEY}\n"}) == KEY
    assert key_at("", {}) == ""
    assert "there is none at env:K: set K where your editor starts" in refusal("env:K")
    assert "contains characters that no key has" in refusal("env:K", {"K": f"{KEY}\nX-Other: 1"})


@pytest.mark.parametrize("place", [KEY, "env:", "keyring:service", "file:/etc/passwd"])
def test_malformed_key_place_is_refused(place):
    assert "env:NAME or keyring:SERVICE/NAME, never the key itself" in refusal(place)


def test_key_is_read_from_keyring(monkeypatch):
    stored = {("mercury", "mistral"): KEY}
    monkeypatch.setitem(sys.modules, "keyring", SimpleNamespace(get_password=lambda *where: stored.get(where)))
    assert key_at("keyring:mercury/mistral", {}) == KEY
    assert "store it: `keyring set mercury other`" in refusal("keyring:mercury/other")


def test_locked_or_missing_keyring_is_reported(monkeypatch):
    def locked(service, name):
        raise RuntimeError(f"locked, by the way {KEY}")

    monkeypatch.setitem(sys.modules, "keyring", SimpleNamespace(get_password=locked))
    assert "the keyring does not open (RuntimeError): unlock it" in refusal("keyring:a/b")
    monkeypatch.setitem(sys.modules, "keyring", None)
    assert "`pip install keyring`" in refusal("keyring:a/b")


def headers(environ=None, **fields) -> dict[str, str]:
    return headers_of(ModelRecord(name="theirs", kind="server", prompt="", **fields), environ or {"K": KEY})


def test_headers_with_and_without_a_key():
    assert headers() == {}
    assert headers(key="env:K") == {"Authorization": f"Bearer {KEY}"}
    assert headers(headers={"x-api-key": "env:K", "X-Team": "blue"}) == {"x-api-key": KEY, "X-Team": "blue"}
    assert headers(key="env:K", headers={"X-Team": "blue"}) == {"Authorization": f"Bearer {KEY}", "X-Team": "blue"}
    assert headers({"K": "Token a b"}, key="env:NONE", headers={"authorization": "env:K"}) == {
        "authorization": "Token a b"
    }


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("env:NONE", "header x-api-key: there is none at env:NONE: set NONE where your editor starts"),
        ("env:BAD", "header x-api-key: what is at env:BAD contains characters"),
        (f"{KEY}\r\nX-Other: 1", "header x-api-key: its value is empty or has characters"),
        ("", "header x-api-key: its value is empty"),
        ("keyring:nothing", "header x-api-key: write where it is"),
    ],
)
def test_headers_that_cannot_be_sent(value, said):
    with pytest.raises(EngineError) as raised:
        headers({"BAD": f"{KEY}\nX-Other: 1"}, headers={"x-api-key": value})
    assert said in str(raised.value)
    assert KEY not in str(raised.value)
