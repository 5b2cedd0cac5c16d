"""A tokenizer of a few words, and a runtime that knows an answer by heart and checks what it is shown."""

import re
from types import SimpleNamespace

import numpy as np

from mercury_engine.api import Gap
from mercury_engine.families.family import Family
from mercury_engine.families.progress import Encoded, FamilyModel
from mercury_engine.families.vocabulary import FamilyVocabulary

WORDS = ("self", "width", "height", ".width", ".height", " *", " self", "return", " return", "def", "\n", "    ", "()")
PRE_TOKEN = re.compile(r"\s?\w+|\s?[^\w\s]+|\s")


class WordTokenizer:
    """256 bytes, then words, then special tokens."""

    def __init__(self, *special):
        self.token_bytes = [*(bytes([byte]) for byte in range(256)), *(word.encode() for word in WORDS)]
        self._special = {name: len(self.token_bytes) + number for number, name in enumerate(special)}
        self.token_bytes += [b""] * len(special)
        self.added = frozenset(special)

    @property
    def vocabulary(self):
        return len(self.token_bytes)

    def special(self, name):
        return self._special[name]

    def encode(self, text):
        data, ids = text.encode(), []
        while data:
            best = max(
                (t for t, spelled in enumerate(self.token_bytes) if spelled and data.startswith(spelled)), key=self.size
            )
            ids.append(best)
            data = data[self.size(best) :]
        return ids

    def size(self, token):
        return len(self.token_bytes[token])

    def decode_bytes(self, ids):
        return b"".join(self.token_bytes[token] for token in ids)

    def allowed(self, typed):
        spelled = enumerate(self.token_bytes)
        return np.array([t for t, own in spelled if own and (own.startswith(typed) or typed.startswith(own))])

    def split(self, head):
        *_, last = PRE_TOKEN.findall(head)
        return head[: len(head) - len(last)], last


def tokenizer_of(family: Family) -> WordTokenizer:
    return WordTokenizer(*dict.fromkeys(("<|endoftext|>", "<|im_end|>", *family.tokens, *family.ends)))


class ListCache:
    """What is cached, at so many bytes an entry."""

    def __init__(self, size=4):
        self.entries = []
        self._size = size

    @property
    def length(self):
        return len(self.entries)

    @property
    def bytes(self):
        return self._size * len(self.entries)

    def bytes_for(self, rows):
        return self._size * rows

    def append(self, forward, rows):
        self.entries += [forward.entries[row] for row in rows]

    def truncate(self, length):
        assert 0 <= length <= self.length
        del self.entries[length:]


class ScriptedRuntime:
    """Says what `script(runtime, sequence)` says of a whole sequence: the likeliest token behind or at each position,
    with its probability. Every position is in the cache or in the rows, once."""

    name, device, precision, batch = "fake", "cpu", "float32", 1
    spare = 3

    def __init__(self, family: Family, tokenizer: WordTokenizer, script, *, context=2048):
        self.family = family
        self.tokenizer = tokenizer
        self.config = SimpleNamespace(vocabulary=tokenizer.vocabulary + self.spare, context=context, name="fake")
        self.ids = FamilyVocabulary(family, tokenizer, self.config.vocabulary)
        self.script = script
        self.rows = []
        self.sequences = []

    def cache(self):
        return ListCache()

    def pass_bytes(self, rows, columns):
        return 4 * rows * columns

    def padded(self, rows):
        return rows

    def forwards(self, passes):
        return [self.forward(one.rows, one.cache) for one in passes]

    def forward(self, rows, cache):
        entries = list(zip(rows.ids_R.tolist(), rows.positions_R.tolist(), strict=True))
        columns = [*cache.entries, *entries]
        sequence = [token for token, _ in sorted(columns, key=lambda entry: entry[1])]
        assert sorted(position for _, position in columns) == list(range(len(sequence)))
        assert len(sequence) <= self.config.context
        self._check_mask(rows, [position for _, position in columns])
        self.rows.append(len(entries))
        self.sequences.append(sequence)
        said = self.script(self, sequence)
        logits = [self._logits(*said(entries[row][1] + self.family.shift)) for row in rows.wanted]
        return SimpleNamespace(
            logits_WV=np.array(logits, np.float32).reshape(len(logits), self.config.vocabulary), entries=entries
        )

    def _check_mask(self, rows, columns):
        own, seen = rows.positions_R[:, None], np.array(columns)[None]
        block = self.family.block
        expected = own // block >= seen // block if block else np.ones((len(rows.ids_R), len(columns)), bool)
        np.testing.assert_array_equal(rows.mask_RC, expected)

    def _logits(self, token, probability):
        permitted = self.config.vocabulary - len(self.ids._never)
        logits = np.full(self.config.vocabulary, 0.0)
        logits[token] = np.log(probability / (1 - probability) * (permitted - 1))
        logits[self.ids.mask] = 60  # never said, though the likeliest
        logits[self.tokenizer.vocabulary :] = 70
        return logits


def gap(marked, *, most_tokens=32, path="shapes.py", session="s", **fields):
    """The gap at `$0`."""
    before, _, after = marked.partition("$0")
    place = {"path": path, "language": "python", "before": before, "after": after}
    return Gap(session=session, **place, most_tokens=most_tokens, **fields)


def model_of(family, script, **options):
    runtime = ScriptedRuntime(family, tokenizer_of(family), script, **options)
    return FamilyModel(runtime, family, runtime.ids), runtime


def encoded_of(runtime, *, exact=False):
    return None if exact else Encoded(runtime.cache())


def words(family, text):
    return tokenizer_of(family).encode(text)


class RandomRuntime(ScriptedRuntime):
    """Says anything."""

    def __init__(self, family, tokenizer, seed, sharpness):
        super().__init__(family, tokenizer, None)
        self.random, self.sharpness = np.random.default_rng(seed), sharpness

    def forward(self, rows, cache):
        entries = list(zip(rows.ids_R.tolist(), rows.positions_R.tolist(), strict=True))
        self.rows.append(len(entries))
        logits = self.random.normal(size=(len(rows.wanted), self.config.vocabulary)) * self.sharpness
        return SimpleNamespace(logits_WV=logits.astype(np.float32), entries=entries)


def check_random(family, seed, sharpness, limit, steps_of):
    """Whatever a model says, its answer ends, with one forward to a step, and holds text only."""
    runtime = RandomRuntime(family, tokenizer_of(family), seed, sharpness)
    model = FamilyModel(runtime, family, runtime.ids)
    count = 0
    for count, progress in enumerate(steps_of(model), 1):
        assert len(runtime.rows) == count
        assert len(progress.settled) <= limit
        assert all(runtime.tokenizer.token_bytes[token] for token, _ in progress.settled)
    assert count <= 3 * (limit + family.block) + 5
