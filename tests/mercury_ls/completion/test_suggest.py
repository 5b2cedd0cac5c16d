"""What of an engine's answer reaches the user."""

from mercury_engine.api import Draft, Filled
from mercury_ls.code.history import History
from mercury_ls.completion.calibration import Correction
from mercury_ls.completion.context import Budget, Related
from mercury_ls.completion.suggest import Question, suggest
from mercury_ls.settings.schema import SuggestSettings
from tests.marked import marked


class Says:
    def __init__(self, filled: Filled) -> None:
        self._filled = filled

    async def infill(self, request):
        yield Draft(1, (self._filled,), final=True)


async def check(
    text: str,
    expected: str,
    p: float = 0.5,
    *,
    complete: bool = False,
    invoked: bool = False,
    bar: float = 0.25,
    **known,
) -> None:
    """`expected` is what is shown, or "-" and the beginning of the reason for silence."""
    snapshot, offset = marked("def f(x):\n    $0\n")
    question = Question(
        snapshot=snapshot,
        offset=offset,
        history=History(),
        related=Related(snapshot.uri, 1, 0.0),
        settings=SuggestSettings(),
        budget=Budget(),
        session="s",
        bar=bar,
        invoked=invoked,
        **known,
    )
    *_, last = [answer async for answer in suggest(question, Says(Filled(text, (p,), p, complete)))]
    shown = [offer.edit.text for offer in last.offers]
    if expected.startswith("- "):
        assert not shown, shown
        assert last.silence.startswith(expected[2:])
    else:
        assert shown == [expected]


async def test_an_answer_is_shown_if_it_is_likely():
    await check("return x", "return x", 0.3, complete=True)
    await check("return x", "- unsure: 20% likely to be accepted, under the bar of 25%", 0.2, complete=True)


async def test_a_beginning_is_shown_if_it_saves_enough():
    await check("with open(x) as", "with open(x) as", 0.5)
    await check("with open(x) as", "- unsure how it goes on: it would save 4.5 keystrokes", 0.3)
    await check("return", "- unsure how it goes on", 0.8)
    await check("return", "return", 0.8, bar=0.2)
    await check("return", "return", 0.01, bar=0.0)


async def test_a_short_answer_is_shown_and_so_is_what_somebody_asks_for():
    await check("x = 1", "x = 1", 0.4, complete=True)
    await check("return", "return", 0.8, invoked=True)


async def test_a_model_is_asked_only_for_what_it_can_answer():
    await check("return x", "- the model only proposes next edits; ", modes=("region",))
    await check("return x", "- the model only completes lines", complete=True, modes=("line", "edit"))
    await check("return x", "return x", complete=True, modes=("line", "block"))


async def test_a_model_that_is_not_calibrated_is_corrected_before_the_bar():
    await check("return x", "- unsure: 15% likely", 0.5, complete=True, correction=Correction(shift=-1.75))
    await check("return x", "return x", 0.1, complete=True, correction=Correction(shift=1.75))
