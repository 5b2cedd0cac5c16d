import json
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from bench.quality.endpoints import CompletionService
from mercury_engine.api import EngineError, InfillRequest, Span, Window


class Service:
    """A stand-in: notes what it is sent and answers what it is told to."""

    def __init__(self, status: int, answer: object) -> None:
        self.seen: list[tuple[str, str | None, dict]] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                service.seen.append((self.path, self.headers["Authorization"], body))
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps(answer).encode())

            def log_message(self, *arguments):
                """Nothing."""

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


SAYS = {"choices": [{"index": 0, "text": "width * height"}]}
REQUEST = InfillRequest(
    session="s",
    windows=(Window("a.py", "python", "return \nend\n"),),
    spans=(Span(0, 7, 7, "line", 32),),
)


def asked(dialect: str, key: str = "") -> tuple:
    with Service(200, SAYS) as service:
        (draft,) = CompletionService(dialect, service.url, "m", key).infill(REQUEST)
        assert draft.final
        assert draft.spans[0].text == "width * height"
        return service.seen[0]


def test_openai_is_sent_prompt_and_suffix():
    path, key, body = asked("openai")
    assert (path, key) == ("/v1/completions", None)
    assert body == {
        "model": "m",
        "prompt": "return ",
        "suffix": "\nend\n",
        "max_tokens": 32,
        "temperature": 0,
        "stop": ["\n"],
    }


def test_inception_has_an_address_of_its_own_and_the_key_is_sent():
    path, key, body = asked("inception", "secret")
    assert (path, key) == ("/v1/fim/completions", "Bearer secret")
    assert "temperature" not in body


def test_a_refusal_names_the_address_and_never_the_key():
    with (
        Service(401, {"error": "no such key"}) as service,
        pytest.raises(EngineError, match=r"/v1/completions: 401 .*no such key") as refused,
    ):
        list(CompletionService("openai", service.url, "m", "secret").infill(REQUEST))
    assert "secret" not in str(refused.value)


def test_an_answer_of_another_kind_is_an_error():
    with Service(200, {"text": "1"}) as service, pytest.raises(EngineError, match="no completion came back"):
        list(CompletionService("openai", service.url, "m").infill(REQUEST))


def test_code_is_not_sent_in_the_clear():
    with pytest.raises(EngineError, match="https"):
        CompletionService("openai", "http://example.org", "m")


def test_there_are_no_next_edits():
    several = InfillRequest(session="s", windows=REQUEST.windows, spans=(Span(0, 0, 6, "edit"),))
    with pytest.raises(EngineError, match="one place"):
        list(CompletionService("openai", "https://example.org", "m").infill(several))
