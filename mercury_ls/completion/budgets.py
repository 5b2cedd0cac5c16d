"""How long to wait, how much to ask for and how much to read along: what follows from the engine's measured pace."""

from collections import deque
from collections.abc import Callable, Mapping
from statistics import median
from typing import TYPE_CHECKING

from msgspec import Struct

from mercury_engine.api import EngineInfo
from mercury_ls.completion.context import ContextBudget
from mercury_ls.settings.schema import Settings

if TYPE_CHECKING:
    from mercury_ls.models.library import MeasuredSpeed

MEASURED = 16
"""The last answers from which the pace is taken."""
WEAK_DEADLINE_MS, LEAST_DEADLINE_MS, LONGEST_DEADLINE_MS = 1000.0, 5000.0, 15_000.0
SLOWEST_ANSWERS = 4
"""How many times its usual time an answer may take."""
WRITING_SECONDS = 2.5
"""What is written later than that is rarely still of use."""
LEAST_TOKENS, USUAL_TOKENS, MOST_TOKENS = 64, 128, 256
METERED_PAUSE_MS = 150.0
"""The usual time between two keys: who types on does not pay for an answer in between."""
PAUSE_AFTER_MISS_MS = 500.0
"""A strong model that has just been wrong about a line is likely to be wrong about the rest of it."""
USUAL_BAR = 0.25
"""For next edits, and for completions of other programs that say nothing of how sure they are."""
READ_BY_FIRST_TOKEN_MS = ((250.0, 8192), (600.0, 4096))
"""How many tokens of context to read where the first token comes within so many milliseconds."""
USUAL_CONTEXT = 2048


class EnginePace:
    """How quickly one engine has answered lately, as this client saw it. A median is not moved by one slow answer."""

    def __init__(self, tested: Callable[[], Mapping[str, "MeasuredSpeed"]] = dict) -> None:
        self._tested = tested
        self._model = ""
        self._first_ms: deque[float] = deque(maxlen=MEASURED)
        self._per_second: deque[float] = deque(maxlen=MEASURED)

    def follow(self, info: EngineInfo | None) -> None:
        """Forgets what another engine did; of a new one it knows what `mercury-ls model test` measured."""
        model = f"{info.model} {info.device}" if info else ""
        if model != self._model:
            self._model = model
            self._first_ms.clear()
            self._per_second.clear()
            measured = self._tested().get(info.model) if info else None
            if measured and measured.first_ms:
                self._first_ms.append(measured.first_ms)
            if measured and measured.tokens_per_second:
                self._per_second.append(measured.tokens_per_second)

    def measured(self, first_ms: float, later: float, seconds: float) -> None:
        """An answer whose first draft came after `first_ms`, and the `later` tokens within `seconds` of that."""
        self._first_ms.append(first_ms)
        if later > 0 and seconds > 0:
            self._per_second.append(later / seconds)

    @property
    def first_token_ms(self) -> float:
        """0 where it is not known yet."""
        return median(self._first_ms) if self._first_ms else 0.0

    @property
    def tokens_per_second(self) -> float:
        """0 where it is not known yet."""
        return median(self._per_second) if self._per_second else 0.0

    def __str__(self) -> str:
        speed = f", {self.tokens_per_second:.0f} tokens/s after it" if self._per_second else ""
        return f"first token after {self.first_token_ms:.0f} ms{speed} (median of the last {len(self._first_ms)})"


class Budgets(Struct, frozen=True):
    """`pause_after_miss_ms`: how long to wait at least where the user has just typed something else than the last
    answer. `writes_ahead`: whether to ask for what follows a suggestion before it is taken. `bar`: how likely a
    completion has to be to be shown."""

    deadline_ms: float
    pause_ms: float
    pause_after_miss_ms: float
    tokens: int
    context: ContextBudget
    writes_ahead: bool
    bar: float

    def __str__(self) -> str:
        return (
            f"asked after {self.pause_ms:.0f} ms for {self.tokens} tokens within {self.deadline_ms / 1000:.1f} s, "
            f"{'also' if self.writes_ahead else 'not'} ahead of the user; reads {self.context.tokens} tokens of context"
        )


def budgets_for(info: EngineInfo | None, pace: EnginePace, settings: Settings) -> Budgets:
    """What the settings say, and what they leave open by the engine's pace. A model that is not strong gets little of
    everything: what it says later, or with more context, is hardly ever better."""
    is_weak = info is None or not info.strong
    tokens, context = _tokens_for(is_weak, pace), _context_for(info, pace, settings)
    reading_ms = info.reading_ms(info.awaited_tokens or context.tokens) if info else 0.0
    pause_ms = METERED_PAUSE_MS if info and info.metered else 0.0
    suggest, engine = settings.suggest, settings.engine
    return Budgets(
        deadline_ms=engine.deadline_ms or _deadline_for(is_weak, pace, tokens, reading_ms),
        pause_ms=suggest.delay_ms if suggest.delay_ms >= 0 else pause_ms,
        pause_after_miss_ms=0.0 if is_weak else PAUSE_AFTER_MISS_MS,
        tokens=suggest.max_tokens or tokens,
        context=context,
        writes_ahead=suggest.ahead == "on" or (suggest.ahead == "auto" and info is not None and not info.metered),
        bar=bar_of(settings, info.bar if info else USUAL_BAR),
    )


def bar_of(settings: Settings, usual: float = USUAL_BAR) -> float:
    chosen = settings.suggest.minimum_probability
    return usual if chosen < 0 else chosen


def _deadline_for(is_weak: bool, pace: EnginePace, tokens: int, reading_ms: float) -> float:
    """Long enough for what an answer at a new place waits for."""
    speed = pace.tokens_per_second
    writing_ms = 1000 * tokens / speed if speed else 0.0
    usual = 0.0 if is_weak else SLOWEST_ANSWERS * (pace.first_token_ms + writing_ms)
    least = WEAK_DEADLINE_MS if is_weak else LEAST_DEADLINE_MS
    return min(max(usual, reading_ms + writing_ms, least), LONGEST_DEADLINE_MS)


def _tokens_for(is_weak: bool, pace: EnginePace) -> int:
    if is_weak:
        return LEAST_TOKENS
    speed = pace.tokens_per_second
    return min(max(int(WRITING_SECONDS * speed), LEAST_TOKENS), MOST_TOKENS) if speed else USUAL_TOKENS


def _context_for(info: EngineInfo | None, pace: EnginePace, settings: Settings) -> ContextBudget:
    limit = settings.context
    tokens = limit.budget_tokens or _usual_context(info, pace)
    if info is None:
        return ContextBudget(tokens=tokens, snippets=limit.snippets)
    return ContextBudget(min(tokens, info.context_tokens or tokens), info.characters_per_token, limit.snippets)


def _usual_context(info: EngineInfo | None, pace: EnginePace) -> int:
    """What an engine that knows how quickly it reads says itself; more of a server that is known to read it quickly."""
    first_ms = pace.first_token_ms
    if info is None:
        return USUAL_CONTEXT
    if info.reads_per_second:
        return info.context_tokens
    if info.engine != "server" or not first_ms:
        return USUAL_CONTEXT
    return next((tokens for most_ms, tokens in READ_BY_FIRST_TOKEN_MS if first_ms <= most_ms), USUAL_CONTEXT)
