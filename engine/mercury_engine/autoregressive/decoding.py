"""Greedy decoding on top of a cached prompt, several tokens in a forward where a verified draft allows."""

from collections.abc import Sequence

from mercury_engine.autoregressive.answer import Continuation, ContinuationQuestion
from mercury_engine.decode.choice import Choice, ids_of
from mercury_engine.decode.decoding import Decoder, Decoding, DecodingOptions
from mercury_engine.decode.drafts import DraftSource, PromptLookup
from mercury_engine.decode.names import KnownNames
from mercury_engine.decode.sessions import EngineSession
from mercury_engine.tokens.pretrained import PretrainedTokenizer

LOOKED_UP = 200
"""Characters before the answer of which earlier occurrences are looked up."""

EARLY = 8
"""Alternatives depart from an answer within this many tokens."""


class AutoregressiveDecoding(Decoding[Continuation]):
    """One answer to a question; `chosen` are its first choices, made elsewhere."""

    def __init__(
        self,
        decoder: Decoder[PretrainedTokenizer],
        session: EngineSession,
        question: ContinuationQuestion,
        limit: int,
        texts: Sequence[DraftSource] = (),
        *,
        chosen: Sequence[Choice] = (),
        runners_up: int = 0,
        names: KnownNames | None = None,
    ) -> None:
        tokenizer = decoder.tokenizer
        before = question.before.removesuffix(question.prompt.forced)[-LOOKED_UP:]
        super().__init__(
            decoder,
            session,
            question.ids,
            Continuation(tokenizer, question, limit, names),
            PromptLookup(tokenizer, question.ids.tolist(), tokenizer.encode(before)),
            texts,
            DecodingOptions(runners_up=runners_up),
        )
        for choice in chosen:
            self._commit(choice)

    @property
    def pending(self) -> int:
        """The tokens that are yet to be read."""
        return len(self.ids) - self._session.align(self.ids)

    @property
    def next_ms(self) -> float:
        """What the next forward takes."""
        pace = self._decoder.pace
        return max(float(self._decoder.costs.of(1)), pace.milliseconds(min(self.pending, pace.chunk())))


def departures(answer: Continuation, tokenizer: PretrainedTokenizer) -> list[list[Choice]]:
    """Starts that depart from an answer within its first tokens, the likeliest first.

    None of them ends the answer or may still spell the same.
    """
    spelled = tokenizer.decode_bytes(ids_of(answer.choices))
    pieces, before, start = [], 1.0, b""
    for place, choice in enumerate(answer.choices[:EARLY]):
        for token, probability in choice.others:
            own = start + tokenizer.token_bytes[token]
            if own != start and not spelled.startswith(own) and not own.startswith(spelled):
                pieces.append((before * probability, [*answer.choices[:place], Choice(token, probability)]))
        before *= choice.probability
        start += tokenizer.token_bytes[choice.token]
    return [choices for _, choices in sorted(pieces, key=lambda option: -option[0])]
