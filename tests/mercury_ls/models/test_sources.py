"""What a source means depends on how it is written, and never on what lies in the current folder."""

import pytest

from mercury_engine.api import EngineError
from mercury_ls.models.sources import HOSTED, Hub, ServerSource, checked_headers, parse


@pytest.mark.parametrize(
    ("text", "source", "name"),
    [
        ("Qwen/Qwen2.5-Coder-0.5B", Hub("Qwen/Qwen2.5-Coder-0.5B"), "qwen2.5-coder-0.5b"),
        ("hf:a/b", Hub("a/b"), "b"),
        ("https://huggingface.co/a/B_c/", Hub("a/B_c"), "b_c"),
        ("http://127.0.0.1:8080/", ServerSource("http://127.0.0.1:8080"), "127.0.0.1-8080"),
        ("https://host:8443/v1/", ServerSource("https://host:8443/v1"), "host-8443"),
        (
            "ollama:qwen2.5-coder:1.5b-base",
            ServerSource("http://127.0.0.1:11434", "qwen2.5-coder:1.5b-base", "ollama"),
            "ollama-qwen2.5-coder-1.5b-base",
        ),
        ("mistral", HOSTED["mistral"], "mistral"),
    ],
)
def test_source_is_what_it_is_written_as(tmp_path, monkeypatch, text, source, name):
    (tmp_path / "Qwen/Qwen2.5-Coder-0.5B").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert parse(text) == (source, name)


def test_files_and_folders_are_found(tmp_path, monkeypatch):
    (tmp_path / "My Model").mkdir()
    (tmp_path / "a.Q8_0.gguf").touch()
    monkeypatch.chdir(tmp_path)
    assert parse("./My Model") == (tmp_path / "My Model", "my-model")
    assert parse("./a.Q8_0.gguf") == (tmp_path / "a.Q8_0.gguf", "a.q8_0")


@pytest.mark.parametrize(
    "text", ["", "nowhere", "a/b/c", "ftp://host", "model.bin", "http://", "http://[::1", "http://h:x"]
)
def test_anything_else_is_refused_with_what_there_is(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EngineError, match="is no source of a model: give a hub id"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("./absent.gguf", "./absent.gguf does not exist"),
        ("absent.gguf", "absent.gguf does not exist"),
        ("./nowhere", "./nowhere does not exist"),
        ("/nowhere/model", "/nowhere/model does not exist"),
        ("./here.txt", "./here.txt is neither a folder nor a .gguf file"),
    ],
)
def test_path_that_leads_nowhere_is_reported(text, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here.txt").touch()
    with pytest.raises(EngineError) as refused:
        parse(text)
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize("address", ["https://user:secret@host", "http://host?key=secret", "http://host/v1#secret"])
def test_keys_are_kept_out_of_addresses(address):
    with pytest.raises(EngineError, match="--key env:NAME") as refused:
        parse(address)
    assert "secret" not in str(refused.value)


def test_headers_are_names_and_values():
    assert checked_headers(["X-Team:blue", "Authorization:  Token a: b ", "api-key: env:K"]) == {
        "X-Team": "blue",
        "Authorization": "Token a: b",
        "api-key": "env:K",
    }


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["secret"], "--header 'secret': write it as 'Name: value'"),
        (["X-Key:"], "--header 'X-Key': write it as"),
        (["X Key: secret"], "--header 'X Key': write it as"),
        (["X-Key: sec\r\nret"], "--header 'X-Key': write it as"),
        (["X-Key: s€cret"], "--header 'X-Key': write it as"),
        (["X-Key: secret", "x-key: secret"], "--header x-key: it is sent already"),
        (["Host: secret"], "--header Host: it is sent already"),
    ],
)
def test_headers_that_cannot_be_sent_are_refused_without_their_values(lines, said):
    with pytest.raises(EngineError) as refused:
        checked_headers(lines)
    assert str(refused.value).startswith(said)
