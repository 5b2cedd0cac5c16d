"""An analyser that hangs, dies or answers nonsense delays nothing, and is left alone for a while."""

import asyncio

import pytest

from mercury_ls.code.documents import Document
from mercury_ls.names.known import NameList
from mercury_ls.names.learner import Learner, Wanted
from mercury_ls.names.places import at_cursor
from tests.mercury_ls.clock import Clock

REAL = NameList(("real",))


class Failing:
    """Fails as it is told to, as long as `failure` is set."""

    languages, only_cursor = None, False

    def __init__(self, failure):
        self.failure = failure
        self.asked = 0

    async def ask(self, ask):
        self.asked += 1
        if self.failure == "hangs":
            await asyncio.Event().wait()
        if isinstance(self.failure, Exception):
            raise self.failure
        return REAL

    async def close(self):
        pass


def wanted(version=1, text="x = a."):
    snapshot = Document("file:///a.py", "/a.py", "python", version, text).snapshot()
    return Wanted(snapshot, at_cursor(snapshot, len(text))[0])


async def learned(learner, each):
    learner.want([each])
    await learner.settled()
    return learner.known(each)


@pytest.mark.parametrize("failure", ["hangs", EOFError("it died"), ValueError("nonsense"), TypeError("a bug")])
async def test_after_a_failure_it_rests(failure):
    clock, analyser = Clock(), Failing(failure)
    learner = Learner(analyser, clock, patience=0.01)
    assert await learned(learner, wanted()) is None
    analyser.failure = None
    assert await learned(learner, wanted()) is None
    assert analyser.asked == 1
    clock.now = 6.0
    assert await learned(learner, wanted()) == REAL
    await learner.close()


async def test_failures_make_the_rest_longer():
    clock, analyser = Clock(), Failing(EOFError())
    learner = Learner(analyser, clock)
    for clock.now, asked in ((0.0, 1), (5.0, 2), (14.0, 2), (15.0, 3)):
        await learned(learner, wanted())
        assert analyser.asked == asked
    await learner.close()


async def test_malformed_names_are_left_out():
    class Odd(Failing):
        async def ask(self, ask):
            return NameList(("real", "print(…)", "", "#private", "empty?"))

    learner = Learner(Odd(None))
    known = await learned(learner, wanted())
    assert known.names == ("real", "#private", "empty?")
    assert not known.complete
    await learner.close()
