"""A request is answered by the engine that was tuned for the project of its file, as long as that is installed."""

import os
from concurrent.futures import Future
from threading import Event, current_thread

import msgspec
import pytest

from mercury_engine.api import Draft, EngineError, EngineInfo, InfillRequest, Span, Window
from mercury_engine.tuning_data import Figure, Tuning
from mercury_ls.serve.tuned import TunedEngine, folder_of, install, installed, remove


class Engine:
    """Says who it is."""

    def __init__(self, name):
        self.name = name

    def infill(self, request):
        yield Draft(1, (), final=True)
        yield self.name

    def warm(self, request):
        yield self.name

    def info(self):
        return EngineInfo("test", self.name, "cpu", 512, bytes=1)


class Opener:
    """Opens an engine under the name of what is in the adapter's folder. Remembers what was opened."""

    def __init__(self):
        self.opened = []
        self.broken = False

    def __call__(self, folder):
        self.opened.append((folder / "name").read_text())
        if self.broken:
            raise EngineError("was made for other weights")
        return Engine(self.opened[-1])


@pytest.fixture
def place(tmp_path):
    return tmp_path / "data" / "tuned"


@pytest.fixture
def opener():
    return Opener()


class Hand:
    """Another thread, that works when it is told to: at once, unless `waits`."""

    def __init__(self):
        self.waits = False
        self._orders = []

    def __call__(self, open_tuned, folder):
        self._orders.append((Future(), open_tuned, folder))
        future = self._orders[-1][0]
        if not self.waits:
            self.work()
        return future

    def work(self):
        for future, open_tuned, folder in self._orders:
            try:
                future.set_result(open_tuned(folder))
            except Exception as error:
                future.set_exception(error)
        self._orders.clear()


@pytest.fixture
def hand():
    return Hand()


@pytest.fixture
def engine(place, opener, hand):
    """With memory for the plain engine and two others."""
    return TunedEngine(Engine("plain"), opener, place, 3, start=hand)


def tuned(root, place, name, made="today"):
    """Installs an adapter as the trainer would leave it."""
    folder = place / "making"
    folder.mkdir(parents=True)
    (folder / "name").write_text(name)
    figures = (Figure("bits", 3, 2.0, 1.5, -0.6, -0.4),)
    fields = {"model": "m", "base": "b", "method": "rank 4", "minutes": 1.0, "better": True, "reason": ""}
    fields |= {"files": 9, "edits": 0, "steps": 1}
    tuning = Tuning(root=os.path.realpath(root), made=made, figures=figures, **fields)
    (folder / "adapter.json").write_bytes(msgspec.json.encode(tuning))
    return install(folder, os.path.realpath(root), place)


def who(engine, path):
    window = Window(str(path), "python", "x = 1\n")
    request = InfillRequest(session="s", windows=(window,), spans=(Span(0, 0, 0, "line"),))
    *_, name = engine.infill(request)
    assert [name] == list(engine.warm(request))
    return name


def test_files_in_a_tuned_project_are_answered_by_its_engine(engine, opener, place, tmp_path):
    tuned(tmp_path / "web", place, "for web")
    assert who(engine, tmp_path / "web/src/deep/app.py") == "for web"
    assert who(engine, tmp_path / "web/app.py") == "for web"
    assert who(engine, tmp_path / "website/app.py") == "plain"
    assert who(engine, "untitled") == "plain"
    assert opener.opened == ["for web"]
    assert engine.info().model == "plain"


def test_innermost_project_wins(engine, place, tmp_path):
    tuned(tmp_path / "mono", place, "outer")
    tuned(tmp_path / "mono/api", place, "inner")
    assert who(engine, tmp_path / "mono/api/a.py") == "inner"
    assert who(engine, tmp_path / "mono/b.py") == "outer"


def test_project_is_the_same_through_link(engine, place, tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    tuned(tmp_path / "link", place, "tuned")
    assert who(engine, tmp_path / "link/a.py") == who(engine, tmp_path / "real/a.py") == "tuned"


def test_tuned_model_installed_replaced_or_removed_counts_at_once(engine, place, tmp_path):
    file = tmp_path / "web/app.py"
    assert who(engine, file) == "plain"
    tuned(tmp_path / "web", place, "first")
    assert who(engine, file) == "first"
    tuned(tmp_path / "web", place, "second", made="tomorrow")
    assert who(engine, file) == "second"
    assert remove(os.path.realpath(tmp_path / "web"), place)
    assert who(engine, file) == "plain"
    assert not remove(os.path.realpath(tmp_path / "web"), place)


def test_tuned_model_not_open_yet_is_reported_and_the_plain_one_answers(engine, hand, place, tmp_path):
    hand.waits = True
    tuned(tmp_path / "web", place, "for web")
    assert [who(engine, tmp_path / "web/app.py") for _ in range(2)] == ["plain"] * 2
    (note,) = engine.info().notes
    assert note == f"loading the model tuned for {tmp_path / 'web'}; until then the untuned one is used for its files"
    hand.work()
    assert who(engine, tmp_path / "web/app.py") == "for web"
    assert engine.info().notes == ()


def test_tuned_model_removed_while_opening_answers_nothing(engine, hand, place, tmp_path):
    hand.waits = True
    tuned(tmp_path / "web", place, "for web")
    assert who(engine, tmp_path / "web/app.py") == "plain"
    remove(os.path.realpath(tmp_path / "web"), place)
    hand.work()
    assert who(engine, tmp_path / "web/app.py") == "plain"
    assert engine.info().notes == ()


def test_engines_are_opened_on_another_thread(place, tmp_path):
    threads, done = [], Event()

    def opened(folder):
        threads.append(current_thread())
        done.set()
        return Engine("tuned")

    engine = TunedEngine(Engine("plain"), opened, place, 3)
    tuned(tmp_path / "web", place, "for web")
    who(engine, tmp_path / "web/app.py")
    assert done.wait(10)
    assert threads[0] is not current_thread()


def test_as_many_engines_are_held_as_memory_has_room_for(engine, opener, place, tmp_path):
    for name in "abc":
        tuned(tmp_path / name, place, name)
    assert [who(engine, tmp_path / name / "x.py") for name in "abcba"] == ["a", "b", "c", "b", "a"]
    assert opener.opened == ["a", "b", "c", "a"]
    assert engine.info().bytes == 3


def test_unusable_tuned_model_is_reported_once_and_the_plain_one_answers(engine, opener, place, tmp_path, caplog):
    opener.broken = True
    tuned(tmp_path / "web", place, "web")
    assert [who(engine, tmp_path / "web/a.py") for _ in range(3)] == ["plain"] * 3
    assert [record.message for record in caplog.records] == [
        "cannot open a tuned model, using the untuned one instead: was made for other weights"
    ]


def test_tuned_model_failing_otherwise_leaves_the_plain_model(hand, place, tmp_path, caplog):
    def failing(folder):
        raise TypeError("not understood")

    engine = TunedEngine(Engine("plain"), failing, place, 3, start=hand)
    tuned(tmp_path / "web", place, "web")
    assert [who(engine, tmp_path / "web/a.py") for _ in range(3)] == ["plain"] * 3
    assert len(caplog.records) == 1


def test_misplaced_tuned_folder_is_ignored(engine, place, tmp_path):
    """An adapter says whose it is; copied elsewhere, or damaged, it is nobody's."""
    folder = tuned(tmp_path / "web", place, "web")
    folder.rename(place / "0123456789abcdef")
    damaged = folder_of(str(tmp_path / "other"), place)
    damaged.mkdir()
    (damaged / "adapter.json").write_text("{")
    assert installed(place) == {}
    assert who(engine, tmp_path / "web/a.py") == "plain"
