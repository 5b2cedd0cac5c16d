"""Whom the judge of suggestions serves how well: made-up users and servers, without an editor or a model.

A user keeps what is right; a server is right with some probability, and gives no log probabilities, constant ones, ones
that say little, or ones that tell right answers from wrong ones. Of each pair: the share of answers shown, the share of
these that are right, and the share shown of what is worth showing to this user.
"""

import math
import random
from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct

from mercury_ls.completion.judge import MOST_OUTCOMES, UNTAUGHT, Evidence, Outcome, fitted

__all__ = ["SERVERS", "Served", "Server", "answered", "drawn", "measured"]

Server = Literal["none", "constant", "overlapping", "informative"]
SERVERS: tuple[Server, ...] = ("none", "constant", "overlapping", "informative")

BAR = 0.25
LEARNING, MEASURED = 300, 200
FITTED_EVERY = 10
"""Answers: a judge that learned from each would hardly decide otherwise."""
LINE_TOKENS, BLOCK_TOKENS = (2, 20), (10, 150)
TOKENS_PER_LINE, CHARACTERS_PER_TOKEN = 9, 4
CONSTANT = 0.12
RIGHT, VAGUELY_RIGHT, VAGUELY_WRONG = (0.06, 0.13), (0.05, 0.2), (0.08, 0.3)
"""Between which losses the mean of an answer's tokens lies."""
WRONG = 0.4
SPOILING = (1.6, 3.0)
"""The loss of the one to three wrong tokens of an answer that is otherwise sure of itself."""
CERTAIN = 1e6


class Answered(Struct, frozen=True):
    """An answer, and how likely somebody who knows the server would say that it is right."""

    evidence: Evidence
    is_right: bool
    chance: float


class Served(Struct, frozen=True):
    shown: float
    right_when_shown: float
    worth_showing_shown: float


def measured(
    server: Server, rate: float, learning: int = LEARNING, seed: int = 0, tokens: tuple[int, int] = LINE_TOKENS
) -> Served:
    """What the user sees of the next answers, after so many that the judge has learned from."""
    outcomes: list[Outcome] = []
    seen: list[tuple[Answered, bool]] = []
    judge = UNTAUGHT
    for number, answer in zip(range(learning + MEASURED), answered(server, rate, seed, tokens), strict=False):
        if learning and number % FITTED_EVERY == 0:
            judge = fitted(outcomes)
        is_shown = judge.chance(answer.evidence) >= BAR
        outcomes = [*outcomes[1 - MOST_OUTCOMES :], Outcome(answer.evidence, answer.is_right, is_shown)]
        if number >= learning:
            seen.append((answer, is_shown))
    return Served(
        share([is_shown for _, is_shown in seen]),
        share([answer.is_right for answer, is_shown in seen if is_shown]),
        share([is_shown for answer, is_shown in seen if answer.chance >= BAR]),
    )


def share(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def answered(server: Server, rate: float, seed: int, tokens: tuple[int, int] = LINE_TOKENS) -> Iterator[Answered]:
    draw = random.Random(f"{server} {rate} {seed}")
    while True:
        is_right = draw.random() < rate
        yield drawn(draw, server, is_right, rate, draw.randint(*tokens))


def drawn(draw: random.Random, server: Server, is_right: bool, rate: float, tokens: int) -> Answered:
    losses, odds = losses_of(draw, server, is_right, tokens)
    evidence = Evidence(
        p_accept=0.35,
        tokens=len(losses),
        total=-sum(losses),
        least=-max(losses, default=0.0),
        characters=CHARACTERS_PER_TOKEN * tokens,
        lines=1 if tokens <= LINE_TOKENS[1] else tokens // TOKENS_PER_LINE,
    )
    return Answered(evidence, is_right, rate * odds / (rate * odds + 1.0 - rate))


def losses_of(draw: random.Random, server: Server, is_right: bool, tokens: int) -> tuple[list[float], float]:
    """The tokens' losses, and how many times likelier they are if the answer is right."""
    if server == "none":
        return [], 1.0
    if server == "constant":
        return [CONSTANT] * tokens, 1.0
    if server == "overlapping":
        mean = draw.uniform(*(VAGUELY_RIGHT if is_right else VAGUELY_WRONG))
        losses = [draw.expovariate(1.0 / mean) for _ in range(tokens)]
        return losses, density(losses, VAGUELY_RIGHT) / density(losses, VAGUELY_WRONG)
    if is_right:
        mean = draw.uniform(*RIGHT)
        return [draw.expovariate(1.0 / mean) for _ in range(tokens)], CERTAIN
    if draw.random() < 0.5:
        return [draw.expovariate(1.0 / WRONG) for _ in range(tokens)], 0.0
    losses = [draw.expovariate(1.0 / RIGHT[1]) for _ in range(tokens)]
    for at in draw.sample(range(tokens), min(tokens, draw.randint(1, 3))):
        losses[at] = draw.uniform(*SPOILING)
    return losses, 0.0


def density(losses: Sequence[float], means: tuple[float, float], steps: int = 16) -> float:
    """Of these losses, each exponential with the same mean, which is anywhere between two others."""
    lowest, highest = means
    grid = [lowest + (highest - lowest) * (step + 0.5) / steps for step in range(steps)]
    return sum(math.exp(-sum(losses) / mean - len(losses) * math.log(mean)) for mean in grid) / steps
