"""What hidden files hold is not told to an engine, whichever field of whichever dialect it comes in."""

import json
from pathlib import Path

import msgspec
import pytest

from mercury_engine.fake import FakeEngine
from mercury_ls.settings.schema import PrivacySettings, Settings
from tests.mercury_ls.web.serving import client, served
from tests.mercury_ls.web.test_clients import REQUESTS

CANARY = "canary_4711"
HIDDEN = [".env", "shop/../.env", "keys/id_rsa", "/home/user/.ssh/config", "ignored/notes.py"]
CHANGE = f"@@ -1,2 +1,2 @@\n-{CANARY}_old = 1\n+{CANARY}_new = 2\n {CANARY}_below = 3\n"


def hostile(body, hidden):
    """The same request with a canary in another file and in an edit of a file that is hidden."""
    said = json.loads(json.dumps(body).replace("shop/prices.py", hidden).replace('{\\"tea\\": 3}', CANARY))
    for holder, name in [(said, "prompt"), *((message, "content") for message in said.get("messages", ()))]:
        if isinstance(text := holder.get(name), str):
            for a, b in (("a/", "b/"), ("", "")):
                header = f"--- {a}shop/total.py\n+++ {b}shop/total.py\n"
                text = text.replace(header, f"{diffs(a + hidden, b + hidden)}{header}")
            event = 'User edited "shop/total.py":\n'
            holder[name] = text.replace(event, f'User edited "{hidden}":\n```diff\n{CHANGE}```\n\n{event}')
    for extra in said.get("input_extra", ()):
        extra |= {"filename": hidden, "text": f"{CANARY} = 1\n" + extra["text"]}
    return said


def diffs(old, new):
    """An edit of the file, and what is said when it is deleted, made or given another name."""
    names = [(old, new), (old, "/dev/null"), ("/dev/null", new), (old, "b/shop/plain.py"), ("a/shop/plain.py", new)]
    return "".join(f"--- {before}\n+++ {after}\n{CHANGE}\n" for before, after in names)


class Told(FakeEngine):
    def __init__(self, *args):
        super().__init__(*args)
        self.told = []

    def infill(self, request):
        self.told.append(request)
        yield from super().infill(request)


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("path", REQUESTS, ids=lambda path: path.stem)
async def test_no_canary_arrives(path, hidden):
    sent = json.loads(path.read_text(encoding="utf-8"))
    engine = Told(sent["engine"] or None)
    settings = Settings(privacy=PrivacySettings(ignore=("ignored/",)))
    async with served(engine, settings) as (_, app), client(app, **sent["headers"]) as asking:
        answer = await asking.post(sent["path"], json=hostile(sent["body"], hidden))
    assert answer.status_code == 200
    told = msgspec.json.encode(engine.told).decode()
    assert CANARY not in told
    assert Path(hidden).name not in told


@pytest.mark.parametrize("name", ["zed-zeta", "zed-zeta2", "zed-zeta2.1", "cursortab-edit", "continue-edit"])
async def test_the_same_edits_of_a_public_file_arrive(name):
    sent = json.loads((Path(REQUESTS[0]).parent / f"{name}.json").read_text(encoding="utf-8"))
    engine = Told()
    async with served(engine) as (_, app), client(app, **sent["headers"]) as asking:
        await asking.post(sent["path"], json=hostile(sent["body"], "shop/notes.py"))
    assert {edit.path for request in engine.told for edit in request.edits} >= {"notes.py"}
