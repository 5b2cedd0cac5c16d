"""What a model is asked about each span: a gap to fill in its dialect, or a window to edit in its format."""

from collections.abc import Callable
from functools import lru_cache, partial

from msgspec.structs import replace

from mercury_engine.api import EngineError, InfillRequest, SpanMode
from mercury_engine.autoregressive.answer import ContinuationQuestion, ReadAnswer
from mercury_engine.prompts.cut import cut
from mercury_engine.prompts.dialects import Dialect, dialect_for, dialect_named
from mercury_engine.prompts.edits import EditFormat, EditPrompt, edit_format
from mercury_engine.prompts.edits.asked import Refused
from mercury_engine.prompts.fim import fim_prompt
from mercury_engine.record import ModelRecord
from mercury_engine.tokens.pretrained import PretrainedTokenizer

COUNTED = 1 << 12

LONGEST_HEAD = 256
"""Characters of the cursor's line that may begin an answer."""


class Asking:
    """Knows the prompts of one model. A record of a next-edit model that also fills names both: `sweep+qwen`."""

    def __init__(self, record: ModelRecord, tokenizer: PretrainedTokenizer) -> None:
        self._tokenizer = tokenizer
        self._count: Callable[[str], int] = lru_cache(COUNTED)(lambda text: len(tokenizer.encode(text)))
        self._name = record.name
        self._edits, self._dialect = _prompts(record, tokenizer)

    @property
    def answers(self) -> tuple[SpanMode, ...]:
        filling: tuple[SpanMode, ...] = ("line", "block", "edit") if self._dialect else ()
        return (*filling, "region") if self._edits else filling

    def question(self, request: InfillRequest, number: int, budget: int) -> ContinuationQuestion:
        """The question about one span, in a prompt of so many tokens at most."""
        span = request.spans[number]
        if span.mode not in self.answers:
            raise EngineError(
                f"{self._name} answers {', '.join(self.answers)}, not {span.mode!r}; choose another model for it: "
                "`mercury-ls model list`"
            )
        text = request.windows[span.window].text
        before, old, after = text[: span.start], text[span.start : span.end], text[span.end :]
        if span.mode == "region":
            assert self._edits is not None
            single = replace(request, spans=(span,))
            edit_prompt = self._edits.ask(single, budget=budget, count=self._count)
            prompt, read = edit_prompt.prompt, partial(_rewritten, edit_prompt, old)
        else:
            assert self._dialect is not None
            prompt = fim_prompt(
                self._dialect,
                request,
                span,
                budget=budget,
                count=self._count,
                split=self._split,
                suffix_lines=self._dialect.suffix_lines,
            )
            read = partial(_cut, before, after, request.windows[span.window].language, span.mode)
        prefix_ids, forced = self._tokenizer.split(prompt.forced)
        ids = [*self._tokenizer.encode_prompt(prompt), *self._tokenizer.encode(prefix_ids)]
        limit = prompt.most_tokens - self._count(prompt.forced) + self._count(forced)
        return ContinuationQuestion(
            replace(prompt, forced=forced, most_tokens=limit), ids, span.mode, before, old, read
        )

    def _split(self, head: str) -> tuple[str, str]:
        """What the head of the cursor's line gives the prompt, and what it gives the answer to begin with.

        Where the suffix follows the prefix, the whole head begins the answer, as llama.vim does it: else the suffix
        would have to be read again with every word that is typed.
        """
        if self._dialect is None or self._dialect.suffix_first or len(head) > LONGEST_HEAD:
            return self._tokenizer.split(head)
        return "", head


def _prompts(record: ModelRecord, tokenizer: PretrainedTokenizer) -> tuple[EditFormat | None, Dialect | None]:
    if record.kind == "next-edit":
        edits, _, dialect = record.prompt.partition("+")
        return edit_format(edits), dialect_named(dialect) if dialect else None
    dialect = dialect_named(record.prompt) if record.prompt else dialect_for(tokenizer.added, record.name)
    if dialect is None:
        raise EngineError(
            f"{record.name}: none of its special tokens marks a gap to fill, so it was not trained for completion; "
            "choose a base model with fill-in-the-middle: `mercury-ls model recommend`"
        )
    for token in dialect.tokens:
        tokenizer.special(token)
    return None, dialect


def _cut(before: str, after: str, language: str, mode: SpanMode, text: str, finished: bool) -> ReadAnswer:
    return ReadAnswer(*cut(before, text, after, language=language, mode=mode, finished=finished))


def _rewritten(edit_prompt: EditPrompt, old: str, text: str, finished: bool) -> ReadAnswer:
    """An answer that cannot be used leaves the window as it is."""
    new = edit_prompt.read(text, finished)
    if isinstance(new, Refused):
        return ReadAnswer(old, finished, new.reason)
    return ReadAnswer(old if new is None else new, True)
