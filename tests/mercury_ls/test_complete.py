import asyncio

import pytest

from bench.harness.in_process import InProcessClient
from mercury_engine.fake import FakeEngine
from mercury_ls import complete as oneshot
from mercury_ls.complete import PlaceError, complete
from mercury_ls.link.client import Status


class NeverReady(InProcessClient):
    async def start(self):
        self.status = Status("starting")


class NotWanted(InProcessClient):
    async def start(self):
        raise AssertionError("there is nothing to ask an engine")


pytestmark = pytest.mark.usefixtures("home")


def ask(path, line, column, client=InProcessClient, **wiring):
    def engine(settings, on_status):
        return client(FakeEngine(lambda before: "answer"), on_status=on_status)

    return asyncio.run(complete(str(path), line, column, environ={}, make_engine=engine, **wiring))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("def load():\n    return \n")
    return path


def test_answer_for_place_is_plain_data(file):
    reply = ask(file, 2, 12)
    assert (reply["engine"], reply["silence"], reply["problems"]) == ("fake", "", [])
    assert [(item["start"], item["text"]) for item in reply["items"]] == [(23, "answer")]


def test_project_around_file_is_reported(file, tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    (tmp_path / "b.py").write_text("def load():\n    return open(path)\n")
    told = []
    monkeypatch.setattr(FakeEngine, "fill", lambda engine, gap: told.extend(gap.snippets) or iter(()))
    ask(file, 2, 12)
    assert [snippet.text for snippet in told] == ["def load():\n    return open(path)"]


def test_settings_mistakes_come_with_the_answer(file, tmp_path):
    (tmp_path / ".mercury.toml").write_text("suggest.delay_ms = 'long'")
    reply = ask(file, 2, 12, arguments={"engine.effort": "bogus"})
    assert [problem.partition(" = ")[0].rpartition(": ")[2] for problem in reply["problems"]] == [
        "suggest.delay_ms",
        "engine.effort",
    ]
    assert reply["items"]


@pytest.mark.parametrize(("line", "column", "said"), [(4, 1, "has 3 lines"), (2, 13, "line 2 has 12 columns")])
def test_engine_is_not_started_for_a_place_that_does_not_exist(file, line, column, said):
    with pytest.raises(PlaceError, match=said):
        ask(file, line, column, NotWanted)


def test_private_file_is_neither_read_nor_asked_about(tmp_path):
    assert "private" in ask(tmp_path / ".env", 9, 9, NotWanted)["silence"]


def test_engine_that_never_comes_is_an_error_with_remedy(file, monkeypatch):
    monkeypatch.setattr(oneshot, "PATIENCE_SECONDS", 0.01)
    with pytest.raises(TimeoutError, match=r"the engine is still starting .* `mercury-ls doctor`"):
        ask(file, 1, 1, NeverReady)


def test_link_with_private_name_is_private(file):
    (file.parent / ".env").symlink_to(file)
    assert ask(file.parent / ".env", 2, 12, NotWanted)["silence"].startswith("the file is private: secret pattern")
