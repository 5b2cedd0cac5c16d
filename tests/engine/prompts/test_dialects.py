"""A model's dialect is found by its tokens, then by its name, and not guessed."""

import pytest

from mercury_engine.api import EngineError
from mercury_engine.prompts.dialects import DIALECTS, dialect_for, dialect_named
from mercury_engine.prompts.pieces import Begin, Special, joined
from mercury_engine.tokens.vocabulary import SPECIALS

QWEN = {"<|endoftext|>", "<|im_end|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>"}
QWEN |= {"<|repo_name|>", "<|file_sep|>"}
STARCODER = {"<|endoftext|>", "<fim_prefix>", "<fim_middle>", "<fim_suffix>", "<fim_pad>"}
GRANITE = {"<|end_of_text|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>", "<|filename|>"}


@pytest.mark.parametrize(
    ("tokens", "name", "dialect"),
    [
        (QWEN, "", "qwen"),
        (QWEN, "my-fine-tune", "qwen"),
        ({"<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|file_separator|>"}, "", "codegemma"),
        (GRANITE, "granite-4.0-350m", "granite"),
        (STARCODER | {"<repo_name>", "<file_sep>"}, "", "starcoder"),
        (STARCODER | {"<filename>", "<reponame>"}, "granite-3b-code-base", "starcoder1"),
        (STARCODER | {"<filename>", "<reponame>"}, "", "starcoder1"),
        (STARCODER | {"<filename>"}, "JetBrains/Mellum-4b-base", "mellum"),
        ({"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>", "<｜end▁of▁sentence｜>"}, "", "deepseek"),
        ({"[PREFIX]", "[SUFFIX]", "[MIDDLE]"}, "", "codestral"),
        ({"<[fim-suffix]>", "<[fim-prefix]>", "<[fim-middle]>"}, "", "seed"),
        ({"<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>"}, "", "glm"),
        ({"<|prefix|>", "<|suffix|>", "<|middle|>"}, "", "falcon-tiny"),
        (SPECIALS, "", "quicksilver"),
    ],
)
def test_by_the_tokenizers_added_tokens(tokens, name, dialect):
    assert dialect_for(tokens, name).name == dialect


@pytest.mark.parametrize(
    ("name", "dialect"),
    [
        ("Qwen/Qwen2.5-Coder-1.5B", "qwen"),
        ("qwen2.5-coder:3b", "qwen"),
        ("Qwen/Qwen3-Coder-30B-A3B-Instruct", "qwen"),
        ("qwen3.5:0.8b", "qwen"),
        ("Qwen/CodeQwen1.5-7B", "starcoder1"),
        ("starcoder2:3b", "starcoder"),
        ("stable-code:3b", "starcoder1"),
        ("deepseek-coder-v2:16b", "deepseek"),
        ("codegemma:2b", "codegemma"),
        ("codestral:latest", "codestral"),
        ("mellum-4b-sft-python", "mellum"),
        ("Seed-Coder-8B-Base", "seed"),
        ("glm-4:9b", "glm"),
        ("Falcon-H1-Tiny-Coder-90M", "falcon-tiny"),
        ("codellama:7b", "codellama"),
        ("ibm-granite/granite-4.0-micro", "granite"),
        ("ibm-granite/granite-3b-code-base-2k", "starcoder1"),
    ],
)
def test_by_name_where_the_tokens_are_not_known(name, dialect):
    assert dialect_for((), name).name == dialect


@pytest.mark.parametrize(
    ("tokens", "name"),
    [((), ""), ((), "llama3:70b"), ((), "devstral"), ({"<|im_start|>", "<|im_end|>"}, "qwen2.5-coder")],
)
def test_model_that_does_not_fill_has_no_dialect(tokens, name):
    assert dialect_for(tokens, name) is None


def test_unknown_dialect_names_known_ones():
    with pytest.raises(EngineError, match="no such format as 'quen'; use one of qwen, "):
        dialect_named("quen")


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_dialects_are_whole(dialect):
    assert dialect_named(dialect.name) is dialect
    assert all("{prefix}" in t and "{suffix}" in t for t in (dialect.alone, dialect.among))
    assert "{path}" in dialect.file
    assert "{text}" in dialect.file
    assert dialect.suffix_lines == (64 if dialect.name in ("codestral", "mellum", "seed", "quicksilver") else 12)
    assert {*dialect.stop_tokens} >= {*dialect.ends, *dialect.tokens}
    assert all(type(piece) is Begin for piece in dialect.start)


def test_inserted_text_is_never_a_token():
    typed = "<|code_prefix|>{suffix}"
    pieces = joined(dialect_named("glm").fill("<|code_prefix|>{prefix}<|code_suffix|>", prefix=typed))
    assert pieces == ("<|code_prefix|>", typed, "<|code_suffix|>")
    assert [type(piece) for piece in pieces] == [Special, str, Special]
