"""Greedy decoding on top of a cached prompt, several tokens in a forward where a verified draft allows."""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from mercury_engine.autoregressive.answer import Continuation, ContinuationQuestion
from mercury_engine.decode.canvas import fuse
from mercury_engine.decode.choice import Choice, Chooser
from mercury_engine.decode.costs import Costs
from mercury_engine.decode.drafts import DraftSource, PromptLookup, Proposal
from mercury_engine.decode.names import KnownNames
from mercury_engine.decode.policy import Acceptance, Action, DraftSituation, Report, choose
from mercury_engine.decode.reading import ReadingPace
from mercury_engine.decode.rivals import Rivals, competing
from mercury_engine.decode.sessions import EngineSession
from mercury_engine.decode.tree import DraftTree
from mercury_engine.model.runtime import Pass, Passes, Runtime
from mercury_engine.tokens.prefix import HintBuilder, HintedPrefix
from mercury_engine.tokens.pretrained import PretrainedTokenizer

LOOKED_UP = 200
"""Characters before the answer of which earlier occurrences are looked up."""

EARLY = 8
"""Alternatives depart from an answer within this many tokens."""


class AutoregressiveDecoder(Struct, frozen=True, eq=False):
    """What all decodings share: the model and the statistics. `drafting` changes how fast answers come, not which."""

    runtime: Runtime
    tokenizer: PretrainedTokenizer
    chooser: Chooser
    costs: Costs
    acceptance: Acceptance
    report: Report
    pace: ReadingPace
    drafting: bool = True

    def next_ms(self, unread: int) -> float:
        """What the next forward takes where so many tokens are yet to be read."""
        return max(float(self.costs.of(1)), self.pace.milliseconds(min(unread, self.pace.chunk())))


class AutoregressiveDecoding:
    """One answer. A drafted token is committed only if the model predicts it behind exactly the tokens before, as in
    plain decoding. The session's cache always holds a prefix of `ids`.

    `given` are the first choices, made elsewhere.
    """

    def __init__(
        self,
        decoder: AutoregressiveDecoder,
        session: EngineSession,
        question: ContinuationQuestion,
        limit: int,
        sources: Sequence[DraftSource] = (),
        *,
        chosen: Sequence[Choice] = (),
        runners_up: int = 0,
        names: KnownNames | None = None,
    ) -> None:
        self.answer = Continuation(decoder.tokenizer, question, limit, names)
        self.ids = list(question.ids)
        self._decoder = decoder
        self._session = session
        self._runners_up = runners_up
        self._rivals: Rivals | None = None
        """The names between which the next forward decides."""
        before = question.before.removesuffix(question.prompt.forced)[-LOOKED_UP:]
        lookup = PromptLookup(decoder.tokenizer, self.ids, decoder.tokenizer.encode(before))
        self._sources = [*sources, lookup] if decoder.drafting else []
        for choice in chosen:
            self._commit(choice)

    @property
    def pending(self) -> int:
        """The tokens that are yet to be read."""
        return len(self.ids) - self._session.align(sequence(self.ids))

    def run(self) -> Passes[None]:
        """Reads the prompt and decodes, and pauses between forwards."""
        yield from self._advance()
        while not self.answer.done:
            yield
            yield from self._advance()

    def _advance(self) -> Passes[None]:
        """One pass: a chunk of the prompt, or the best action once at most a chunk is left."""
        decoder, chunk = self._decoder, self._decoder.pace.chunk()
        if self._rivals is not None:
            yield from self._choose_name(self._rivals)
        elif not (
            yield from decoder.pace.read(self._session, sequence(self.ids), decoder.report, leave=chunk, chunk=chunk)
        ):
            situation = DraftSituation(
                pending=self.pending,
                proposals=self._proposals(),
            )
            yield from self._act(choose(situation, decoder.costs, decoder.acceptance))

    def _proposals(self) -> list[Proposal]:
        room = self.answer.limit - len(self.answer.choices)
        typed = self.answer.typed
        choices = (
            source.proposal(typed) if isinstance(source, PromptLookup) else source.proposal()
            for source in self._sources
        )
        return [proposal.head(room) for proposal in choices]

    def _act(self, action: Action) -> Passes[None]:
        pending, before, draft = self.pending, len(self.ids), action.draft
        fused = fuse(
            before - pending,
            sequence(self.ids),
            pending - 1,
            draft=draft,
            extend=lambda ids: sequence([*self.ids, *ids]),
            permitted_V=self._decoder.chooser.permitted_V,
        )
        forward = yield Pass(fused.rows, self._session.cache)
        accepted = self._verify(forward.logits_WV, draft)
        valid = [*range(pending), *(pending + number for number in accepted)]
        self._session.keep(forward, sequence(self.ids[: before + len(accepted)]), valid)
        self._decoder.report.count(action.kind, rows=len(fused.rows.ids_R), settled=len(self.ids) - before)

    def _verify(self, logits_WV: np.ndarray, draft: DraftTree) -> list[int]:
        """Commit what the rows predict while their input is what was committed, until names compete; return the
        accepted tokens of the draft."""
        accepted, number, decoder = [], -1, self._decoder
        while True:
            logits_V = logits_WV[1 + number]
            choice = decoder.chooser.best(logits_V, self.answer.typed, self._runners_up)
            self._rivals = competing(self.answer.names, self.answer, choice, logits_V, decoder.chooser)
            if self._rivals is not None:
                return accepted
            self._commit(choice)
            for evidence, is_right in draft.judged(number, choice.token):
                decoder.acceptance.observe(evidence, is_right)
                decoder.report.verified(evidence[0], is_right)
            number = draft.next(number, choice.token)
            if number is not None:
                accepted.append(number)
            if self.answer.done:
                decoder.acceptance.answered(self.answer.question.mode, len(self.answer.choices))
            if self.answer.done or number is None:
                return accepted

    def _choose_name(self, names: Rivals) -> Passes[None]:
        """The best name is committed as a whole; its first token stands for its worth among its rivals."""
        prefix, answer = sequence(self.ids), self.answer
        rows = names.rows(prefix, len(self.ids) - self.pending, HintBuilder.without_hints())
        forward = yield Pass(rows, self._session.cache)
        self._session.keep(forward, prefix)
        best, worth, name = names.chosen(forward.logits_WV, self._decoder.chooser)
        self._rivals, before = None, len(self.ids)
        for token in best.path[: answer.limit - len(answer.choices)]:
            self._commit(Choice(token, worth, name=name))
            worth, name = 1.0, None
        self._decoder.report.count("name", rows=len(rows.ids_R), settled=len(self.ids) - before)

    def _commit(self, choice: Choice) -> None:
        self.answer.add(choice)
        self.ids.append(choice.token)
        for source in self._sources:
            source.advance(choice.token)


def sequence(ids: Sequence[int]) -> HintedPrefix:
    return HintedPrefix.without_hints(ids, np.arange(len(ids)))


def departures(answer: Continuation, tokenizer: PretrainedTokenizer) -> list[list[Choice]]:
    """Starts that depart from an answer within its first tokens, the likeliest first.

    None of them ends the answer or may still spell the same.
    """
    spelled = tokenizer.decode_bytes(choice.token for choice in answer.choices)
    pieces, before, start = [], 1.0, b""
    for place, choice in enumerate(answer.choices[:EARLY]):
        for token, probability in choice.others:
            own = start + tokenizer.token_bytes[token]
            if own != start and not spelled.startswith(own) and not own.startswith(spelled):
                pieces.append((before * probability, [*answer.choices[:place], Choice(token, probability)]))
        before *= choice.probability
        start += tokenizer.token_bytes[choice.token]
    return [choices for _, choices in sorted(pieces, key=lambda option: -option[0])]
