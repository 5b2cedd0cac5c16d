"""The way to servers that are behind a proxy, certificates and headers."""

from contextlib import contextmanager

import pytest

from bench.harness.servers import document, serving
from mercury_engine.api import EngineError
from mercury_engine.record import ModelRecord
from mercury_engine.remote.access import client_for, proxy_for
from mercury_engine.remote.engine import RemoteEngine
from mercury_engine.remote.http import LinkError, Proxy, site_of
from tests.engine.remote.tls import CERTIFICATES, with_tls
from tests.model_servers import tunnel

SECONDS = 5.0
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


def record(address, **fields) -> ModelRecord:
    return ModelRecord(name="theirs", kind="server", prompt="qwen", protocol="llama", address=address, **fields)


def pem(name: str) -> str:
    return str(CERTIFICATES / f"{name}.pem")


@contextmanager
def client_of(address, **fields):
    client = client_for(record(address, **fields))
    try:
        yield client
    finally:
        client.close()


def refusal(address, **fields) -> str:
    with pytest.raises(EngineError) as raised:
        client_for(record(address, **fields))
    return str(raised.value)


THERE = "https://models.example"


@pytest.mark.parametrize(
    ("address", "variables", "proxy"),
    [
        (THERE, {}, None),
        (THERE, {"HTTPS_PROXY": "http://proxy:3128"}, Proxy("proxy", 3128)),
        (THERE, {"https_proxy": "proxy:3128"}, Proxy("proxy", 3128)),
        (THERE, {"ALL_PROXY": "http://proxy"}, Proxy("proxy", 80)),
        (THERE, {"HTTP_PROXY": "http://proxy:3128"}, None),
        ("http://models.example", {"HTTP_PROXY": "http://proxy:3128"}, Proxy("proxy", 3128)),
        (THERE, {"HTTPS_PROXY": "http://me:s%40cret@proxy:1"}, Proxy("proxy", 1, "Basic bWU6c0BjcmV0")),
        (THERE, {"HTTPS_PROXY": "http://proxy:1", "NO_PROXY": "other, .example"}, None),
        (THERE, {"HTTPS_PROXY": "http://proxy:1", "NO_PROXY": "models.example:443"}, None),
        (THERE, {"HTTPS_PROXY": "http://proxy:1", "NO_PROXY": "*"}, None),
        (THERE, {"HTTPS_PROXY": "http://proxy:1", "NO_PROXY": "models.example:8443"}, Proxy("proxy", 1)),
        ("https://localhost:8443", {"HTTPS_PROXY": "http://proxy:1"}, None),
        ("http://127.0.0.1:8080", {"HTTP_PROXY": "http://proxy:1", "ALL_PROXY": "http://proxy:1"}, None),
        ("http://[::1]:8080", {"HTTP_PROXY": "socks5://proxy:1"}, None),
    ],
)
def test_proxies(monkeypatch, address, variables, proxy):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert proxy_for(site_of(address)) == proxy


@pytest.mark.parametrize("value", ["socks5://me:s3cret@proxy:1", "https://proxy", "http://proxy:port", "http://"])
def test_proxies_of_other_kinds_are_named(monkeypatch, value):
    monkeypatch.setenv("HTTPS_PROXY", value)
    said = refusal(THERE)
    assert "HTTPS_PROXY is no proxy that can be used: write it as http://HOST:PORT" in said
    assert "s3cret" not in said


def test_all_of_it_together(monkeypatch):
    with (
        serving({"/x": document([1])}, wrap=with_tls("models", wants="localhost")) as server,
        serving({"models.example:443": tunnel(server.port, login="Basic bWU6c2VjcmV0")}) as proxy,
    ):
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:secret@127.0.0.1:{proxy.port}")
        monkeypatch.setenv("THEIR_KEY", "k3y")
        ours = {"ca": pem("models"), "certificate": pem("localhost"), "certificate_key": pem("key")}
        headers = {"api-key": "env:THEIR_KEY", "X-Team": "blue team"}
        with client_of(THERE, headers=headers, **ours) as client:
            assert client.fetch("GET", "/x", seconds=SECONDS).body == b"[1]"
        assert {name: server.asked[0].headers[name] for name in ("api-key", "x-team")} == {
            "api-key": "k3y",
            "x-team": "blue team",
        }
        assert "authorization" not in server.asked[0].headers


def trouble(address, **fields) -> LinkError:
    with client_of(address, **fields) as client, pytest.raises(LinkError) as raised:
        client.fetch("GET", "/x", seconds=SECONDS)
    return raised.value


def test_certificates_of_both_sides(monkeypatch):
    with serving({"/x": document([1])}, wrap=with_tls(wants="models")) as server:
        address = f"https://localhost:{server.port}"
        ours = {"certificate": pem("models"), "certificate_key": pem("key")}
        with client_of(address, ca=pem("localhost"), **ours) as client:
            assert client.fetch("GET", "/x", seconds=SECONDS).status == 200
        assert trouble(address, ca=pem("models"), **ours).kind == "certificate"
        assert trouble(address, ca=pem("localhost")).kind in ("tls", "broken"), "it may hang up before it says why"
        monkeypatch.setenv("SSL_CERT_FILE", pem("localhost"))
        assert trouble(address).kind in ("tls", "broken")
        assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("address", "fields", "said"),
    [
        (
            THERE,
            {"ca": "/none.pem"},
            "/none.pem cannot be used (No such file or directory): give files with the certificates",
        ),
        (THERE, {"ca": pem("key")}, "key.pem cannot be used (not that in PEM)"),
        (
            THERE,
            {"certificate": pem("localhost")},
            "localhost.pem cannot be used (not that in PEM): give files with a certificate",
        ),
        (
            THERE,
            {"certificate": "/a.pem", "certificate_key": "/b.pem"},
            "/a.pem and /b.pem cannot be used (No such file",
        ),
        ("http://127.0.0.1:1", {"ca": pem("localhost")}, "is not encrypted, so it has no certificates"),
    ],
)
def test_certificates_that_cannot_be_used(address, fields, said):
    assert said in refusal(address, **fields)


ENCRYPTED = """\
-----BEGIN EC PRIVATE KEY-----
Proc-Type: 4,ENCRYPTED
DEK-Info: AES-128-CBC,4928D1A9A82881CF9716B298726C91BB

RLM5PJZ65Fr5OJeuzCRWgMeumdlq4YBrFKGFsUHSWxZgqohIP45bsNQJp/pYKj+9
bq0BffvdO1RIsHQNauK5mgiBGK0+1RfB1Q097yCWnTzW97KBMRVf3K/YCLt/W4l3
TedxS+2otfa4vUEAiTsLGMzJadRdC1MJa6WTAuqzIO8=
-----END EC PRIVATE KEY-----
"""


def test_encrypted_key_does_not_prompt_for_its_password(tmp_path):
    (tmp_path / "key.pem").write_text(ENCRYPTED)
    said = refusal(THERE, certificate=pem("localhost"), certificate_key=str(tmp_path / "key.pem"))
    assert "a certificate and its key, not encrypted" in said


def test_headers_that_a_server_repeats_are_not_shown():
    def repeats(line, asked):
        document({"error": f"no such key: {asked.headers['x-api-key']} of {asked.headers['x-team']}"}, 403)(line, asked)

    headers = {"X-Api-Key": "tiny-k3y", "X-Team": "blue"}
    with serving({"/v1/models": repeats}) as server:
        made = record(server.address, model="m", headers=headers)
        engine = RemoteEngine(made, client_for(made))
        engine.look(SECONDS)
        (note,) = engine.info().notes
        engine.close()
    assert "refuses what it gets as X-Api-Key, X-Team (403): no such key: … of …" in note
    assert "k3y" not in repr(engine.info())
