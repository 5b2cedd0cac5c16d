"""How each family of models writes a text with a gap: the tokens, their order, and how other files stand beside it."""

import re
from collections.abc import Collection
from functools import cache

from msgspec import Struct

from mercury_engine.api import EngineError
from mercury_engine.prompts.pieces import Begin, Piece, Special


class Dialect(Struct, frozen=True, kw_only=True):
    """The fill-in-the-middle format of one family of models, as data.

    `alone` is the prompt for one file; `among` the prompt that has other files too, each of them written as `file`.
    `{prefix}`, `{suffix}`, `{path}`, `{text}` and `{files}` are what is put in; `tokens` are special tokens wherever
    they stand. A model that has them all speaks the dialect, unless its name says another: `names` is a regular
    expression. `knows_paths`: it was trained on files under their names, so that a path helps even a single file.
    `ends` are the tokens that end an answer beside `tokens`; a model may lack some of them. `begin` stands before
    every text.
    """

    name: str
    names: str
    tokens: tuple[str, ...]
    alone: str
    among: str
    file: str = "#{path}\n{text}\n"
    ends: tuple[str, ...] = ()
    begin: str = ""
    knows_paths: bool = False

    @property
    def suffix_first(self) -> bool:
        return self.alone.index("{suffix}") < self.alone.index("{prefix}")

    @property
    def is_ours(self) -> bool:
        """It is written as rows of ours are: the suffix begins behind `{near}`, the prefix ends above `{head}`."""
        return "{near}" in self.alone

    @property
    def suffix_lines(self) -> int:
        """How many lines a model reads that reads slowly: a suffix that comes first stays encoded while the user types,
        any other is encoded again with every key."""
        return 64 if self.suffix_first else 12

    @property
    def stop_tokens(self) -> tuple[Special, ...]:
        """The likeliest first, for servers that allow only a few."""
        return tuple(Special(token) for token in dict.fromkeys((*self.ends, *self.tokens)))

    def fill(self, template: str, **texts: str | tuple[Piece, ...]) -> tuple[Piece, ...]:
        """A template as pieces: its special tokens, its own text, and what is put in, which is never a token."""
        pieces: list[Piece] = []
        for part in _seams(self.tokens).split(template):
            inserted = texts.get(part[1:-1], part) if part.startswith("{") else part
            if part in self.tokens:
                pieces.append(Special(part))
            elif isinstance(inserted, tuple):
                pieces.extend(inserted)
            else:
                pieces.append(inserted)
        return tuple(pieces)

    @property
    def start(self) -> tuple[Piece, ...]:
        return (Begin(self.begin),) if self.begin else ()


DIALECTS = (
    Dialect(
        name="qwen",
        names=r"qwen[\d.]*-?coder|qwen-?3|sweep",
        tokens=(*("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"), *("<|repo_name|>", "<|file_sep|>")),
        alone="<|fim_prefix|>{prefix}<|fim_suffix|>{suffix}<|fim_middle|>",
        among=(
            "<|repo_name|>myproject\n{files}<|file_sep|>{path}\n"
            "<|fim_prefix|>{prefix}<|fim_suffix|>{suffix}<|fim_middle|>"
        ),
        file="<|file_sep|>{path}\n{text}\n",
        ends=("<|endoftext|>", "<|file_sep|>", "<|fim_pad|>", "<|im_end|>"),
        knows_paths=True,
    ),
    Dialect(
        name="codegemma",
        names=r"codegemma",
        tokens=("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|file_separator|>"),
        alone="<|fim_prefix|>{prefix}<|fim_suffix|>{suffix}<|fim_middle|>",
        among="{files}{path}\n<|fim_prefix|>{prefix}<|fim_suffix|>{suffix}<|fim_middle|>",
        file="{path}\n{text}<|file_separator|>",
        ends=("<|file_separator|>", "<eos>"),
        begin="<bos>",
        knows_paths=True,
    ),
    Dialect(
        name="granite",
        names=r"granite-?4",
        tokens=("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|end_of_text|>"),
        alone="<|fim_prefix|>{prefix}<|fim_suffix|>{suffix}<|fim_middle|>",
        among="<|fim_prefix|>{files}#{path}\n{prefix}<|fim_suffix|>{suffix}<|fim_middle|>",
        ends=("<|end_of_text|>", "<|filename|>", "<|fim_pad|>"),
    ),
    Dialect(
        name="starcoder",
        names=r"starcoder-?2",
        tokens=("<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<repo_name>", "<file_sep>"),
        alone="<fim_prefix>{prefix}<fim_suffix>{suffix}<fim_middle>",
        among=("<repo_name>myproject{files}<file_sep><fim_prefix>{path}\n{prefix}<fim_suffix>{suffix}<fim_middle>"),
        file="<file_sep>{path}\n{text}",
        ends=("<|endoftext|>", "<file_sep>"),
        knows_paths=True,
    ),
    Dialect(
        name="starcoder1",
        names=r"starcoder|refact|stable-?code|codeqwen|granite.*code",
        tokens=("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
        alone="<fim_prefix>{prefix}<fim_suffix>{suffix}<fim_middle>",
        among="<fim_prefix>{files}#{path}\n{prefix}<fim_suffix>{suffix}<fim_middle>",
        ends=("<|endoftext|>", "<filename>", "<reponame>"),
    ),
    Dialect(
        name="mellum",
        names=r"mellum",
        tokens=("<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<filename>"),
        alone="<fim_suffix>{suffix}<fim_prefix>{prefix}<fim_middle>",
        among="{files}<filename>{path}\n<fim_suffix>{suffix}<fim_prefix>{prefix}<fim_middle>",
        file="<filename>{path}\n{text}\n",
        ends=("<|endoftext|>", "<filename>"),
        knows_paths=True,
    ),
    Dialect(
        name="deepseek",
        names=r"deepseek-?(?:coder|v\d)",
        tokens=("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>", "<｜end▁of▁sentence｜>"),
        alone="<｜fim▁begin｜>{prefix}<｜fim▁hole｜>{suffix}<｜fim▁end｜>",
        among="{files}#{path}\n<｜fim▁begin｜>{prefix}<｜fim▁hole｜>{suffix}<｜fim▁end｜>",
        ends=("<｜end▁of▁sentence｜>", "<|EOT|>"),
        begin="<｜begin▁of▁sentence｜>",
        knows_paths=True,
    ),
    Dialect(
        name="codestral",
        names=r"codestral",
        tokens=("[SUFFIX]", "[PREFIX]"),
        alone="[SUFFIX]{suffix}[PREFIX]{prefix}",
        among="[SUFFIX]{suffix}[PREFIX]{files}+++++ {path}\n{prefix}",
        file="+++++ {path}\n{text}\n\n",
        ends=("</s>",),
        begin="<s>",
        knows_paths=True,
    ),
    Dialect(
        name="seed",
        names=r"seed-?coder",
        tokens=("<[fim-suffix]>", "<[fim-prefix]>", "<[fim-middle]>"),
        alone="<[fim-suffix]>{suffix}<[fim-prefix]>{prefix}<[fim-middle]>",
        among="<[fim-suffix]>{suffix}<[fim-prefix]>{files}#{path}\n{prefix}<[fim-middle]>",
        ends=("<[end▁of▁sentence]>",),
        begin="<[begin▁of▁sentence]>",
    ),
    Dialect(
        name="glm",
        names=r"glm-?4",
        tokens=("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"),
        alone="<|code_prefix|>{prefix}<|code_suffix|>{suffix}<|code_middle|>",
        among="<|code_prefix|>{files}#{path}\n{prefix}<|code_suffix|>{suffix}<|code_middle|>",
        ends=("<|endoftext|>", "<|user|>"),
    ),
    Dialect(
        name="falcon-tiny",
        names=r"falcon.*coder",
        tokens=("<|prefix|>", "<|suffix|>", "<|middle|>"),
        alone="<|prefix|>{prefix}<|suffix|>{suffix}<|middle|>",
        among="<|prefix|>{files}#{path}\n{prefix}<|suffix|>{suffix}<|middle|>",
        ends=("<|end_of_text|>", "<|endoftext|>"),
    ),
    Dialect(
        name="codellama",
        names=r"code-?llama",
        tokens=("<PRE>", "<SUF>", "<MID>"),
        alone="<PRE> {prefix} <SUF>{suffix} <MID>",
        among="<PRE> {files}#{path}\n{prefix} <SUF>{suffix} <MID>",
        ends=("<EOT>", "</s>"),
        begin="<s>",
    ),
    Dialect(
        name="quicksilver",
        names=r"quicksilver",
        tokens=(*("<path>", "<snip>", "<edits>", "<suf>", "<pre>", "<near>", "<line>", "<block>", "<cur>"), "<eom>"),
        alone="{language}<path>{path}<edits><suf>{suffix}<pre>{prefix}<near>{near}{mode}<cur>{head}",
        among="{language}<path>{path}{files}<edits><suf>{suffix}<pre>{prefix}<near>{near}{mode}<cur>{head}",
        file="<snip>{path}\n{text}",
        ends=("<eom>",),
        begin="<bos>",
        knows_paths=True,
    ),
)


@cache
def _seams(tokens: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("(" + "|".join([r"\{\w+\}", *map(re.escape, tokens)]) + ")")


def dialect_named(name: str) -> Dialect:
    for dialect in DIALECTS:
        if dialect.name == name:
            return dialect
    names = ", ".join(dialect.name for dialect in DIALECTS)
    raise EngineError(f"prompt: no such format as {name!r}; use one of {names}")


def dialect_for(added_tokens: Collection[str], name: str = "") -> Dialect | None:
    """The dialect of a model by the special tokens that it has, and by its name where those leave a choice, or where
    they are not known. None for a model that was not trained to fill gaps."""
    added = frozenset(added_tokens)
    possible = [dialect for dialect in DIALECTS if not added or added.issuperset(dialect.tokens)]
    named = [dialect for dialect in possible if re.search(dialect.names, name, re.IGNORECASE)]
    return next(iter([*named, *(possible if added else [])]), None)
