"""Models for tests: one with random weights, and one that writes what it is told."""

from functools import cache
from types import SimpleNamespace

import msgspec
import numpy as np

from mercury_engine.autoregressive.engine import AutoregressiveEngine
from mercury_engine.decode.batching import run_unbatched
from mercury_engine.decode.reading import ReadingPace
from mercury_engine.model.config import TINY
from mercury_engine.model.openvino_runtime import OpenvinoRuntime
from mercury_engine.model.runtime import score_bytes
from mercury_engine.model.silent_openvino import ov
from mercury_engine.record import ModelRecord
from mercury_training.models import create
from tests.engine.families.fakes import ListCache
from tests.engine.tiny import FLAT
from tests.engine.tokens.pretrained_files import tokenizer

TOKENIZER = tokenizer("qwen")
FIM = ModelRecord(name="tiny-coder", kind="fim", prompt="qwen")
MIDDLE, END = TOKENIZER.special("<|fim_middle|>"), TOKENIZER.special("<|endoftext|>")
CONFIG = msgspec.structs.replace(TINY, context=768)


def engine(runtime, record=FIM, *, costs=FLAT, pace=None, **options):
    """Reads in no time, unless a `pace` is given."""
    pace = pace or ReadingPace(costs, lambda: 0.0)
    return AutoregressiveEngine(runtime, TOKENIZER, record, costs=costs, pace=pace, **options)


def decoded(answering, asked):
    """The greedy answer with its tokens."""
    decoder, asking = answering._decoder, answering._asking
    question = asking.about_gap(asking.dialect, asked, answering._prompts()[0])
    session = answering._sessions.open(asked.session, question.ids)
    (decoding,) = answering._attempts(answering._place(asked, asked.path), session, question, 0)
    for _ in run_unbatched(decoder.runtime, decoding.run()):
        pass
    return decoding.answer


@cache
def random_runtime(seed=0):
    """Random weights large enough that every context says something else."""
    weights = {}
    generator = np.random.default_rng(seed)
    for name, weight in create(CONFIG, seed).state_dict().items():
        norm = "norm" in name
        scale = 1.0 if norm else 6 * float(weight.std())
        weights[name] = (generator.standard_normal(weight.shape) * (0.1 if norm else scale) + norm).astype(np.float32)
    return OpenvinoRuntime(CONFIG, weights, threads=1, precision=ov.Type.f32)


class Scripted:
    """Writes `answer` behind each prompt and ends; each of its tokens has the probability `sure`.

    An answer is a text, or says what follows the text that the model reads. `reads` are the rows of each forward.
    """

    name, device, precision, batch = "scripted", "cpu", "exact", 1

    def __init__(self, answer, *, sure=0.999, tokens=TOKENIZER, middle=MIDDLE, config=CONFIG):
        self.config = config
        self.reads = []
        self._answer = answer
        self._sure = sure
        self._tokens = tokens
        self._middle = middle

    def cache(self, *, edits=False):
        return ListCache(1000)

    def pass_bytes(self, rows, columns):
        return score_bytes(self.config, rows, columns)

    def forward(self, rows, cache):
        ids = rows.ids_R.tolist()
        self.reads.append(len(ids))
        sees_RR = np.tri(len(ids), dtype=bool) if rows.mask_RC is None else rows.mask_RC[:, cache.length :]
        paths = [rows.ids_R[sees_R].tolist() for sees_R in sees_RR]
        assert rows.positions_R.tolist() == [cache.length + len(path) - 1 for path in paths]
        told = [self._logits([*cache.entries, *paths[row]]) for row in rows.wanted]
        logits_WV = np.array(told, np.float32).reshape(len(told), self.config.vocabulary)
        return SimpleNamespace(entries=ids, logits_WV=logits_WV)

    def padded(self, rows):
        return rows

    def forwards(self, passes):
        return [self.forward(one.rows, one.cache) for one in passes]

    def _logits(self, ids):
        logits_V = np.zeros(self.config.vocabulary)
        others = sum(bool(spelled) for spelled in self._tokens.token_bytes) + len(self._tokens.added) - 1
        logits_V[self._next(ids)] = np.log(self._sure * others / (1 - self._sure))
        return logits_V

    def _next(self, ids):
        """Nothing at all in the middle of a prompt."""
        if self._middle not in ids:
            return 0
        at = len(ids) - ids[::-1].index(self._middle)
        read, said = self._tokens.decode(ids[:at]), self._tokens.decode(ids[at:])
        wanted = self._answer if isinstance(self._answer, str) else self._answer(read)
        rest = self._tokens.encode(wanted[len(said) :]) if wanted.startswith(said) else []
        return rest[0] if rest else END
