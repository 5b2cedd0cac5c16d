"""Grammars that constrain answers, walked token by token: JSON with a schema, and tool calls, by llguidance."""

import json
import re
from collections import OrderedDict
from collections.abc import Callable, Generator, Sequence
from functools import cache
from typing import Any, Protocol, TypeVar

import numpy as np
from msgspec import Struct, field

from mercury_engine.api import ChatRequest, EngineError, RequestError, Tool
from mercury_engine.chat.calls import CallFormat
from mercury_engine.chat.schemas import Trial, check_depth, on_deep_stack
from mercury_engine.chat.vocabulary import AnswerVocabulary
from mercury_engine.installation import with_extra

AS_PYTHON = {"item_separator": ", ", "key_separator": ": ", "whitespace_flexible": False}
"""JSON as `json.dumps` writes it, the form in most prompts; free white space invites loops."""

MOST_CALLS = 8
KNOWN = 32
"""The number of grammars that stay compiled; each takes some milliseconds."""

MOST_SYMBOLS = 30_000
"""Per grammar: 300 tools of 10 arguments each. That takes a second to compile, in which no request is answered, and
the time grows quadratically from there."""

MOST_ALTERNATIVES = 5000
"""At one place of an answer: four for each property that may come next. Some steps take a twentieth of a second of
them, in which nothing else runs; of 12,000, several tenths."""

CLOSING_BYTES = 8192
"""The longest ending that is searched for."""

CLOSERS = b'"}],:'
OPENERS = b"{[\\"
"""Bytes that bring a JSON text to its end, the first allowed one; and those that lead away from it."""

STRUCTURE = frozenset(b'"}],:{[0123456789+-.eEtfn \n')
"""Where anything else is allowed a string is being written, in which brackets close nothing."""

NEW_ORDER = b"a0@.-:/_"
"""Of the bytes not written yet these come first: they separate the parts of most patterns."""

END = 256

Result = TypeVar("Result")
Steps = Generator[None, None, Result]
"""Work on a grammar, with a `yield` between its steps: under a large schema each takes up to a tenth of a second."""


class Guide(Protocol):
    """The state of an answer in its grammar."""

    def allowed(self) -> np.ndarray | None:
        """The tokens that may come next; None means any text."""
        ...

    def forced(self) -> list[int]:
        """The tokens that must come next, as long as there is no choice."""
        ...

    def take(self, token: int) -> bool:
        """Take the token if it is allowed; return whether it was. The end is not a token of the answer."""
        ...

    def back(self, count: int) -> None:
        """Take back this many tokens."""
        ...

    def closing(self) -> Steps[list[int] | None]:
        """A few tokens that would complete the answer; None if none were found."""
        ...


class Grammars:
    """Compiles the grammars of one model."""

    def __init__(self, vocabulary: AnswerVocabulary) -> None:
        self._vocabulary = vocabulary
        self._tokens: Any = None
        self._trial = Trial()
        self._known: OrderedDict[str, MatcherGuide] = OrderedDict()

    def guide(self, request: ChatRequest, form: CallFormat) -> Guide | None:
        """The constraint on the answer; None if there is none."""
        tools = _callable(request)
        if not tools and not request.schema:
            return None
        if request.tool_choice == "auto" and not request.schema:
            grammar = self._compiled(["start: calls", *_call_rules(tools, form)])
            skipped = form.before.partition(form.trigger)[0].encode()
            grammar.begin(skipped)
            return _TriggeredGuide(self._vocabulary, form.trigger.encode(), grammar.copy)
        starts = ["calls"] if tools else []
        rules = _call_rules(tools, form) if tools else []
        if request.schema and (request.tool_choice in ("auto", "none") or not tools):
            starts.append("answer")
            rules.append(f"answer: %json {_schema(request.schema, 'the schema')}")
        return self._compiled([f"start: {' | '.join(starts)}", *rules])

    def _compiled(self, rules: Sequence[str]) -> "MatcherGuide":
        llguidance = _library()
        if self._tokens is None:
            self._tokens = _tokens_of(self._vocabulary)
        text = "\n".join(rules)
        if text not in self._known:
            if reason := self._trial.survives(text, MOST_SYMBOLS):
                raise RequestError(f"this schema cannot be enforced: {reason}; make it simpler")
            grammar = llguidance.LLMatcher.grammar_from_lark(text)
            limits = _limits(MOST_SYMBOLS)
            matcher, spelled = on_deep_stack(
                lambda: (
                    llguidance.LLMatcher(self._tokens, grammar, log_level=0, limits=limits),
                    byte_matcher(text, MOST_SYMBOLS),
                )
            )
            _check(matcher)
            if not any(spelled.compute_bitmask()[: END // 8]):
                raise RequestError("this schema cannot be enforced: it refers to itself, and nothing satisfies it")
            self._known[text] = MatcherGuide(self._vocabulary, matcher, spelled)
        self._known.move_to_end(text)
        while len(self._known) > KNOWN:
            self._known.popitem(last=False)
        return self._known[text].copy()


class MatcherGuide(Struct, eq=False):
    """A grammar's state after the tokens taken so far, and the same after their bytes, which is used to search for
    endings: with 257 symbols each step costs microseconds."""

    vocabulary: AnswerVocabulary
    matcher: Any
    spelled: Any
    sizes: list[int] = []

    def copy(self) -> "MatcherGuide":
        return MatcherGuide(self.vocabulary, self.matcher.deep_copy(), self.spelled.deep_copy(), [*self.sizes])

    def begin(self, spelled: bytes) -> bool:
        """Take the text written so far."""
        tokens = [*self._each(spelled)]
        return _took(self.matcher, tokens) and _took(self.spelled, spelled)

    def allowed(self) -> np.ndarray:
        bits = np.frombuffer(self.matcher.compute_bitmask(), np.uint8)
        allowed = np.flatnonzero(np.unpackbits(bits, bitorder="little"))
        _check(self.matcher)
        return allowed[allowed < self.vocabulary.size]

    def forced(self) -> list[int]:
        return [token for token in self.matcher.compute_ff_tokens() if token not in self.vocabulary.ends]

    def take(self, token: int) -> bool:
        spelled = self.vocabulary.bytes[token]
        if not spelled or not _took(self.matcher, [token]):
            return False
        if not _took(self.spelled, spelled):
            # All copies of a grammar share a lexer, and only the copy in which it passed a limit says so.
            raise RequestError(f"this schema cannot be enforced after {spelled!r}: make it simpler")
        self.sizes.append(len(spelled))
        return True

    def back(self, count: int) -> None:
        if count > 0:
            self.matcher.rollback(count)
            self.spelled.rollback(sum(self.sizes[-count:]))
            del self.sizes[-count:]

    def closing(self) -> Steps[list[int] | None]:
        spelled = yield from _ending(self.spelled.deep_copy())
        if spelled is None:
            return None
        for tokens in (self._encoded(spelled), [*self._each(spelled)]):
            if self.matcher.validate_tokens(tokens) == len(tokens):
                return tokens
        return None

    def _encoded(self, spelled: bytes) -> list[int]:
        """The tokens of a text; a character that has begun is finished byte by byte."""
        start = next((at for at, byte in enumerate(spelled) if byte & 0xC0 != 0x80), len(spelled))
        return [*self._each(spelled[:start]), *self.vocabulary.encode(spelled[start:].decode("utf-8", "replace"))]

    def _each(self, spelled: bytes) -> list[int]:
        return [self.vocabulary.of_byte[byte] for byte in spelled]


def _took(matcher: Any, symbols: Sequence[int]) -> bool:
    took = matcher.try_consume_tokens([*symbols]) == len(symbols)
    if not took:
        _check(matcher)
    return took


def _check(matcher: Any) -> None:
    """A schema can pass a limit of the library when it is compiled, or at any token of the answer."""
    if matcher.is_error():
        raise RequestError(f"this schema cannot be enforced: {_reason(matcher.get_error())}")


class _TriggeredGuide(Struct, eq=False):
    """Any text, until it has the `trigger`: from there on a grammar."""

    vocabulary: AnswerVocabulary
    trigger: bytes
    grammar: Callable[[], MatcherGuide]
    inner: MatcherGuide | None = None
    texts: list[bytes] = field(default_factory=lambda: [b""])
    inside: int = 0

    def allowed(self) -> np.ndarray | None:
        return self.inner.allowed() if self.inner else None

    def forced(self) -> list[int]:
        return self.inner.forced() if self.inner else []

    def take(self, token: int) -> bool:
        if self.inner:
            accepted = self.inner.take(token)
            self.inside += accepted
            return accepted
        text = self.texts[-1] + self.vocabulary.bytes[token]
        at = text.find(self.trigger)
        if at >= 0:
            inner = self.grammar()
            if not inner.begin(text[at:]):
                return False
            self.inner = inner
        self.texts.append(text)
        return True

    def back(self, count: int) -> None:
        inside = min(count, self.inside)
        if self.inner:
            self.inner.back(inside)
            self.inside -= inside
        if count > inside:
            self.inner = None
            del self.texts[inside - count :]

    def closing(self) -> Steps[list[int] | None]:
        return (yield from self.inner.closing()) if self.inner else []


def _ending(matcher: Any) -> Steps[bytes | None]:
    """A short way to the end: closing bytes first, opening ones last, and of the others those written longest ago,
    so that no pattern is repeated for ever."""
    text, last = bytearray(), [0] * END
    while not matcher.is_accepting():
        if len(text) >= CLOSING_BYTES:
            return None
        yield
        step = matcher.compute_ff_bytes() or _closest(matcher, last)
        if not step or matcher.try_consume_tokens([*step]) != len(step):
            return None
        text += step
        for at, byte in enumerate(step):
            last[byte] = len(text) + at
    return bytes(text)


def _closest(matcher: Any, last: Sequence[int]) -> bytes:
    """The next byte, if any is allowed."""
    bits = np.unpackbits(np.frombuffer(matcher.compute_bitmask(), np.uint8), bitorder="little")
    allowed = [byte for byte in np.flatnonzero(bits).tolist() if byte < END]
    closers = CLOSERS if STRUCTURE.issuperset(allowed) else CLOSERS[:1]
    closing = next((byte for byte in closers if byte in allowed), None)
    if closing is None:
        closing = min(
            allowed, key=lambda byte: (byte in OPENERS, last[byte], NEW_ORDER.find(byte) % 256, byte), default=None
        )
    return b"" if closing is None else bytes([closing])


def _callable(request: ChatRequest) -> Sequence[Tool]:
    if request.tool_choice in ("auto", "required"):
        return request.tools
    return [tool for tool in request.tools if tool.name == request.tool_choice]


def _call_rules(tools: Sequence[Tool], form: CallFormat) -> list[str]:
    names = [f"call_{number}" for number in range(len(tools))]
    forms = [f"{name}: {_call(tool, form)}" for name, tool in zip(names, tools, strict=True)]
    apart = f"{json.dumps(form.apart)} " if form.apart else ""
    return [f"calls: call ({apart}call){{0,{MOST_CALLS - 1}}}", f"call: {' | '.join(names)}", *forms]


def _call(tool: Tool, form: CallFormat) -> str:
    before, after = f"{form.before}{tool.name}{form.between}", form.after
    arguments = f"%json {_schema(tool.parameters, f'the parameters of {tool.name}')}"
    return " ".join([json.dumps(before), arguments, *([json.dumps(after)] if after else [])])


def _schema(text: str, whose: str) -> str:
    """A schema with white space as `json.dumps` writes it."""
    try:
        schema = json.loads(text)
        if schema is True:
            schema = {}
        if not isinstance(schema, dict):
            raise RequestError(f"{whose} is {text[:40]}, which is not a JSON schema: it must be an object")
        check_depth(schema, whose)
        return json.dumps({**schema, "x-guidance": AS_PYTHON})
    except RecursionError as error:
        raise RequestError(f"{whose} is nested too deeply: flatten it, or use $defs") from error
    except ValueError as error:
        raise RequestError(f"{whose} is not JSON ({error})") from error


def _reason(error: str) -> str:
    """The first line of a compiler error, without positions in our rules."""
    return WHERE.sub("", error.partition("\n")[0])[:300]


WHERE = re.compile(r"^(at \d+\(\d+\): )?(failed to compile JSON schema: )?")


def _library() -> Any:
    try:
        import llguidance
    except ImportError as error:
        raise EngineError(f"JSON schemas and tools need the extra `chat`: {with_extra('chat')}") from error
    return llguidance


class _Tokens:
    """A vocabulary as llguidance reads it."""

    bos_token_id = None

    def __init__(self, tokens: Sequence[bytes], ends: Sequence[int], encode: Any) -> None:
        self.tokens = tokens
        self.eos_token_id = ends[0]
        self.special_token_ids = ends
        self._encode = encode

    def __call__(self, text: Any) -> list[int]:
        return self._encode(text)


def _tokens_of(vocabulary: AnswerVocabulary) -> Any:
    from llguidance import LLTokenizer, TokenizerWrapper

    ends = sorted(vocabulary.ends)

    def encode(text: str) -> list[int]:
        if isinstance(text, bytes):
            raise TypeError("characters only")
        return vocabulary.encode(text)

    named = [b"<end>" if token in vocabulary.ends else spelled for token, spelled in enumerate(vocabulary.bytes)]
    return LLTokenizer(TokenizerWrapper(_Tokens(named, ends, encode)), n_vocab=vocabulary.size, eos_token=ends)


def byte_matcher(grammar: str, most_symbols: int) -> Any:
    """A matcher of bytes for a grammar in lark's syntax."""
    llguidance = _library()
    text = llguidance.LLMatcher.grammar_from_lark(grammar)
    return llguidance.LLMatcher(_bytes(), text, log_level=0, limits=_limits(most_symbols))


def _limits(most_symbols: int) -> Any:
    return _library().LLParserLimits(max_grammar_size=most_symbols, max_items_in_row=MOST_ALTERNATIVES)


@cache
def _bytes() -> Any:
    from llguidance import LLTokenizer, TokenizerWrapper

    tokens = [*(bytes([byte]) for byte in range(END)), b"<end>"]
    wrapped = TokenizerWrapper(
        _Tokens(tokens, [END], lambda text: [*(text if isinstance(text, bytes) else text.encode())])
    )
    return LLTokenizer(wrapped, slices=[])
