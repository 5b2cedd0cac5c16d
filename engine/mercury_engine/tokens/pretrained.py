"""The tokenizer of a third-party model, read from its tokenizer.json: BPE on bytes, or with byte fallback.

A token's name in a user's text is text: special tokens are removed from the vocabulary that text is encoded with,
and enter a prompt by name only.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import groupby, product
from pathlib import Path
from typing import Any

import msgspec
import tokenizers

from mercury_engine.api import EngineError
from mercury_engine.bounds import small_bytes
from mercury_engine.prompts.pieces import ANSWERED, Mark, Piece, Prompt, Special, split_into
from mercury_engine.tokens.spelling import Spelling, byte_of_symbol, valid
from mercury_engine.tokens.vocabulary import MAXIMUM_PART

CACHED_PARTS = 1 << 13
LARGEST = 1 << 22
MOST_STEPS = 64
LARGEST_STEPS = 1 << 16
"""In bytes of JSON: some patterns list the letters of all scripts."""
MOST_GROWTH = 1 << 10

LINES = re.compile(r"(?<=\n)(?=[^\n])")
BOUNDARIES = (re.compile(r"(?<=[ \t\n])(?=[ \t][!-/:-~])|(?<=\S\n)(?=[!-.:-~])"), LINES)
"""Where a text may be cut so that its parts are encoded as they are within the whole; the first that fits is used.

Byte-level models split texts like GPT-2, cl100k or o200k: the last blank before a word or sign belongs to it or is a
pre-token of its own, whatever blanks precede it. Others, and vocabularies that are not split at all, have no token
that crosses a line end. What fits neither is encoded whole.
"""

BEFORE = ("a", "1", ");", "é", "a  ", "}\n", "a\n\n", ";\r\n", "a\n ", "a\n\t\t", "\n\n\n")
BEHIND = ("a", "_x", "// a", "}", "'s", "1", "\n", " a", "  .b", "\ta", "    d = 1", "   1", "\t\t}", "  | a", "é")
"""Samples long enough to tell how a tokenizer splits."""

WORD = re.compile(r"(\s?(?<!\w)\w++|\s?(?<![^\w\s])[^\w\s]++|\s)\Z")
"""The last pre-token of a text, for tokenizers without pre-tokens."""


class PretrainedTokenizer(Spelling):
    """Caches the encoded parts of texts, so that an unchanged part costs a look-up."""

    def __init__(self, path: Path) -> None:
        self._source = str(path)
        try:
            self._open(path)
        except (EngineError, KeyboardInterrupt):
            raise
        except BaseException as error:  # the binding raises plain Exception, and its panics are not even that
            raise EngineError(f"{path}: not a tokenizer file ({error}); add the model again") from error

    def _open(self, path: Path) -> None:
        spec = _read(path)
        self._special = {token["content"]: token["id"] for token in spec["added_tokens"] if not _is_text(token)}
        spec["added_tokens"] = [token for token in spec["added_tokens"] if _is_text(token)]
        self._rust = tokenizers.Tokenizer.from_str(msgspec.json.encode(spec).decode())
        self._byte_level = is_byte_level(spec)
        super().__init__(_spellings(spec, self._special, path))
        self.added = frozenset(self._special)
        boundaries = BOUNDARIES if self._byte_level else (LINES,)
        self._boundary = next((boundary for boundary in boundaries if self._holds(boundary)), None)
        self._part = lru_cache(CACHED_PARTS)(self._encode_part)

    def encode(self, text: str) -> list[int]:
        """The tokens of a text, never a special one."""
        parts = [text] if self._boundary is None else self._boundary.split(text)
        return [token for part in parts for token in self._part(part)]

    def special(self, name: str) -> int:
        if name not in self._special:
            raise EngineError(
                f"{self._source}: the model has no token {name!r}: {split_into(len(self.encode(name)))}; if it was "
                "trained for another prompt, name that: `mercury-ls model add SOURCE --prompt NAME`"
            )
        return self._special[name]

    def encode_prompt(self, prompt: Prompt) -> list[int]:
        """Encode adjacent texts as one."""
        ids: list[int] = []
        for special, pieces in groupby(prompt.pieces, key=self._is_token):
            run = list(pieces)
            ids += map(self.special, run) if special else self.encode("".join(run))
        return ids

    def _is_token(self, piece: Piece) -> bool:
        return piece in self._special if isinstance(piece, Mark) else isinstance(piece, Special)

    def split(self, head: str) -> tuple[str, str]:
        """A text up to its last pre-token, and that pre-token, which the next letter may still change.

        Of a run of blanks only the last one can still join a word. Of a long pre-token only the end is returned.
        """
        last = self._last_pre_token(head).rpartition("\n")[2]
        if last.isspace():
            last = last[-1]
        while len(last.encode("utf-8", "replace")) > MAXIMUM_PART:
            last = last[1:]
        return head[: len(head) - len(last)], last

    def _last_pre_token(self, head: str) -> str:
        if self._byte_level and head:
            *_, (_, (start, _)) = self._rust.pre_tokenizer.pre_tokenize_str(valid(head))
            return head[start:]
        match = WORD.search(head)
        return match[0] if match else head

    def _holds(self, boundary: re.Pattern[str]) -> bool:
        """True if texts that are cut there are encoded alike."""
        for text in map("".join, product(BEFORE, BEHIND)):
            if [piece for part in boundary.split(text) for piece in self._pieces(part)] != self._pieces(text):
                return False
        return True

    def _pieces(self, text: str) -> list:
        """The parts that are encoded independently of their surroundings."""
        if self._byte_level:
            return [piece for piece, _ in self._rust.pre_tokenizer.pre_tokenize_str(text)]
        return list(self._encode_part(text))

    def _encode_part(self, part: str) -> tuple[int, ...]:
        try:
            return tuple(self._rust.encode(valid(part), add_special_tokens=False).ids)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # as when it is opened
            raise EngineError(f"{self._source}: cannot encode a text ({error}); add another model") from error


def _read(path: Path) -> dict:
    """Drop what a caller of the original may expect but a prompt in pieces must not have: templates, padding, and
    the blank that some put before every text."""
    try:
        spec = msgspec.json.decode(small_bytes(path))
        kind = spec["model"].get("type", "BPE")
    except OSError as error:
        raise EngineError(f"{path}: cannot read the tokenizer ({error}); add the model again") from error
    if kind != "BPE":
        raise EngineError(f"{path}: a tokenizer of type {kind}; mercury-ls supports only BPE")
    _check_steps(spec, path)
    without = {"post_processor": None, "truncation": None, "padding": None}
    return {
        "added_tokens": [],
        **spec,
        **without,
        "normalizer": _without_prefix(spec.get("normalizer")),
        "pre_tokenizer": _without_prefix(spec.get("pre_tokenizer")),
    }


def _check_steps(spec: dict, path: Path) -> None:
    """Refuse steps that would take long for every text: too many, or ones that each make a text longer."""
    steps, growth, count = [spec.get("normalizer"), spec.get("pre_tokenizer")], 1, 0
    size = len(msgspec.json.encode(steps))
    if size > LARGEST_STEPS:
        raise EngineError(
            f"{path}: its normalizer and pre_tokenizer have {size:,} bytes, and the limit is {LARGEST_STEPS:,}; choose "
            "another model"
        )
    while steps:
        if step := steps.pop():
            steps += [*step.get("normalizers", ()), *step.get("pretokenizers", ())]
            growth *= _growth(step)
            count += 1
    if count > MOST_STEPS or growth > MOST_GROWTH:
        raise EngineError(
            f"{path}: its normalizer and pre_tokenizer make a text {growth:,} times as long in {count:,} steps, and "
            f"the limits are {MOST_GROWTH:,} and {MOST_STEPS:,}; choose another model"
        )


def _growth(step: dict) -> int:
    """The factor by which a step lengthens a text at most, where it may do so repeatedly."""
    if step["type"] == "ByteLevel":
        return 4
    if step["type"] != "Replace":
        return 1
    replaced, content = len(step["pattern"].get("String", "")), len(step["content"])
    return max(1, -(-content // replaced)) if replaced else 1 + content


def _without_prefix(step: dict | None) -> dict | None:
    if step is None or step["type"] == "Prepend":
        return None
    never = {"add_prefix_space": False, "prepend_scheme": "never"}
    own = step | {key: value for key, value in never.items() if key in step}
    for key in ("normalizers", "pretokenizers"):
        if key in step:
            own[key] = [stripped for child in step[key] if (stripped := _without_prefix(child))]
    return own


def _is_text(token: dict) -> bool:
    """True for ordinary text: some vocabularies have runs of blanks as added tokens."""
    return not token.get("special") and token["content"].isspace()


def _spellings(spec: dict, special: dict[str, int], path: Path) -> list[bytes]:
    symbols: dict[str, int] = spec["model"]["vocab"]
    texts = {token["content"]: token["id"] for token in spec["added_tokens"]}
    last = max([*symbols.values(), *special.values(), *texts.values()], default=0)
    if last > LARGEST:
        raise EngineError(f"{path}: has a token with id {last}, above the limit of {LARGEST}; get the model again")
    spelled = [b""] * (1 + last)
    of_symbol = _byte_level if is_byte_level(spec) else _falling_back if spec["model"].get("byte_fallback") else None
    if of_symbol is None:
        raise EngineError(f"{path}: neither a byte-level tokenizer nor one with byte fallback; it would lose text")
    hidden = set(special.values())
    for symbol, token in symbols.items():
        if token not in hidden:
            spelled[token] = of_symbol(symbol)
    marks = {name: token for name, token in special.items() if ANSWERED.fullmatch(name)}
    for text, token in (texts | marks).items():
        spelled[token] = text.encode()
    return spelled


BYTE_OF = byte_of_symbol()
ALPHABET = frozenset(BYTE_OF)
AS_LATIN = str.maketrans({symbol: chr(byte) for symbol, byte in BYTE_OF.items()})
FALLBACK = re.compile(r"<0x([0-9A-F]{2})>")


def _byte_level(symbol: str) -> bytes:
    """The bytes of a symbol; none for the few outside the alphabet, which no text reaches."""
    return symbol.translate(AS_LATIN).encode("latin-1") if ALPHABET.issuperset(symbol) else b""


def _falling_back(symbol: str) -> bytes:
    byte = FALLBACK.fullmatch(symbol)
    return bytes([int(byte[1], 16)]) if byte else symbol.replace("▁", " ").encode()


def is_byte_level(spec: Mapping[str, Any]) -> bool:
    """True if a tokenizer's symbols spell bytes in GPT-2's alphabet."""
    step = spec.get("pre_tokenizer") or {}
    return any(part.get("type") == "ByteLevel" for part in (step, *step.get("pretokenizers", ())))
