"""Canvases for training: where they attach to a stream, the targets of their slots, and how inputs are corrupted."""

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.tokens.vocabulary import EOM, MASK, SPECIALS
from mercury_training.rows.examples import TrainingExample
from mercury_training.rows.streams import canvas_slots

SIZES = {4: 0.2, 8: 0.55, 16: 0.2, 32: 0.04, 64: 0.01}
"""The sizes of canvases and their probabilities."""

FOLLOWING = 0.8
"""The weight of a slot relative to the one before it: a draft counts up to its first wrong token."""

ALL_MASKED = 0.8
PAIRED = 0.1
"""The rest start from a draft: the old text, or the answer with mistakes."""

FIRST_DRAFTS = 0.25
"""The share of canvases on an answer that are at its beginning; the others are anywhere in it."""

VISIBLE = 0.2
"""The weight of a slot whose input is already correct."""


class CanvasRows(Struct, frozen=True, eq=False):
    """Slots attached to row `parent` of a stream: row j's input is `inputs[j]`, and it predicts slot j + 1, as row
    `readers[j]` of the stream does, -1 if none does.

    Canvases with the same `group` see each other; -1 is none.
    """

    parent: int
    inputs: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    readers: np.ndarray
    group: int = -1


class CanvasSlots(Struct, frozen=True, eq=False):
    """What a canvas on row `parent` of a stream is to hold: the first `written` slots stand there from row `start`
    on."""

    parent: int
    ids: np.ndarray
    weights: np.ndarray
    start: int
    written: int


def hidden(slots: CanvasSlots, inputs: np.ndarray, group: int = -1) -> CanvasRows:
    """A canvas whose row j predicts slot j + 1; the last row's prediction is discarded."""
    places = np.arange(len(inputs))
    weights = slots.weights * np.where(inputs == slots.ids, VISIBLE, 1) * FOLLOWING ** (places - 1)
    return CanvasRows(
        slots.parent,
        inputs,
        np.append(slots.ids[1:], EOM),
        np.append(weights[1:], 0).astype(np.float32),
        np.where(places + 1 < slots.written, slots.start + places, -1),
        group,
    )


def pair(slots: np.ndarray, draw: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Two inputs with complementary masks at one rate, at least one slot hidden in each."""
    masked = draw.random(len(slots)) < draw.random()
    if masked.all() or not masked.any():
        slot = draw.integers(len(slots))
        masked[slot] = not masked[slot]
    return np.where(masked, MASK, slots), np.where(masked, slots, MASK)


def drafted(slots: np.ndarray, vocabulary: int, draw: np.random.Generator) -> np.ndarray:
    """The slots as a stale draft: some tokens wrong, sometimes one missing or one too many, some masked."""
    inputs = slots.copy()
    slip = draw.random()
    at = int(draw.integers(len(slots)))
    if slip < 0.3:
        inputs[at:] = np.append(inputs[at + 1 :], MASK)
    elif slip < 0.6:
        inputs[at:] = np.append(MASK, inputs[at:-1])
    wrong = draw.random(len(slots)) < draw.uniform(0.05, 0.3)
    inputs[wrong] = draw.integers(len(SPECIALS), vocabulary, int(wrong.sum()))
    inputs[draw.random(len(slots)) < draw.uniform(0, 0.6)] = MASK
    return inputs


def answer_canvases(
    example: TrainingExample, room: int, vocabulary: int, draw: np.random.Generator, group: int
) -> list[CanvasRows]:
    """Canvases on an example's answers: on all holes together, or on one hole from some token on."""
    if len(example.answers) > 1 and draw.random() < 0.7:
        return _together(example, room, vocabulary, draw, group)
    hole = int(draw.integers(len(example.answers)))
    begun = 0 if draw.random() < FIRST_DRAFTS else int(draw.integers(len(example.answers[hole])))
    size = _size(room, draw)
    if size is None:
        return []
    slots = _answer_slots(example, hole, begun, size)
    draft = example.drafts[hole] if begun == 0 else ()
    return [hidden(slots, inputs) for inputs in _inputs(slots.ids, draft, vocabulary, draw)[: room // size]]


def text_canvases(
    example: TrainingExample, starts: np.ndarray, room: int, vocabulary: int, draw: np.random.Generator
) -> list[CanvasRows]:
    """Canvases at a random place in running text, without an end; `starts[i]` plain tokens follow row i."""
    size = _size(room, draw)
    if size is None:
        return []
    places = np.flatnonzero(starts >= size)
    if not places.size:
        return []
    parent = int(draw.choice(places))
    ids = example.stream.ids[parent + 1 : parent + 1 + size]
    slots = CanvasSlots(parent, ids, np.ones(size, np.float32), parent + 1, size)
    return [hidden(slots, inputs) for inputs in _inputs(ids, (), vocabulary, draw)[: room // size]]


def _together(
    example: TrainingExample, room: int, vocabulary: int, draw: np.random.Generator, group: int
) -> list[CanvasRows]:
    """The first draft of several holes: siblings that see each other, each attached to its own anchor."""
    size = _size(room // len(example.answers), draw)
    if size is None:
        return []
    canvases = []
    for hole, (anchor, draft) in enumerate(zip(example.anchors, example.drafts, strict=True)):
        slots = replace(_answer_slots(example, hole, 0, size), parent=anchor)
        canvases.append(hidden(slots, _inputs(slots.ids, draft, vocabulary, draw)[0], group))
    return canvases


def _answer_slots(example: TrainingExample, hole: int, begun: int, size: int) -> CanvasSlots:
    """The slots for an answer from token `begun` on."""
    answer = example.answers[hole]
    ids, weights = canvas_slots(answer[begun:], size)
    start = begun + (example.base if hole == 0 else example.stream.starts[hole] + 1)
    return CanvasSlots(_parent(example, hole, begun), ids, weights, start, min(size, len(answer) - begun))


def _parent(example: TrainingExample, hole: int, begun: int) -> int:
    """The row that predicts token `begun` of an answer."""
    start = example.stream.starts[hole]
    if begun == 0:
        return start
    return example.base + begun - 1 if hole == 0 else start + begun


def _size(room: int, draw: np.random.Generator) -> int | None:
    """A random size that fits the room."""
    drawn = int(draw.choice(list(SIZES), p=list(SIZES.values())))
    return max((size for size in SIZES if size <= min(drawn, room)), default=None)


def _inputs(slots: np.ndarray, draft: tuple[int, ...], vocabulary: int, draw: np.random.Generator) -> list[np.ndarray]:
    kind = draw.random()
    if kind < ALL_MASKED:
        return [np.full_like(slots, MASK)]
    if kind < ALL_MASKED + PAIRED:
        return list(pair(slots, draw))
    if draft and draw.random() < 0.5:
        return [canvas_slots(draft, len(slots))[0]]
    return [drafted(slots, vocabulary, draw)]
