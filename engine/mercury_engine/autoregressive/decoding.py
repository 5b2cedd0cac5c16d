"""Greedy decoding on top of a cached prompt, several tokens in a forward where a verified draft allows."""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from mercury_engine.autoregressive.answer import Continuation, ContinuationQuestion
from mercury_engine.decode.choice import Choice
from mercury_engine.decode.decoding import Decoder, Decoding, DecodingOptions, StreamStart
from mercury_engine.decode.drafts import DraftSource, PromptLookup
from mercury_engine.decode.names import KnownNames
from mercury_engine.decode.sessions import EngineSession
from mercury_engine.tokens.prefix import HintBuilder, HintedPrefix
from mercury_engine.tokens.pretrained import PretrainedTokenizer

LOOKED_UP = 200
"""Characters before the answer of which earlier occurrences are looked up."""

EARLY = 8
"""Alternatives depart from an answer within this many tokens."""


class AutoregressiveDecoder(Decoder, frozen=True, eq=False, kw_only=True):
    """The decoder of a model that only continues texts: it fills no canvases."""

    tokenizer: PretrainedTokenizer
    canvases: Sequence[int] = ()

    def next_ms(self, unread: int) -> float:
        """What the next forward takes where so many tokens are yet to be read."""
        return max(float(self.costs.of(1)), self.pace.milliseconds(min(unread, self.pace.chunk())))


class AutoregressiveDecoding(Decoding[Continuation]):
    """One answer to a question, or its first `line`; `chosen` are its first choices, made elsewhere."""

    def __init__(
        self,
        decoder: AutoregressiveDecoder,
        session: EngineSession,
        question: ContinuationQuestion,
        limit: int,
        texts: Sequence[DraftSource] = (),
        *,
        chosen: Sequence[Choice] = (),
        runners_up: int = 0,
        names: KnownNames | None = None,
        line: bool = False,
        floor: float = 0.0,
    ) -> None:
        tokenizer = decoder.tokenizer
        before = question.before.removesuffix(question.prompt.forced)[-LOOKED_UP:]
        self.answer = Continuation(tokenizer, question, limit, names, line=line)
        super().__init__(
            decoder,
            session,
            StreamStart(sequence(question.ids), HintBuilder.without_hints()),
            [self.answer],
            [PromptLookup(tokenizer, question.ids, tokenizer.encode(before))],
            [texts],
            DecodingOptions(runners_up=runners_up, names=names, floor=floor),
        )
        for choice in chosen:
            self._commit(choice)

    @property
    def pending(self) -> int:
        """The tokens that are yet to be read."""
        return len(self.ids) - self._session.align(self.prefix)


def sequence(ids: Sequence[int]) -> HintedPrefix:
    return HintedPrefix.without_hints(ids, np.arange(len(ids)))


class ChosenStart(Struct, frozen=True):
    """The first choices of another answer, and their probability."""

    probability: float
    choices: Sequence[Choice]


def departures(answers: Sequence[Continuation], tokenizer: PretrainedTokenizer) -> list[ChosenStart]:
    """Starts that depart from some answers to a question within their first tokens, the likeliest first.

    None of them ends the answer, and no two may still spell the same, nor one and an answer.
    """
    starts: list[tuple[bytes, ChosenStart]] = []
    spelled = [answer.said for answer in answers]
    for answer in answers:
        before, text = 1.0, b""
        for place, choice in enumerate(answer.choices[:EARLY]):
            options = (choice.token, choice.probability), *choice.others
            for token, probability in choice.others:
                if own := tokenizer.token_bytes[token]:
                    others = tuple(option for option in options if option[0] != token)
                    choices = [*answer.choices[:place], Choice(token, probability, others)]
                    starts.append((text + own, ChosenStart(before * probability, choices)))
            before *= choice.probability
            text += tokenizer.token_bytes[choice.token]
    distinct = []
    for text, start in sorted(starts, key=lambda pair: -pair[1].probability):
        if not any(other.startswith(text) or text.startswith(other) for other in spelled):
            spelled.append(text)
            distinct.append(start)
    return distinct
