"""What a model is asked: to fill a gap in its dialect, or to edit a window in its format."""

from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
from msgspec.structs import replace

from mercury_engine.api import EngineError, Gap, Regions
from mercury_engine.autoregressive.answer import ContinuationQuestion, ReadAnswer
from mercury_engine.prompts.cut import cut
from mercury_engine.prompts.dialects import Dialect, dialect_for, dialect_named
from mercury_engine.prompts.edits import EditFormat, EditPrompt, edit_format
from mercury_engine.prompts.edits.asked import Refused, window_of
from mercury_engine.prompts.fim import fim_prompt
from mercury_engine.prompts.pieces import Prompt
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
        self.edits, self.dialect = _prompts(record, tokenizer)

    def about_gap(self, dialect: Dialect, gap: Gap, budget: int) -> ContinuationQuestion:
        """The question in a prompt of so many tokens at most."""
        prompt = fim_prompt(
            dialect,
            gap,
            budget=budget,
            count=self._count,
            split=self._split,
            suffix_lines=dialect.suffix_lines,
        )
        prompt, ids = self._begun(prompt)
        kind = "block" if gap.block else "line"
        return ContinuationQuestion(prompt, ids, kind, partial(_cut, gap), before=gap.before)

    def about_window(self, edits: EditFormat, regions: Regions, budget: int) -> ContinuationQuestion:
        edit_prompt, old = edits.ask(regions, budget=budget, count=self._count), window_of(regions).old
        prompt, ids = self._begun(edit_prompt.prompt)
        return ContinuationQuestion(prompt, ids, "window", partial(_rewritten, edit_prompt, old), old=old)

    def _begun(self, prompt: Prompt) -> tuple[Prompt, np.ndarray]:
        """The prompt, forced to begin with no more than a part of a token, and its tokens with the rest."""
        begun, forced = self._tokenizer.split(prompt.forced)
        limit = prompt.most_tokens - self._count(prompt.forced) + self._count(forced)
        ids = [*self._tokenizer.encode_prompt(prompt), *self._tokenizer.encode(begun)]
        return replace(prompt, forced=forced, most_tokens=limit), np.array(ids, np.int32)

    def _split(self, head: str) -> tuple[str, str]:
        """What the head of the cursor's line gives the prompt, and what it gives the answer to begin with.

        Where the suffix follows the prefix, the whole head begins the answer, as llama.vim does it: else the suffix
        would have to be read again with every word that is typed.
        """
        if self.dialect is None or self.dialect.suffix_first or len(head) > LONGEST_HEAD:
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


def _cut(gap: Gap, text: str, finished: bool) -> ReadAnswer:
    return ReadAnswer(*cut(gap, text, finished=finished))


def _rewritten(edit_prompt: EditPrompt, old: str, text: str, finished: bool) -> ReadAnswer:
    """An answer that cannot be used leaves the window as it is."""
    new = edit_prompt.read(text, finished)
    if isinstance(new, Refused):
        return ReadAnswer(old, finished, new.reason)
    return ReadAnswer(old if new is None else new, True)
