"""Whatever a server answers, no key that it was sent is in anything that people see."""

import html
import json
import logging
import traceback
from base64 import b64encode
from collections.abc import Iterator
from functools import cache
from itertools import cycle, product
from urllib.parse import quote

import pytest
from msgspec import Struct

from bench.harness.in_process import InProcessClient
from mercury_engine.api import EngineError
from mercury_engine.record import ModelRecord
from mercury_engine.remote import probe as probing
from mercury_engine.remote.engine import RemoteEngine
from mercury_engine.remote.http import HttpClient, Reply
from mercury_ls.cli.given import LogFormatter
from mercury_ls.cli.serve import print_engine_status
from mercury_ls.lsp.server import status_fields
from mercury_ls.models import add, measure
from mercury_ls.project.privacy import Privacy
from mercury_ls.project.workspace import Workspace
from mercury_ls.session.record import Recorder
from mercury_ls.session.session import Session
from mercury_ls.session.stats import Stats
from mercury_ls.settings.schema import Settings
from mercury_ls.wording import one_line

KEYS = (
    "sk-proj-Qm5vdGhpbmdUb1NlZUhlcmVBdEFsbA",
    "hf_VxKqPzRtYwLmNbGhJdSaFcEuOiTrQw",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
    "Zm9vYmFyL2Jheit4eXp6eT09cXV1eC9jb3JnZSs3==",
    "hunter2!",
    "p@ss/w0rd?&x=1%2B+\"q\\z'<9>",
)
PART = 10
"""So many characters of a key in a row are already too many."""

ENCODINGS = {
    "as it is": str,
    "with its word": lambda key: f"Bearer {key}",
    "URL": lambda key: quote(key, safe=""),
    "URL twice": lambda key: quote(quote(key, safe=""), safe="").lower(),
    "JSON": lambda key: json.dumps(json.dumps(key))[1:-1],
    "JSON escapes": lambda key: "".join(f"\\u{ord(character):04x}" for character in key),
    "HTML": lambda key: html.escape(key),
    "HTML numbers": lambda key: "".join(f"&#{ord(character)};" for character in key),
    "base64": lambda key: b64encode(key.encode()).decode(),
    "base64 of a header": lambda key: b64encode(f"Authorization: Bearer {key}\r\n".encode()).decode(),
    "base64 of a login": lambda key: b64encode(f"me:{key}".encode()).decode().rstrip("=").replace("+", "-"),
    "half of it": lambda key: key[: max(PART, len(key) // 2)],
}


def page(said: str) -> str:
    return f"<html><body><h1>Sign in</h1><pre>Authorization: {said}</pre></body></html>"


SHAPES = {
    "text": str,
    "JSON text": json.dumps,
    "error": lambda said: json.dumps({"error": said}),
    "error message": lambda said: json.dumps({"error": {"message": said, "code": 1}}),
    "detail": lambda said: json.dumps({"detail": said}),
    "no completion": lambda said: json.dumps({"headers": {"authorization": said}, "status": "ok"}),
    "list": lambda said: json.dumps([said]),
    "broken JSON": lambda said: json.dumps({"error": {"message": said}})[:-1],
    "page": page,
    "page in pieces": lambda said: page(f"<wbr>{said[:7]}<wbr>{said[7:]}"),
    "event": lambda said: f"data: {json.dumps({'error': {'message': said}})}\n\n",
    "event after text": lambda said: (
        f'data: {{"content": "w", "stop": false}}\n\nerror: {json.dumps({"error": said})}\n\n'
    ),
    "event without JSON": lambda said: f"data: {said}\n\n",
    "completion": lambda said: f"data: {json.dumps({'content': said, 'stop': True})}\n\n",
    "tokens": lambda said: "".join(
        f"data: {json.dumps({'content': said[at : at + 3], 'stop': False})}\n\n" for at in range(0, len(said), 3)
    ),
    "models": lambda said: json.dumps({"data": [{"id": said}, {"id": f"qwen/{said}"}], "models": [{"name": said}]}),
    "props": lambda said: json.dumps(
        {"default_generation_settings": {}, "build_info": said, "model_alias": said, "version": said, "model": said}
    ),
}
PLACES = {
    "at once": "",
    "at the 80th character": "y" * 70,
    "at the 120th character": "x " * 55,
    "at the 160th character": "x " * 75,
    "at the 4096th character": "\n \t" * 1360 + "upstream said: ",
}
STATUSES = (200, 401, 200, 404, 302, 500, 400, 200, 429, 403, 503, 501, 422)


class Way(Struct, frozen=True):
    """Of answering. `said` is the encoded key, with what stands before it."""

    key: str
    status: int
    shape: str
    encoding: str
    place: str

    @property
    def reply(self) -> Reply:
        said = PLACES[self.place] + ENCODINGS[self.encoding](self.key)
        body = SHAPES[self.shape](said).encode()
        kind = "text/event-stream" if body.startswith(b"data:") else "application/json"
        header = " ".join(said.split())
        return Reply(self.status, {"content-type": kind, "location": f"https://login.example/?next={header}"}, body)


def ways() -> Iterator[Way]:
    """Every shape in every encoding, with the keys, statuses and places in turn."""
    keys, places, statuses = cycle(KEYS), cycle(PLACES), cycle(STATUSES)
    for shape, encoding in product(SHAPES, ENCODINGS):
        yield Way(next(keys), next(statuses), shape, encoding, next(places))
        yield Way(next(keys), 200, shape, encoding, next(places))


WAYS = [*ways()]


@cache
def forms(key: str) -> frozenset[str]:
    """The parts of the key, as they are and encoded."""
    parts = [key[at : at + PART] for at in range(max(len(key) - PART, 0) + 1)]
    encoded = [
        b64encode(bytes(before) + key.encode()).decode()[-(-8 * before // 6) : 8 * (before + len(key)) // 6]
        for before in range(3)
    ]
    forms = [encode(part) for part in parts for name, encode in ENCODINGS.items() if "64" not in name]
    forms += [form[at : at + 11] for form in encoded for at in range(max(len(form) - 11, 0) + 1)]
    return frozenset(map(alike, forms))


def alike(text: str) -> str:
    return text.replace("\\\\", "\\").lower().translate(str.maketrans("-_", "+/"))


def leaks(key: str, *texts: str) -> list[str]:
    """Of texts, those that have a part of the key."""
    parts, all_of_it = forms(key), alike("\n".join(texts))
    if not any(part in all_of_it for part in parts):
        return []
    return [text for text in texts if any(part in alike(text) for part in parts)]


class Exchange:
    """An answer that is there at once."""

    def __init__(self, reply: Reply) -> None:
        self.status, self.headers = reply.status, reply.headers
        self._body = reply.body

    @property
    def done(self) -> bool:
        return not self._body

    def take(self, wait: float = 0.0) -> bytes:
        body, self._body = self._body, b""
        return body

    def close(self) -> None: ...
    def let_end(self) -> None: ...


class Client(HttpClient):
    """Whatever is asked for, the server answers in this way."""

    def __init__(self, way: Way) -> None:
        super().__init__("http://127.0.0.1:1", {"Authorization": f"Bearer {way.key}", "X-Team": "tangerine"})
        self._reply = way.reply
        self._lists = way.status != 200

    def open(self, method: str, path: str, body: bytes = b"") -> Exchange:
        has_models = self._lists and path == "/v1/models"
        return Exchange(Reply(200, {}, b'{"data": [{"id": "theirs"}]}') if has_models else self._reply)

    def fetch(self, method: str, path: str, body: bytes = b"", *, seconds: float) -> Reply:
        return self._reply


def record(**fields) -> ModelRecord:
    return ModelRecord(
        name="theirs", kind="server", prompt="qwen", address="http://127.0.0.1:1", key="env:KEY", **fields
    )


def engine_for(client: Client) -> RemoteEngine:
    return RemoteEngine(record(protocol="llama", model="theirs"), client)


def told(error: Exception) -> list[str]:
    return [str(error), repr(error), *traceback.format_exception(error)]


def seen_of_probe(client: Client, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """What `model add` says."""
    monkeypatch.setattr(probing, "client_for", lambda record, **options: client)
    for protocol, model in product(("", "openai", "ollama"), ("", "theirs")):
        try:
            if (server := probing.probe(record(protocol=protocol, model=model))) is None:
                continue
            yield repr(server)
            names = [served.name for served in server.models]
            yield add._checked_model(model, names, server.address)
        except EngineError as error:
            yield from told(error)


def seen_of_test(client: Client) -> Iterator[str]:
    """What `model test` says."""
    try:
        yield from measure.described(measure.measure(engine_for(client), 0.0))
    except EngineError as error:
        yield from told(error)


async def seen_in_editor(client: Client, folder, capsys) -> list[str]:
    """What an editor shows, and what is kept of a session."""
    settings, stats = Settings(), Stats(folder / "stats.json")
    privacy = Privacy(settings.privacy, ())
    seen, statuses = [], []
    link = InProcessClient(engine_for(client), on_status=statuses.append)
    await link.start()
    recorder = Recorder(folder / "records", 10.0, "/project")
    session = Session(settings, link, privacy, Workspace((), privacy, settings.context), recorder, stats=stats)
    text, uri = "def area(w, h):\n    return ", "file:///project/a.py"
    session.open(uri, "/project/a.py", "python", 1, text)
    async for answer in session.inline(uri, len(text), invoked=True):
        seen += [answer.silence, answer.sent, *(offer.edit.text for offer in answer.offers)]
    seen += [
        await session.completions.why(uri, len(text)),
        await session.next_edits.why(uri, len(text)),
        *session.decisions,
    ]
    statuses.append(link._worker.board.status)
    seen += [f"{status_fields(status)} {status!r}" for status in statuses]
    print_engine_status(statuses[-1])
    await session.end()
    seen.append(repr(stats.rows()))
    return [*seen, *capsys.readouterr()]


def test_ways_are_many_and_none_is_seen_by_chance():
    assert len(WAYS) >= 200
    for part in ("key", "status", "shape", "encoding", "place"):
        assert len({getattr(way, part) for way in WAYS}) > 4
    for key, encode in product(KEYS, ENCODINGS.values()):
        assert leaks(key, f"it said {encode(key)}")
        assert leaks(key, one_line(f"it said {encode(key)!r}"))
        assert not leaks(key, "nothing of it")


@pytest.mark.parametrize("shape", SHAPES)
async def test_key_is_in_no_text_that_people_see(shape, tmp_path, monkeypatch, capsys, caplog):
    caplog.set_level(logging.DEBUG)
    keys = set()
    for way in (way for way in WAYS if way.shape == shape):
        caplog.clear()
        client = Client(way)
        seen = [*seen_of_probe(client, monkeypatch), *seen_of_test(client)]
        seen += await seen_in_editor(client, tmp_path, capsys)
        seen += map(LogFormatter().format, caplog.records)
        assert leaks(way.key, *seen) == [], way
        keys.add(way.key)
    kept = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert [key for key in keys if leaks(key, *kept)] == []
