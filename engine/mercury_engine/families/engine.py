"""The engine for third-party diffusion models: each family infills, or continues, as it was trained to."""

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from mercury_engine.api import (
    ChatReply,
    ChatRequest,
    Draft,
    Effort,
    Engine,
    EngineError,
    EngineInfo,
    Gap,
    Regions,
    Slot,
)
from mercury_engine.chat.reading import Manner
from mercury_engine.chat.talker import Talker, open_talker
from mercury_engine.decode.confidence import SHARED, Calibration, is_hopeless, likely_start, read_calibration
from mercury_engine.decode.frames import slots_of
from mercury_engine.decode.names import KnownNames
from mercury_engine.families.blocks import encode, proceed
from mercury_engine.families.context import Around, around
from mercury_engine.families.family import FAMILIES, Family, family_named
from mercury_engine.families.gap import fill, read_ahead
from mercury_engine.families.progress import Encoded, FamilyModel, FillProgress, FillTarget
from mercury_engine.families.slots import SURE, Settled
from mercury_engine.families.vocabulary import FamilyVocabulary
from mercury_engine.model.config import TOKENIZER_FILE, ModelError
from mercury_engine.model.decoder import open_decoder
from mercury_engine.model.room import Room, room_of
from mercury_engine.model.runtime import Cache, Resources, Runtime, on_cpu, opened_with
from mercury_engine.prompts.cut import cut
from mercury_engine.record import RECORD_FILE, ModelRecord
from mercury_engine.tokens.pretrained import PretrainedTokenizer

READ_AT_ONCE = 384
"""Tokens of a text with a gap that a CPU reads: a family that looks both ways reads them all in one forward."""

READ_ONWARD = 1024
"""Tokens before the cursor where they stay encoded from one key to the next."""

FORWARDS = 12
"""The longest answer for which several lengths are compared."""

MOST_SEEDS = 16
"""The most runners-up of a token to consider for another answer."""

ONE_BY_ONE = 2.0
"""No token is this sure: each forward settles one, as in the families' evaluations."""

SETTLED_WHEN: dict[Effort, float] = {"instant": SURE, "low": SURE, "medium": SURE, "high": ONE_BY_ONE}

CONTINUES = "{} continues a text left to right and sees nothing after the cursor"

LAST_WORD = re.compile(r"(?<!\w)\w++\Z")

Result = TypeVar("Result")


class FamilyEngine(Engine):
    """After every forward there is a draft of the final part, from the left. With a `talker` it chats. A text without
    `room` is refused.

    `calibration` is None where none was fitted. `context` is the most tokens of a forward over a whole text.
    """

    def __init__(
        self,
        runtime: Runtime,
        tokenizer: PretrainedTokenizer,
        record: ModelRecord,
        family: Family,
        *,
        calibration: Calibration | None = None,
        context: int = 0,
        room: Room | None = None,
        talker: Talker | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        if len(tokenizer.token_bytes) > runtime.config.vocabulary:
            raise ModelError(
                f"{record.name}: the tokenizer has {len(tokenizer.token_bytes)} tokens, the model "
                f"{runtime.config.vocabulary}; they belong to different models: add the model again"
            )
        vocabulary = FamilyVocabulary(family, tokenizer, runtime.config.vocabulary)
        self._model = FamilyModel(runtime, family, vocabulary)
        self._tokens = tokenizer
        self._record = record
        self._calibrated = calibration is not None
        self._judge = calibration or SHARED
        self._context = min(context or family.most_tokens, family.most_tokens, runtime.config.context)
        self._room = room or Room(runtime, record.name)
        self._talker = talker
        self._clock = clock
        self._encoded: OrderedDict[tuple[str, str, str], Encoded] = OrderedDict()
        self._forward_ms = 0.0

    def fill(self, gap: Gap) -> Generator[Draft]:
        started, latest, is_late = self._clock(), Draft(), False
        for draft, unread in self._answer(gap, started):
            is_late = not latest.step and draft is None
            latest = replace(latest if draft is None else draft, step=latest.step + (draft is not None), unread=unread)
            yield latest
        yield replace(latest, step=0 if is_late else latest.step + 1, final=True)

    def chat(self, request: ChatRequest) -> Generator[ChatReply]:
        if self._talker is None:
            raise EngineError(f"{self._record.name} does not chat: its folder has no chat template")
        return self._talker.chat(request)

    def warm(self, question: Gap | Regions) -> Generator[None]:
        """Encode the text where an answer will not have to read it again."""
        if not isinstance(question, Gap) or self._is_exact(question):
            return
        text, target = self._around(question), self._asked(question)
        with self._place(question) as encoded, self._reserved(text, question, encoded.cache):
            for _ in self._timed(self._read_ahead(text, target, encoded)):
                yield

    def info(self) -> EngineInfo:
        runtime, family = self._model.runtime, self._model.family
        notes = (CONTINUES.format(family.name),) if family.length == "continue" else ()
        talked = self._talker.bytes if self._talker else 0
        return EngineInfo(
            engine="diffusion",
            model=self._record.name,
            device=f"{runtime.device}, {runtime.name} {runtime.precision}",
            context_tokens=self._context,
            notes=notes,
            bytes=self._room.weights + self._encoded_bytes + talked,
            calibrated=self._calibrated,
            bar=self._judge.bar,
            chats=self._talker is not None,
            strong=True,
        )

    def _answer(self, gap: Gap, started: float) -> Iterator[tuple[Draft | None, int]]:
        """The answer so far after each forward, until it is complete or the time is up; None while the text is read,
        of which so many tokens are left."""
        text, target = self._around(gap), self._asked(gap)
        for progress in self._passes(gap, text, target):
            draft, is_whole = self._present(gap, text, progress)
            if gap.slots:
                draft = replace(draft, slots=tuple(self._slots(text, progress)))
            yield draft if progress.slots or progress.done else None, progress.unread
            if is_whole or (gap.effort == "instant" and draft.text):
                return
            if self._is_hopeless(gap, progress):
                return
            if gap.deadline_ms is not None and self._elapsed(started) + self._forward_ms > gap.deadline_ms:
                return

    def _is_hopeless(self, gap: Gap, progress: FillProgress) -> bool:
        """True if hardly anyone would accept the answer, however it continues: no forward is spent on the rest."""
        if gap.effort != "low" or gap.seed or not gap.bar:
            return False
        return is_hopeless(progress.at_best, gap.bar)

    def _passes(self, gap: Gap, text: Around, target: FillTarget) -> Generator[FillProgress]:
        if self._is_exact(gap):
            with self._reserved(text, gap, self._model.runtime.cache()):
                yield from self._timed(fill(self._model, text, target))
            return
        answer = proceed if self._model.family.length == "continue" else fill
        with self._place(gap) as encoded, self._reserved(text, gap, encoded.cache):
            yield from self._timed(answer(self._model, text, target, encoded))

    def _read_ahead(self, text: Around, target: FillTarget, encoded: Encoded) -> Generator[object, None, object]:
        if self._model.family.length == "continue":
            return encode(self._model, encoded, text.before)
        return read_ahead(self._model, text, target, encoded)

    def _is_exact(self, gap: Gap) -> bool:
        """True if each forward reads everything. Blocks are encoded exactly anyway, and on a GPU a few hundred extra
        rows cost little."""
        on_gpu = not on_cpu(self._model.runtime)
        return self._model.family.length != "continue" and (on_gpu or gap.effort == "high")

    def _timed(self, passes: Iterable[Result]) -> Generator[Result]:
        started = self._clock()
        for progress in passes:
            self._forward_ms = self._elapsed(started)
            yield progress
            started = self._clock()

    def _elapsed(self, started: float) -> float:
        return (self._clock() - started) * 1000

    @contextmanager
    def _place(self, gap: Gap) -> Iterator[Encoded]:
        """The encoded part of a text, for one answer at a time: another that comes meanwhile starts from scratch."""
        key = gap.session, gap.root, gap.path
        encoded = self._encoded.pop(key, None) or Encoded(self._model.runtime.cache())
        try:
            yield encoded
        finally:
            self._encoded[key] = encoded
            while len(self._encoded) > 1 and self._encoded_bytes > self._room.caches:
                self._encoded.popitem(last=False)

    @property
    def _encoded_bytes(self) -> int:
        return sum(encoded.cache.bytes for encoded in self._encoded.values())

    def _around(self, gap: Gap) -> Around:
        room = self._context - self._limit(gap) - self._model.family.block
        return around(self._model.family, self._model.vocabulary, self._tokens, gap.before, gap.after, room)

    def _reserved(self, text: Around, gap: Gap, cache: Cache) -> AbstractContextManager[int]:
        return self._room.reserved(
            len(text.before) + len(text.after),
            self._limit(gap),
            cache,
            canvas=self._model.family.block,
            at_once=self._model.family.length != "continue",
        )

    def _asked(self, gap: Gap) -> FillTarget:
        deadline, sure = gap.deadline_ms, SETTLED_WHEN[gap.effort]
        unhurried = deadline is None or FORWARDS * self._forward_ms < deadline
        is_inside = bool(gap.after.partition("\n")[0].strip())
        what = "block" if gap.block else "inside" if is_inside else "line"
        return FillTarget(what, self._limit(gap), sure, min(gap.seed, MOST_SEEDS), compare=unhurried)

    def _limit(self, gap: Gap) -> int:
        return max(1, min(gap.most_tokens, self._context // 4))

    def _present(self, gap: Gap, text: Around, progress: FillProgress) -> tuple[Draft, bool]:
        """What is shown, and whether nothing more belongs to the answer."""
        spelled = self._tokens.decode_bytes(token for token, _ in progress.settled)
        if not spelled.startswith(text.typed):
            return Draft(), False
        answer = spelled[len(text.typed) :].decode("utf-8", "replace").partition("\ufffd")[0]
        text_kept, complete = cut(gap, self._whole_words(answer, progress), finished=progress.done)
        if names := KnownNames.of(gap, text.typed.decode("utf-8", "replace")):
            text_kept, complete = names.existing(text_kept, complete=complete)
        visible = [*self._covering(progress.settled, len(text.typed), len(text_kept.encode()))] if text_kept else []
        return likely_start(text_kept, visible, self._judge, bar=gap.bar, complete=complete), complete

    def _slots(self, text: Around, progress: FillProgress) -> Iterator[Slot]:
        """The slots, all settled: a token is never masked again, and those that resize a gap are gone by now."""
        spelled = self._tokens.token_bytes
        return slots_of([guess and (spelled[guess[0]], guess[1], True) for guess in progress.slots], text.typed)

    def _whole_words(self, answer: str, progress: FillProgress) -> str:
        """The text without a final word that probably continues."""
        unknown = progress.next in (-1, self._model.vocabulary.expand)
        following = b"a" if unknown else self._tokens.token_bytes[progress.next]
        goes_on = LAST_WORD.search(following[:1].decode("latin-1"))
        return LAST_WORD.sub("", answer) if goes_on and not progress.done else answer

    def _covering(self, settled: Sequence[Settled], typed: int, size: int) -> Iterator[tuple[int, float]]:
        """Where each of the tokens that spell `size` bytes behind what is typed ends, and its probability."""
        end = -typed
        for token, probability in settled:
            if end >= size:
                return
            end += len(self._tokens.token_bytes[token])
            yield end, probability


def open_family(folder: Path, record: ModelRecord, resources: Resources) -> FamilyEngine:
    """The diffusion model in a folder, whose record names its family."""
    family = family_named(record.prompt)
    if family is None:
        names = ", ".join(family.name for family in FAMILIES)
        raise EngineError(
            f"{folder / RECORD_FILE}: prompt is {record.prompt!r}, not one of the families {names}; "
            "add the model again: `mercury-ls model add`"
        )
    runtime, tokenizer = opened_with(
        partial(PretrainedTokenizer, folder / TOKENIZER_FILE), partial(open_decoder, folder, record, resources)
    )
    room = room_of(runtime, record.name, folder, resources)
    manner = Manner(family.block, family.shift, family.window, tokenizer.special(family.mask))
    talker = open_talker(folder, room, tokenizer, manner, (*family.ends, family.eos))
    at_once = READ_ONWARD if family.length == "continue" else READ_AT_ONCE
    return FamilyEngine(
        runtime,
        tokenizer,
        record,
        family,
        calibration=read_calibration(folder),
        context=at_once if on_cpu(runtime) else 0,
        room=room,
        talker=talker,
    )
