"""What a session learns from answers, shown or not, by the text that is then written."""

import pytest
from msgspec.structs import replace

from mercury_engine.fake import FakeEngine
from mercury_ls.settings.schema import Settings, SuggestSettings
from tests.mercury_ls.session.test_session import ANSWER, ask, started

PLAIN = replace(FakeEngine().info(), calibrated=False)


async def typed(session, line: str) -> None:
    for at in range(4, len(line) + 1):
        await ask(session, f"{line[:at]}$0\n")


def learned(session) -> list[tuple[bool, bool]]:
    return [(fate.kept, fate.shown) for fates in session.questions.outcomes._all.values() for fate in fates]


@pytest.mark.parametrize("bar", [0.25, 0.99])
async def test_typing_an_answer_through_keeps_it_once_seen_or_not(bar):
    session = await started(FakeEngine(ANSWER, info=PLAIN), Settings(suggest=SuggestSettings(minimum_probability=bar)))
    await typed(session, "x = compute(y)")
    assert [fate for fate in learned(session) if fate[0]] == [(True, bar == 0.25)]
    await session.end()


@pytest.mark.parametrize("bar", [0.25, 0.99])
async def test_typing_something_else_does_not(bar):
    session = await started(FakeEngine(ANSWER, info=PLAIN), Settings(suggest=SuggestSettings(minimum_probability=bar)))
    before = (await ask(session, "x = $0\n")).offer
    await typed(session, "x = None")
    assert learned(session)[0] == (False, bar == 0.25)
    if before:
        assert (await ask(session, "x = $0\n")).offer.p_accept < before.p_accept
    await session.end()


async def test_accepted_or_dismissed_suggestion_counts_once():
    session = await started(FakeEngine(ANSWER, info=PLAIN), Settings(suggest=SuggestSettings(minimum_probability=0.25)))
    offer = (await ask(session, "x = $0\n")).offer
    session.accepted(offer.id)
    await ask(session, "x = compute(y)$0\n")
    assert learned(session) == [(True, True)]
    session.rejected((await ask(session, "z = $0\n")).offer.id)
    assert learned(session) == [(True, True), (False, True)]
    await session.end()
