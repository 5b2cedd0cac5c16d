"""What is asked over HTTP goes the way of what is typed in an editor."""

import asyncio
import hashlib

import pytest
from msgspec.structs import replace

from mercury_engine.api import Edit
from mercury_engine.fake import FakeEngine
from mercury_ls.serve.access import Access
from mercury_ls.session.open_files import OpenFiles
from mercury_ls.settings.schema import Settings, SuggestSettings
from mercury_ls.web.service import LONG_TEXT, ApiClient, Wish
from mercury_ls.web.text import Text
from tests.engine.prompts.published import REWRITTEN, Case, Change
from tests.mercury_ls.web.serving import client, served

AREA = {"prompt": "def area(w, h):\n    ", "path": "a.py"}


async def said(engine=None, settings=None, **body):
    async with served(engine or FakeEngine({"def area": "return w * h"}), settings) as (_, app), client(app) as asking:
        return (await asking.post("/v1/completions", json=AREA | body)).json()["choices"]


@pytest.mark.parametrize(
    ("body", "silence"),
    [
        ({"path": ".env"}, "the file is private: secret pattern `*.env`"),
        ({"prompt": "def area(w, h):\n    re", "suffix": "turn w * h\n"}, "the cursor is inside a word"),
        ({"prompt": "\0" + AREA["prompt"]}, "the file is binary"),
        ({"prompt": "nothing known\n"}, "empty: the model adds nothing here"),
    ],
)
async def test_silence_has_its_reason(body, silence):
    (choice,) = await said(**body)
    assert choice["text"] == ""
    assert choice["mercury"]["silence"] == silence


async def test_settings_are_those_of_the_editors():
    (choice,) = await said(settings=Settings(suggest=SuggestSettings(languages={"python": False})))
    assert choice["mercury"]["silence"] == "off for python (suggest.languages)"
    code_alone = Settings(suggest=SuggestSettings(in_comments=False))
    (choice,) = await said(settings=code_alone, prompt="# a comm", suffix="")
    assert choice["mercury"]["silence"] == "inside a comment (suggest.in_comments is off)"


async def test_explicit_request_is_answered_where_typing_is_not_interrupted():
    (choice,) = await said(prompt="# def area", invoked=True)
    assert choice["text"]


async def test_other_files_are_context():
    prompt = "<|repo_name|>shop\n<|file_sep|>b.py\ndef volume(w, h, d):\n    return w * h * d\n<|file_sep|>a.py\n"
    prompt += "<|fim_prefix|>def volume(w, h, d):\n    <|fim_suffix|>\n<|fim_middle|>"
    (choice,) = await said(FakeEngine(), prompt=prompt, path="")
    assert choice["text"] == "return w * h * d"


@pytest.mark.parametrize(
    ("body", "text", "finish"),
    [
        ({"max_tokens": 8}, "return w * h", "stop"),
        ({"max_tokens": 7}, "return w * h", "length"),
        ({"max_tokens": 7, "stop": " w"}, "return", "stop"),
        ({"prompt": "nothing known\n", "max_tokens": 1}, "", "stop"),
    ],
)
async def test_answer_that_used_up_its_tokens_says_so(body, text, finish):
    (choice,) = await said(**body, invoked=True)
    assert (choice["text"], choice["finish_reason"]) == (text, finish)


async def test_stops_cut_and_choices_differ():
    (choice,) = await said(stop=" *")
    assert choice["text"] == "return w"
    copied = "total = first(1)\n" + "pass\n" * 9 + "total = second(2)\n" + "pass\n" * 9 + "total = "
    choices = await said(FakeEngine(), prompt=copied, n=3, invoked=True)
    assert len({choice["text"] for choice in choices}) == len(choices) > 1


async def test_outcome_of_an_answer_is_counted_once():
    async with served(FakeEngine({"def area": "return w * h"})) as (service, app), client(app) as asking:
        for action, counted in (("accept", True), ("accept", False), ("reject", False)):
            if action == "accept" and counted:
                id = (await asking.post("/v1/completions", json=AREA)).json()["id"]
            answer = await asking.post("/feedback", json={"request_id": id, "user_action": action})
            assert answer.json() == {"counted": counted}
        rejected = (await asking.post("/v1/completions", json=AREA)).json()["id"]
        await asking.post("/feedback", json={"request_id": rejected, "user_action": "reject", "provider_name": "x"})
        unknown = await asking.post("/feedback", json={"request_id": "unknown", "user_action": "ignore"})
        assert unknown.json() == {"counted": False}
        (row,) = service.stats.rows()
        figures = (await asking.get("/metrics")).text
    assert (row.language, row.shown, row.accepted, row.rejected, row.characters) == ("python", 2, 1, 1, 12)
    assert 'mercury_suggestions_total{kind="inline",outcome="accepted"} 1.0' in figures
    assert 'mercury_http_requests_total{path="/v1/completions",status="200"} 2.0' in figures


@pytest.mark.parametrize("action", ["accept", "reject", "ignore"])
async def test_outcome_of_an_answer_is_for_its_user_to_say(action):
    users = {hashlib.sha256(name.encode()).hexdigest(): name for name in ("ann", "bob")}
    async with (
        served(FakeEngine({"def area": "return w * h"}), access=Access(users=users)) as (_, app),
        client(app, authorization="Bearer ann") as ann,
        client(app, authorization="Bearer bob") as bob,
    ):
        said = {"request_id": (await ann.post("/v1/completions", json=AREA)).json()["id"], "user_action": action}
        counted = [(await asking.post("/feedback", json=said)).json()["counted"] for asking in (bob, ann, ann)]
    assert counted == [False, True, False]


async def test_rejections_make_the_next_answers_less_likely():
    async with served(FakeEngine({"def area": "return w * h"})) as (_, app), client(app) as asking:
        chances = []
        for _ in range(4):
            answer = (await asking.post("/v1/completions", json=AREA)).json()
            chances.append(answer["choices"][0]["mercury"]["p_accept"])
            await asking.post("/feedback", json={"request_id": answer["id"], "user_action": "reject"})
        assert chances == sorted(chances, reverse=True)
        assert chances[-1] < chances[0]


@pytest.mark.parametrize(
    "body",
    [
        {"input_prefix": "def area(w, h):\n", "prompt": "    ", "n_predict": 0},
        {"input_extra": [{"text": "def area(w, h):\n", "filename": "a.py"}], "n_predict": 0},
        {},
    ],
)
async def test_warming_and_silent_requests_are_answered_without_the_engine(body):
    engine = FakeEngine()
    async with served(engine) as (_, app), client(app) as asking:
        assert (await asking.post("/infill", json=body)).json()["content"] == ""
    assert engine.fills == 0


@pytest.mark.parametrize(("length", "expected"), [(LONG_TEXT + 1, 1), (1000, 3)])
async def test_long_texts_are_opened_one_after_the_other(monkeypatch, length, expected):
    """With 60 at once everybody else waited for 20 seconds."""
    now, counts, parsed = 0, [], OpenFiles.parsed

    async def counted(files, uri):
        nonlocal now
        now += 1
        counts.append(now)
        await asyncio.sleep(0)
        await parsed(files, uri)
        now -= 1

    monkeypatch.setattr(OpenFiles, "parsed", counted)
    async with served(FakeEngine()) as (service, _):
        text = Text("a.txt", "x" * length, 0)
        await asyncio.gather(*(service.context(text, Wish(), ApiClient()) for _ in range(3)))
    assert max(counts) == expected


async def test_users_have_tokens_of_their_own():
    users = {hashlib.sha256(b"ann's").hexdigest(): "ann"}
    async with served(access=Access(users=users)) as (_, app):
        for token, status in (("ann's", 200), ("bob's", 401), ("", 401)):
            async with client(app, authorization=f"Bearer {token}") as asking:
                assert (await asking.get("/v1/models")).status_code == status


async def test_without_a_token_pages_and_other_names_are_still_refused():
    async with served(access=Access()) as (_, app), client(app, authorization="") as asking:
        assert (await asking.get("/v1/models")).status_code == 200
        assert (await asking.get("/v1/models", headers={"host": "rebound.example.com"})).status_code == 403
        assert (await asking.get("/v1/models", headers={"origin": "https://evil.example.com"})).status_code == 403


@pytest.mark.parametrize(("line", "written"), [("return width", True), ("def area", False)])
async def test_line_away_from_the_last_edit_is_rewritten_where_nothing_else_is_known(line, written):
    text = "def area(width, height):\n    return 1\n\n\n\ndef longer(width):\n    return width\n"
    edit = Edit("a.py", 0, "def area(width):\n", "def area(width, height):\n")
    engine = FakeEngine(
        {"return width\n": "return width * height\n"},
        info=replace(FakeEngine().info(), rewrites=True, rewrites_lines=True),
    )
    async with served(engine) as (service, _):
        asked = Text("a.py", text, text.index(line), edits=(edit,))
        answer, rewritten = await service.rewrite(asked, (0, len(text)), Wish(id="one"), ApiClient())
    assert (rewritten != text) is written
    assert [edit.text for edit in answer.edits] == [" * height"] * written


class Listening(FakeEngine):
    """Keeps what it is asked."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def fill(self, gap):
        self.asked.append(gap)
        return super().fill(gap)


@pytest.mark.parametrize("dialect", ["zeta", "zeta-2", "mercury-edit"])
async def test_edits_of_hidden_files_do_not_reach_the_engine_in_any_dialect(dialect):
    canary = "tOp-SeCrEt-42"
    changes = [Change("b.py", "a = 1\n", "a = 2\n"), Change(".env", "TOKEN=\n", f"TOKEN={canary}\n")]
    prompt = REWRITTEN[dialect](Case("a.py", "x = 1\ny = \n", 10, changes=changes, files=[(".env.py", canary)]))
    engine = Listening()
    async with served(engine) as (_, app), client(app) as asking:
        if dialect == "mercury-edit":
            path, body = "/v1/edit/completions", {"messages": [{"role": "user", "content": prompt}]}
        else:
            path, body = "/v1/completions", {"prompt": prompt}
        answer = await asking.post(path, json=body)
    assert answer.status_code == 200, answer.text
    assert engine.asked
    assert canary not in repr(engine.asked)
    assert any(edit.path == "b.py" for request in engine.asked for edit in request.edits)
