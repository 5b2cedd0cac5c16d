import re
from pathlib import Path

import pytest

from mercury_engine.api import PROTOCOL_VERSION
from mercury_engine.fake import FakeEngine
from mercury_ls import __version__
from tests.mercury_ls.web.serving import TOKEN, client, served

AREA = {"path": "a.py", "prompt": "def area(w, h):\n    ", "suffix": "\n"}


@pytest.fixture
async def asking():
    async with served(FakeEngine({"def area": "return w * h"})) as (_, app), client(app) as found:
        yield found


async def test_health_is_open_and_says_whether_the_engine_answers(asking):
    answer = await asking.get("/health", headers={"authorization": ""})
    assert answer.json() == {"status": "ok", "state": "ready", "protocol": PROTOCOL_VERSION, "version": __version__}


async def test_model_has_the_same_name_everywhere(asking):
    for kind in ("", "/chat/completions", "/fim/completions", "/edit/completions"):
        (model,) = (await asking.get(f"/v1{kind}/models")).json()["data"]
        assert model["id"] == "copies what is already written"


async def test_gap_is_filled(asking):
    answer = (await asking.post("/v1/completions", json=AREA)).json()
    assert answer["object"] == "text_completion"
    assert answer["choices"][0]["text"] == "return w * h"


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"authorization": f"Bearer {TOKEN}"}, 200, None),
        ({"authorization": ""}, 401, "invalid_api_key"),
        ({"authorization": "Bearer wrong"}, 401, "invalid_api_key"),
        ({"host": "attacker.example.com"}, 403, "forbidden"),
        ({"origin": "https://attacker.example.com"}, 403, "forbidden"),
        ({"origin": "null"}, 403, "forbidden"),
        ({"origin": "http://127.0.0.1:8391"}, 200, None),
    ],
)
async def test_access_needs_the_token_and_no_foreign_origin(asking, headers, status, code):
    answer = await asking.get("/v1/models", headers=headers)
    assert answer.status_code == status
    if code:
        assert answer.json()["error"]["code"] == code


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "it is empty, or JSON that ends too early"),
        (b'{"prompt": "", "reasoning_effort": "extreme"}', "reasoning_effort: Invalid enum value 'extreme'"),
        (b'{"prompt": "", "max_tokens": "16"}', "max_tokens: Expected a number or null, got a string"),
        (b'{"prompt": "", "max_tokens": 16.5}', "max_tokens: Expected a whole number"),
        (b'{"prompt": "", "n": 0}', "n: Expected a number >= 1.0"),
        (b'{"prompt": "", "stop": ["a"%s]}' % (b', "a"' * 16), "stop: Expected an array of length <= 16"),
        (b'{"prompt": "", "stop": "%s"}' % (b"a" * 1025), "stop: Expected a string of length <= 1024"),
        (b'{"prompt": "", "stop": 1}', "stop: Expected a string or an array or null, got a number"),
        (b'{"prompt": "", "stream": "yes"}', "stream: Expected true or false or null, got a string"),
        (b'{"suffix": ""}', "Object missing required field `prompt`"),
        (b"[]", "Expected an object, got an array"),
    ],
)
async def test_refused_body_is_explained_with_a_link_to_the_description(asking, body, said):
    answer = await asking.post("/v1/completions", content=body)
    assert answer.json()["error"]["message"] == f"invalid body: {said}; /openapi.json describes every field"


@pytest.mark.parametrize(
    "more",
    [
        {"max_tokens": 16.0, "n": 1.0, "stop": []},
        {"max_tokens": None, "n": None, "stop": None, "stream": None, "suffix": None, "seed": None},
        {"stop": [""], "temperature": 0, "top_p": 1, "logprobs": None, "user": "me", "logit_bias": {}},
    ],
)
async def test_surplus_fields_of_clients_are_accepted(asking, more):
    answer = await asking.post("/v1/completions", json=AREA | more)
    assert answer.json()["choices"][0]["text"] == "return w * h"


async def test_unknown_path_names_all_existing_ones(asking):
    said = (await asking.get("/v2/models")).json()["error"]["message"]
    for path in ("/, ", "/v1/models/{id}", "/v1/fim/completions", "/v1/feedback", "/openapi.json"):
        assert path in said + ", "


async def test_example_in_documentation_shows_suggestion():
    page = (Path(__file__).parents[3] / "docs/API.md").read_text(encoding="utf-8")
    (body,) = re.findall(r"-d '(.*?)'\n", page, re.DOTALL)
    async with served() as (_, app), client(app) as asking:
        answer = await asking.post("/v1/completions", content=body)
    assert answer.json()["choices"][0]["text"] == "path) as file:"


async def test_page_needs_no_token(asking):
    answer = await asking.get("/", headers={"authorization": ""})
    assert answer.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/static/playground.js", "text/javascript; charset=utf-8"),
        ("/static/playground.css", "text/css; charset=utf-8"),
        ("/openapi.json", "application/json"),
        ("/health/", "application/json"),
    ],
)
async def test_page_and_its_files_are_read_and_asked_for_their_heads(asking, path, kind):
    for method in ("GET", "HEAD"):
        answer = await asking.request(method, path)
        assert (answer.status_code, answer.headers["content-type"]) == (200, kind)


@pytest.mark.parametrize("path", ["/static/", "/static/../app.py", "/static/%2e%2e/app.py", "/static/app.py"])
async def test_no_other_file_is_read(asking, path):
    assert (await asking.get(path)).status_code == 404


async def test_refused_method_names_those_that_are_allowed(asking):
    answer = await asking.delete("/v1/models")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")
    assert answer.json()["error"]["message"] == "/v1/models does not support DELETE: use GET, HEAD"


async def test_defect_is_answered_in_the_form_of_other_errors(monkeypatch):
    async with served() as (service, app), client(app) as asking:
        asking._transport.raise_app_exceptions = False
        monkeypatch.setattr(service.metrics, "text", lambda: 1 / 0)
        answer = await asking.get("/metrics")
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "server_error")
