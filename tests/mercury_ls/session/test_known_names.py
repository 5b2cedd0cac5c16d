"""The names that exist go with a request once they are known, and no request waits for them."""

from contextlib import aclosing

import pytest

from bench.harness.in_process import InProcessClient
from mercury_engine.api import Members
from mercury_engine.fake import FakeEngine
from mercury_ls.names.known import NameList
from mercury_ls.names.members import NameSources
from mercury_ls.session.wiring import Wiring
from mercury_ls.settings.schema import ContextSettings

URI = "file:///project/file.py"


class Listening(FakeEngine):
    """A fake engine that keeps the last request."""

    def fill(self, gap):
        self.gap = gap
        return super().fill(gap)


class Analyser:
    languages, only_cursor = None, False

    def __init__(self):
        self.closed = False

    async def ask(self, ask):
        return NameList(("join", "split"))

    async def close(self):
        self.closed = True


@pytest.fixture
async def engine():
    return Listening({".": "join(a)"})


@pytest.fixture
async def session(engine, tmp_path):
    client = InProcessClient(engine)
    await client.start()
    wiring = Wiring(user_file=tmp_path / "none", environ={}, make_engine=lambda settings, on_status: client)
    made = wiring.session([], {}, lambda status: None)
    made.know_names(NameSources([Analyser()]))
    yield made
    await made.end()


async def ask(session, text, *, invoked=True):
    if URI in session.files.documents:
        session.change(URI, session.files.documents[URI].version + 1, [(None, text)], "utf-16")
    else:
        session.open(URI, "/project/file.py", "python", 1, text)
    async with aclosing(session.inline(URI, len(text), invoked=invoked)) as answers:
        async for _ in answers:
            pass


async def test_first_request_at_place_has_no_names_and_next_has_them(session, engine):
    await ask(session, "x = path.")
    assert engine.gap.members == ()
    await session.questions.names.settled()
    await ask(session, "x = path.s")
    assert engine.gap.members[0] == Members("", ("split",))


@pytest.mark.parametrize("invoked", [False, True])
async def test_nearby_names_are_learned_while_nobody_types(session, engine, invoked):
    session.open(URI, "/project/file.py", "python", 1, "def f(path):\n    x = ")
    session.files.cursors[URI] = len("def f(path):\n    x = ")
    session.idle.look_ahead()
    await session.questions.names.settled()
    await ask(session, "def f(path):\n    x = ", invoked=invoked)
    assert engine.gap.members == (Members("path", ("join", "split")),)


async def test_other_rules_make_what_is_known_unknown_and_the_analyser_ends(session):
    before = session.questions.names
    session.open(URI, "/project/file.py", "python", 1, "x = path.")
    before.look_ahead(session.files.documents[URI].snapshot(), 9)
    await before.settled()
    (analyser,) = before.analysers
    session.know_names(NameSources())
    await before._closing
    assert analyser.closed
    assert session.questions.names.about(session.files.documents[URI].snapshot(), 9) == ()


def test_known_names_can_be_switched_off(tmp_path):
    settings = tmp_path / "settings.toml"
    settings.write_text("[context]\nanalysed_names = false\n")
    wiring = Wiring(
        user_file=settings, environ={}, make_engine=lambda settings, on_status: InProcessClient(FakeEngine({}))
    )
    names = wiring.session([], {}, lambda status: None).questions.names
    assert ContextSettings().analysed_names
    assert names.analysers == ()
