"""`mercury-ls serve --http` as a process: what it prints, who it answers, and what it leaves."""

import json
import re
import shutil
import signal
import subprocess
import urllib.error
import urllib.request

import pytest

from house import ROOT
from tests.e2e.environment import COMMAND, home

pytestmark = pytest.mark.slow

PAGES = ("docs/API.md", "editors/jetbrains/README.md")
EXAMPLE = re.compile(r"\$ (curl .*?)\n(\{.*?)\n```", re.DOTALL)
SHOWN_TEXT = re.compile(r'"text":("(?:[^"\\]|\\.)*")')


def asked(port, path, token="", body=None):
    """The status and the answer; nobody may listen yet."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", body and json.dumps(body).encode())
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


@pytest.fixture
def serving(tmp_path):
    command = [*COMMAND, "serve", "--http", "127.0.0.1:0"]
    with subprocess.Popen(command, env=home(tmp_path), stdout=subprocess.PIPE, text=True) as process:
        greeting = r"listening on http://127\.0\.0\.1:(\d+); docs/API\.md says what it answers\n"
        yield process, int(re.fullmatch(greeting, process.stdout.readline())[1])
        process.kill()


@pytest.mark.skipif(not shutil.which("curl"), reason="needs curl")
def test_examples_of_the_documentation_are_answered_as_they_say(serving, tmp_path):
    _, port = serving
    while asked(port, "/health")[1]["status"] != "ok":
        pass
    token = next((tmp_path / "state").rglob("http-token"))
    examples = [example for page in PAGES for example in EXAMPLE.findall((ROOT / page).read_text("utf-8"))]
    assert len(examples) == 4
    for command, shown in examples:
        command = command.replace(":8391/", f":{port}/").replace("~/.local/state/mercury-ls/http-token", str(token))
        answer = subprocess.run(["sh", "-c", command], capture_output=True, check=True).stdout
        assert [json.loads(text) for text in SHOWN_TEXT.findall(shown)] == [
            choice["text"] for choice in json.loads(answer).get("choices", [])
        ]


def test_suggestion_is_fetched_taken_and_counted(serving, tmp_path):
    process, port = serving
    while asked(port, "/health")[1]["status"] != "ok":
        pass
    token = next((tmp_path / "state").rglob("http-token")).read_text().strip()
    body = {"path": "a.py", "prompt": "total = compute(1)\n" + "other = 2\n" * 9 + "total = ", "invoked": True}
    assert asked(port, "/v1/completions", body=body)[0] == 401
    status, answer = asked(port, "/v1/completions", token, body)
    assert (status, answer["choices"][0]["text"]) == (200, "compute(1)")
    assert asked(port, "/engine/v2/info", token)[1]["state"] == "ready"
    assert asked(port, "/feedback", token, {"request_id": answer["id"], "user_action": "accept"})[1] == {
        "counted": True
    }
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    (counts,) = (json.loads(line) for line in next((tmp_path / "state").rglob("stats.jsonl")).read_text().splitlines())
    assert (counts["language"], counts["shown"], counts["accepted"], counts["characters"]) == ("python", 1, 1, 10)
