"""A question to a next-edit model, and how its answer becomes the window's new text."""

import re
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from msgspec import Struct

from mercury_engine.api import EngineError, InfillRequest, Window
from mercury_engine.prompts.pieces import Piece, Prompt, joined, tokens_of

__all__ = ["Ask", "Asked", "EditFormat", "cursor_of", "fitting", "refuse", "too_long", "window_of"]

MOST_EXTRA_LINES = 20
"""An answer that adds more has gone astray."""

TOKENS = re.compile(r"<\|[\w▁.]+\|>|<\[[\w▁-]+\]>")

Item = TypeVar("Item")


class Asked(Struct, frozen=True):
    """`prompt` asks for a new text of `window[start:end]`; `take` finds it in the answer, None where there is none. It
    ends with as many line feeds as before, which models are careless about. An answer that contains one of `ends` is
    whole, whatever follows."""

    prompt: Prompt
    window: str
    start: int
    end: int
    take: Callable[[str], str | None]
    ends: tuple[str, ...] = ()

    def read(self, text: str, finished: bool) -> str | None:
        """The window's whole new text. None if the answer changes nothing, is of no use, or was cut by its length."""
        if not finished and not any(end in text for end in self.ends):
            return None
        old, taken = self.window[self.start : self.end], self.take(text)
        body = old.rstrip("\n")
        if not taken or not taken.strip():
            return None
        new = taken.rstrip("\n") + old[len(body) :]
        if new == old or _has_gone_astray(old, new):
            return None
        return self.window[: self.start] + new + self.window[self.end :]


def _has_gone_astray(old: str, new: str) -> bool:
    """Whether it goes on and on, stops in the middle of what it copies, or speaks of tokens of the model."""
    added = new.count("\n") - old.count("\n")
    stopped = added < -1 and old.startswith(new.rstrip("\n"))
    return added > MOST_EXTRA_LINES or stopped or any(token not in old for token in TOKENS.findall(new))


class Ask(Protocol):
    def __call__(self, request: InfillRequest, *, budget: int, count: Callable[[str], int]) -> Asked:
        """A prompt of at most `budget` tokens about the window of the request's first span."""
        ...


class EditFormat(Struct, frozen=True):
    """`names` is a regular expression for the names of models that were trained with it."""

    name: str
    names: str
    ask: Ask


def window_of(request: InfillRequest) -> Window:
    return request.windows[request.spans[0].window]


def cursor_of(request: InfillRequest) -> int:
    return max(request.cursor, 0)


def refuse(marks: Sequence[str], text: str, name: str) -> None:
    """An answer about a text that contains the format's own marks could mean anything."""
    for mark in marks:
        if mark in text:
            raise EngineError(
                f"the text around the cursor contains {mark!r}, a mark of the {name} format: no next edit here"
            )


def too_long(name: str, budget: int) -> EngineError:
    return EngineError(f"the lines around the cursor do not fit into the {budget} tokens of a {name} prompt")


def fitting(
    items: Sequence[Item],
    render: Callable[[Sequence[Item]], Sequence[Piece]],
    room: int,
    count: Callable[[str], int],
) -> Sequence[Piece]:
    """The items, the first before the others, that there is room for, rendered together; nothing if there are none.
    Each is counted alone, so that `count` sees the same texts again."""
    kept: list[Item] = []
    for item in items:
        size = tokens_of(joined(render([item])), count)
        if size <= room:
            kept.append(item)
            room -= size
    return joined(render(kept)) if kept else ()
