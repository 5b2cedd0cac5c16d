"""Requests as programs send them, and what each of them needs to find in the answer."""

import json

import pytest

from bench.abuse.canaries import REQUESTS
from mercury_engine.fake import FakeEngine
from tests.mercury_ls.web.serving import client, served


@pytest.mark.parametrize("path", REQUESTS, ids=lambda path: path.stem)
async def test_program_is_answered_as_it_expects(path):
    sent = json.loads(path.read_text(encoding="utf-8"))
    async with served(FakeEngine(sent["engine"] or None)) as (_, app), client(app, **sent["headers"]) as asking:
        answer = await asking.post(sent["path"], json=sent["body"])
    assert answer.status_code == 200
    said = streamed(answer.text) if sent["body"].get("stream") else answer.json()
    assert {name: at(said, name) for name in sent["answer"]} == sent["answer"]
    if sent["body"].get("response_fields"):
        assert set(said) == set(filter(None, sent["body"]["response_fields"]))


def streamed(text):
    """The last event before the end of the stream."""
    *events, last = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    assert last == "[DONE]"
    return json.loads(events[-1])


def at(value, name):
    for part in name.split("."):
        value = value[int(part) if part.isdigit() else part]
    return value
