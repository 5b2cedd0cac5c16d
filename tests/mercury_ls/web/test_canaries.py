"""What hidden files hold is not told to an engine, whichever field of whichever dialect it comes in."""

import json
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from bench.abuse.canaries import CANARY, HIDDEN, REQUESTS, hostile
from mercury_engine.fake import INFO, FakeEngine
from mercury_ls.settings.schema import PrivacySettings, Settings
from tests.mercury_ls.web.serving import client, served


class Told(FakeEngine):
    def __init__(self, *args, **known):
        super().__init__(*args, **known)
        self.told = []

    def fill(self, gap):
        self.told.append(gap)
        yield from super().fill(gap)

    def rewrite(self, regions):
        self.told.append(regions)
        yield from super().rewrite(regions)


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("path", REQUESTS, ids=lambda path: path.stem)
async def test_canaries_do_not_arrive(path, hidden):
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
async def test_same_edits_of_public_file_arrive(name):
    sent = json.loads((Path(REQUESTS[0]).parent / f"{name}.json").read_text(encoding="utf-8"))
    uncertain = json.loads(json.dumps(sent["body"]).replace("def total(", "# total("))  # a rename would be certain
    engine = Told(info=replace(INFO, fills=False, rewrites=True))
    async with served(engine) as (_, app), client(app, **sent["headers"]) as asking:
        await asking.post(sent["path"], json=hostile(uncertain, "shop/notes.py"))
    assert {edit.path for request in engine.told for edit in request.edits} >= {"notes.py"}
