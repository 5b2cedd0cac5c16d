"""How many tokens a fill-in-the-middle model reads again with each key: our prompt against llama.vim's and minuet's.

    python -m bench.typing_reads [FILE]

Counts, not times: a function is typed into the middle of a file, and each prompt is compared with the one before, as a
prefix cache does. llama.vim sends 256 lines before the cursor's, 64 after it, and the head of the line behind both;
minuet sends 12,000 characters before the cursor and 4,000 after it.
"""

import argparse
import json
import statistics
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np

from mercury_engine.api import InfillRequest, Span, Window
from mercury_engine.autoregressive.asking import Asking
from mercury_engine.model.config import TOKENIZER_FILE
from mercury_engine.record import ModelRecord
from mercury_engine.tokens.prefix import common_prefix
from mercury_engine.tokens.pretrained import PretrainedTokenizer

__all__ = ["PROMPTS", "fim_tokenizer", "main", "reads"]

ENGINE = Path(__file__).parents[1] / "engine" / "mercury_engine"
TOKENIZER = ENGINE / "models" / "bootstrap" / TOKENIZER_FILE
TYPED = """\
    def total(self, rows: int) -> float:
        return sum(self._clock() for _ in range(rows))

"""
MARKS = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")
ADDED = (*MARKS, "<|repo_name|>", "<|file_sep|>", "<|endoftext|>")
BUDGET = 2048

Prompt = Callable[[PretrainedTokenizer, str, str], Sequence[int]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, default=ENGINE / "engine.py")
    text = parser.parse_args().file.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    before, after = "".join(lines[: len(lines) // 2]), "".join(lines[len(lines) // 2 :])
    tokenizer, figures = fim_tokenizer(), {}
    for name, prompt in PROMPTS.items():
        cold, *keys = reads(prompt, tokenizer, before, after)
        figures[name] = {"cold": cold, "mean": round(statistics.mean(keys), 1), "most": max(keys)}
        print(f"{name:10} cold {cold:5}   a key: {figures[name]['mean']:7.1f} on average, {max(keys):5} at most")
    print(json.dumps({"keys": len(TYPED), "tokens_read": figures}))


def fim_tokenizer() -> PretrainedTokenizer:
    """The shipped vocabulary with the special tokens of Qwen2.5-Coder."""
    file = msgspec.json.decode(TOKENIZER.read_bytes())
    first = 1 + max(file["model"]["vocab"].values())
    common = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False) | {"special": True}
    file["added_tokens"] += [{"id": first + i, "content": name, **common} for i, name in enumerate(ADDED)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / TOKENIZER_FILE
        path.write_bytes(msgspec.json.encode(file))
        return PretrainedTokenizer(path)


def reads(prompt: Prompt, tokenizer: PretrainedTokenizer, before: str, after: str) -> list[int]:
    """The tokens that are read at first and after each key; the last one always is, for its logits."""
    cached, found = np.zeros(0, np.int32), []
    for end in range(len(TYPED) + 1):
        ids = np.array(prompt(tokenizer, before + TYPED[:end], after), np.int32)
        found.append(len(ids) - min(common_prefix([cached], [ids]), len(ids) - 1))
        cached = ids
    return found


def ours(tokenizer: PretrainedTokenizer, before: str, after: str) -> Sequence[int]:
    asking = Asking(ModelRecord(name="coder", kind="fim", prompt="qwen"), tokenizer, BUDGET)
    span = Span(0, len(before), len(before), "line")
    windows = (Window("engine.py", "python", before + after),)
    return asking.question(InfillRequest(session="", windows=windows, spans=(span,)), 0).ids


def llama_vim(tokenizer: PretrainedTokenizer, before: str, after: str) -> Sequence[int]:
    *lines, head = before.split("\n")
    prefix = "".join(f"{line}\n" for line in lines[-256:])
    suffix = "\n".join(after.split("\n")[:65])
    return _fim(tokenizer, prefix, suffix) + tokenizer.encode(head)


def minuet(tokenizer: PretrainedTokenizer, before: str, after: str) -> Sequence[int]:
    return _fim(tokenizer, before[-12_000:], after[:4_000])


PROMPTS: dict[str, Prompt] = {"ours": ours, "llama.vim": llama_vim, "minuet": minuet}


def _fim(tokenizer: PretrainedTokenizer, prefix: str, suffix: str) -> list[int]:
    first, second, third = map(tokenizer.special, MARKS)
    return [first, *tokenizer.encode(prefix), second, *tokenizer.encode(suffix), third]


if __name__ == "__main__":
    main()
