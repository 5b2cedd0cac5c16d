"""Turns an autoregressive checkpoint into a canvas model: `python -m mercury_training.adapt SOURCE TARGET`.

SOURCE is a local folder in Hugging Face's layout: `config.json` of LlamaForCausalLM, Qwen2ForCausalLM or
Qwen3ForCausalLM, `.safetensors`, and the `tokenizer.json` of a byte-level BPE. Nothing else is read, nothing is run.
TARGET is a model folder: the same weights under our names, row i still predicting token i + 1, so that it reads as
before; it then has to learn to draft (`mercury_training.train --model TARGET`, docs/TRAINING.md).

The vocabulary becomes the layout's: its 64 special tokens first, then every token of SOURCE that is spelled in bytes.
Pre-tokens are the layout's, too (lines and single digits are separate), so that some texts are tokenised differently
than before, always into tokens that SOURCE knows.

    python -m mercury_training.adapt --corpus CORPUS TARGET OUT     # the same corpus in the model's vocabulary
"""

import argparse
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from msgspec import Struct
from tokenizers import pre_tokenizers
from torch import Tensor

from mercury_engine.model.architectures import read_json
from mercury_engine.model.checkpoint import Weight, read_checkpoint
from mercury_engine.model.config import TOKENIZER_FILE
from mercury_engine.model.network import Model, save
from mercury_engine.tokens.tokenizer import Tokenizer, untrained
from mercury_engine.tokens.vocabulary import SPECIALS
from mercury_training.corpus.shards import Corpus, CorpusFile, Split, token_type, write_split
from mercury_training.errors import TrainingError, reported

CONTEXT = 2048
FAMILIES = ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
PRECISIONS = {"F16": torch.float16, "BF16": torch.bfloat16}

LIKE = {
    "<bos>": ("<|begin_of_text|>", "<s>", "<|endoftext|>"),
    "<eom>": ("<|endoftext|>", "<|end_of_text|>", "<|fim_pad|>", "</s>"),
    "<pre>": ("<|fim_prefix|>", "<fim_prefix>", "<PRE>"),
    "<suf>": ("<|fim_suffix|>", "<fim_suffix>", "<SUF>"),
    "<cur>": ("<|fim_middle|>", "<fim_middle>", "<MID>"),
    "<path>": ("<|file_sep|>", "<file_sep>"),
    "<snip>": ("<|repo_name|>", "<reponame>"),
}
"""Third-party special tokens with the same meaning: ours start with their embeddings, the rest with the mean of all."""


class Vocabulary(Struct, frozen=True):
    """A tokenizer file in the layout's form. `kept` are the ids of the source's tokens that follow our special ones;
    `like` maps some of our special tokens to the source's token whose embedding they start with."""

    data: bytes
    token_ids: np.ndarray
    like: dict[int, int]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="mercury_training.adapt", description=(__doc__ or "").split(":")[0])
    parser.add_argument("source", type=Path, metavar="SOURCE", help="the checkpoint; with --corpus, the adapted model")
    parser.add_argument("target", type=Path, metavar="TARGET", help="the folder to write")
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="write this corpus in the model's vocabulary")
    parser.add_argument("--context", type=int, default=CONTEXT, help=f"tokens that it will read (default: {CONTEXT})")
    options = parser.parse_args(arguments)
    with reported("mercury_training.adapt"):
        if options.corpus:
            recode(options.corpus, options.source, options.target)
        else:
            model = adapt(options.source, options.target, options.context)
            size = sum(weight.numel() for weight in model.parameters())
            print(f"{options.target}: {size / 1e6:.1f} M parameters, vocabulary {model.config.vocabulary}")


def adapt(source: Path, target: Path, context: int = CONTEXT) -> Model:
    """Write the checkpoint `source` as the model folder `target`, in its own precision."""
    checkpoint, vocabulary = read_checkpoint(source, context), vocabulary_of(source / TOKENIZER_FILE)
    if checkpoint.architecture not in FAMILIES:
        raise TrainingError(f"{source}: is a {checkpoint.architecture}; choose a checkpoint of {', '.join(FAMILIES)}")
    weights = {name: _tensor(weight) for name, weight in checkpoint.weights.items()}
    for name in {"embedding.weight", "head.weight"} & weights.keys():
        weights[name] = _rows(weights[name], vocabulary)
    size = len(weights["embedding.weight"])
    model = Model(msgspec.structs.replace(checkpoint.config, name=target.name, vocabulary=size))
    model.load_state_dict(weights, assign=True)
    save(model, target)
    (target / TOKENIZER_FILE).write_bytes(vocabulary.data)
    Tokenizer.load(target / TOKENIZER_FILE)
    return model


def recode(corpus: Path, model: Path, out: Path) -> None:
    """Encode the corpus in the vocabulary of the model; edits are text and stay as they are."""
    before, after = Corpus.open(corpus), Tokenizer.load(model / TOKENIZER_FILE)
    out.mkdir(parents=True, exist_ok=True)
    for name in ("edits.jsonl.xz", "held_out_edits.jsonl.xz", "manifest.json"):
        if (corpus / name).exists():
            shutil.copyfile(corpus / name, out / name)
    shutil.copyfile(model / TOKENIZER_FILE, out / TOKENIZER_FILE)
    for name in ("train", "held_out"):
        part = out / f"{name}.part"
        documents = _recoded(getattr(before, name), before.tokenizer, after, part)
        write_split(out, name, [(part, documents)], token_type(after.vocabulary))
        part.unlink()


def vocabulary_of(path: Path) -> Vocabulary:
    """The tokenizer of a checkpoint in the layout's form; the source's own special tokens are left out."""
    config = read_json(path)
    model = config.get("model") or {}
    alphabet = set(pre_tokenizers.ByteLevel.alphabet())
    symbols = model.get("vocab")
    if model.get("type") != "BPE" or not isinstance(symbols, dict) or model.get("byte_fallback"):
        raise TrainingError(f"{path}: model.type is {model.get('type')!r}, not a byte-level BPE; {OTHER_VOCABULARY}")
    if missing := alphabet - symbols.keys():
        raise TrainingError(f"{path}: {len(missing)} of 256 byte symbols are missing; {OTHER_VOCABULARY}")
    added = {token["content"]: token["id"] for token in config.get("added_tokens") or []}
    spelled = [symbol for symbol in symbols if symbol not in added and alphabet.issuperset(symbol)]
    ordered = sorted(spelled, key=symbols.__getitem__)
    ours = _json_of(untrained().to_str())
    ids = {symbol: number for number, symbol in enumerate([*SPECIALS, *ordered])}
    ours["model"] = model | {"vocab": ids, "merges": _merges(model, ids), "unk_token": None}
    ours["added_tokens"] = [{"id": number, "content": content} | SPECIAL for number, content in enumerate(SPECIALS)]
    tokens = added | symbols
    like = {
        ids[mine]: next((tokens[token] for token in theirs if token in tokens), None) for mine, theirs in LIKE.items()
    }
    return Vocabulary(
        msgspec.json.encode(ours),
        np.array([symbols[symbol] for symbol in ordered]),
        {mine: other for mine, other in like.items() if other is not None},
    )


OTHER_VOCABULARY = "mid-word cursors need a token for every byte: choose a checkpoint with such a vocabulary"
SPECIAL = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}


def _merges(model: Mapping[str, Any], ids: Mapping[str, int]) -> list[list[str]]:
    """The merges without those of omitted tokens. Older files write a pair as one string."""
    pairs = (merge.split(" ") if isinstance(merge, str) else list(merge) for merge in model.get("merges") or [])
    return [pair for pair in pairs if all(part in ids for part in (*pair, "".join(pair)))]


def _tensor(weight: Weight) -> Tensor:
    """A tensor in the precision that it is stored in."""
    return torch.from_numpy(weight.rows()).to(PRECISIONS.get(weight.tensor.dtype, torch.float32))


def _rows(theirs_VD: Tensor, vocabulary: Vocabulary) -> Tensor:
    """The embeddings of our special tokens, then of the kept tokens."""
    kept_VD = theirs_VD[torch.from_numpy(vocabulary.token_ids)]
    specials_SD = kept_VD.float().mean(0).repeat(len(SPECIALS), 1).to(theirs_VD.dtype)
    for mine, other in vocabulary.like.items():
        specials_SD[mine] = theirs_VD[other]
    return torch.cat([specials_SD, kept_VD])


def _recoded(split: Split, before: Tokenizer, after: Tokenizer, part: Path) -> list[CorpusFile]:
    documents, start = [], 0
    with part.open("wb") as file:
        for number, document in enumerate(split.documents):
            tokens = np.array(after.encode(split.text(number, before)), token_type(after.vocabulary))
            file.write(tokens.tobytes())
            documents.append(msgspec.structs.replace(document, start=start, stop=start + len(tokens)))
            start += len(tokens)
    return documents


def _json_of(data: bytes | str) -> dict[str, Any]:
    return msgspec.json.decode(data, type=dict[str, Any])


if __name__ == "__main__":
    main()
