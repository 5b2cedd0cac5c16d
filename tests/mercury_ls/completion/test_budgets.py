"""What follows from an engine's pace: how long to wait, how much to ask for, how much to read along."""

import pytest
from msgspec.structs import replace

from mercury_engine.api import EngineInfo
from mercury_ls.completion.budgets import MEASURED, EnginePace, budgets_for
from mercury_ls.models.library import MeasuredSpeed
from mercury_ls.settings.schema import ContextSettings, EngineSettings, Settings, SuggestSettings

WEAK = EngineInfo("mercury", "weak", "cpu", 2048)
GUESSING = replace(WEAK, calibrated=False)
STRONG = EngineInfo("server", "qwen", "http", 32_768, strong=True, grows=True)


def pace_of(first_ms: float, per_second: float, info: EngineInfo = STRONG) -> EnginePace:
    pace = EnginePace()
    pace.follow(info)
    for _ in range(3):
        pace.measured(first_ms, per_second, 1.0)
    return pace


def check(info, pace, *, deadline_ms, pause_ms, tokens, context, ahead, settings=None):
    budgets = budgets_for(info, pace, settings or Settings())
    figures = (budgets.deadline_ms, budgets.pause_ms, budgets.tokens, budgets.context.tokens, budgets.writes_ahead)
    assert figures == (deadline_ms, pause_ms, tokens, context, ahead)


def test_small_model_gets_little_of_everything():
    check(WEAK, pace_of(20, 500), deadline_ms=1000, pause_ms=0, tokens=64, context=2048, ahead=True)
    check(None, EnginePace(), deadline_ms=1000, pause_ms=0, tokens=64, context=2048, ahead=False)


def test_strong_model_gets_what_its_pace_allows():
    check(STRONG, EnginePace(), deadline_ms=5000, pause_ms=0, tokens=128, context=2048, ahead=True)
    check(STRONG, pace_of(150, 200), deadline_ms=5720, pause_ms=0, tokens=256, context=8192, ahead=True)
    check(STRONG, pace_of(400, 40), deadline_ms=11_600, pause_ms=0, tokens=100, context=4096, ahead=True)
    check(STRONG, pace_of(3000, 5), deadline_ms=15_000, pause_ms=0, tokens=64, context=2048, ahead=True)


def test_paid_model_waits_a_moment_and_asks_for_nothing_ahead():
    metered = replace(STRONG, metered=True)
    check(metered, EnginePace(), deadline_ms=5000, pause_ms=150, tokens=128, context=2048, ahead=False)


def test_context_and_deadline_follow_how_quickly_the_engine_reads():
    def reading(tokens, per_second, awaited=0, info=STRONG):
        engine = "autoregressive" if info.strong else "mercury"
        fields = {"context_tokens": tokens, "awaited_tokens": awaited, "reads_per_second": per_second}
        return replace(info, engine=engine, **fields)

    check(reading(512, 40), EnginePace(), deadline_ms=12_800, pause_ms=0, tokens=128, context=512, ahead=True)
    check(reading(512, 150), EnginePace(), deadline_ms=5000, pause_ms=0, tokens=128, context=512, ahead=True)
    check(reading(2048, 40, 256), EnginePace(), deadline_ms=6400, pause_ms=0, tokens=128, context=2048, ahead=True)
    check(reading(8192, 9000), EnginePace(), deadline_ms=5000, pause_ms=0, tokens=128, context=8192, ahead=True)
    check(reading(512, 10), EnginePace(), deadline_ms=15_000, pause_ms=0, tokens=128, context=512, ahead=True)
    weak = reading(2048, 100, 256, WEAK)
    check(weak, EnginePace(), deadline_ms=2560, pause_ms=0, tokens=64, context=2048, ahead=True)
    weak = reading(2048, 9000, 2048, WEAK)
    check(weak, EnginePace(), deadline_ms=1000, pause_ms=0, tokens=64, context=2048, ahead=True)


def test_figures_are_reported():
    budgets = budgets_for(replace(STRONG, metered=True), pace_of(400, 40), Settings())
    asked = "asked after 150 ms for 100 tokens within 11.6 s, not ahead of the user"
    assert str(budgets) == f"{asked}; reads 4096 tokens of context"


def test_delay_is_longer_only_for_a_strong_model_that_was_just_wrong():
    assert budgets_for(WEAK, EnginePace(), Settings()).pause_after_miss_ms == 0
    assert budgets_for(STRONG, EnginePace(), Settings()).pause_after_miss_ms == 500


@pytest.mark.parametrize(
    ("info", "bar"),
    [
        (None, 0.25),
        (WEAK, 0.78),
        (replace(WEAK, bar=0.5), 0.5),
        (replace(GUESSING, bar=0.77), 0.77),
    ],
)
def test_bar_is_the_models_own(info, bar):
    assert budgets_for(info, EnginePace(), Settings()).bar == bar
    chosen = Settings(suggest=SuggestSettings(minimum_probability=0.4))
    assert budgets_for(info, EnginePace(), chosen).bar == 0.4


def test_settings_win():
    settings = Settings(
        engine=EngineSettings(deadline_ms=70),
        suggest=SuggestSettings(delay_ms=0, max_tokens=9, ahead="on"),
        context=ContextSettings(budget_tokens=500),
    )
    metered = replace(STRONG, metered=True)
    check(metered, EnginePace(), deadline_ms=70, pause_ms=0, tokens=9, context=500, ahead=True, settings=settings)


def test_slow_answer_changes_little_and_another_engine_begins_anew():
    pace = pace_of(100, 50)
    pace.measured(9000, 1, 9.0)
    assert (pace.first_token_ms, pace.tokens_per_second) == (100, 50)
    for _ in range(MEASURED):
        pace.measured(900, 10, 1.0)
    assert str(pace) == "first token after 900 ms, 10 tokens/s after it (median of the last 16)"
    pace.follow(WEAK)
    assert pace.first_token_ms == 0


def test_model_test_figures_are_known_from_the_start():
    pace = EnginePace(lambda: {"qwen": MeasuredSpeed(900, 500, 10, 0, first_ms=200, tokens_per_second=60)})
    pace.follow(STRONG)
    assert (pace.first_token_ms, pace.tokens_per_second) == (200, 60)
