"""Turns an autoregressive checkpoint into a canvas model: `python -m mercury_training.adapt SOURCE TARGET`.

SOURCE is a local folder as Hugging Face keeps them: `config.json` of LlamaForCausalLM, Qwen2ForCausalLM or
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
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from msgspec import Struct
from safetensors import SafetensorError, safe_open
from tokenizers import pre_tokenizers
from torch import Tensor

from mercury_engine.model.architectures import LLAMA, read_json
from mercury_engine.model.checkpoint import our_names, weight_files
from mercury_engine.model.config import CONFIG_FILE, TOKENIZER_FILE, ModelConfig
from mercury_engine.model.network import Model, save
from mercury_engine.tokens.tokenizer import Tokenizer, untrained
from mercury_engine.tokens.vocabulary import SPECIALS
from mercury_training.corpus.shards import Corpus, CorpusFile, Split, token_type, write_split
from mercury_training.errors import TrainingError, reported

__all__ = ["Vocabulary", "adapt", "config_of", "main", "recode", "their_name", "vocabulary_of"]

CONTEXT = 2048
FAMILIES = {
    "LlamaForCausalLM": {"qkv_bias": False, "qk_norm": False},
    "Qwen2ForCausalLM": {"qkv_bias": True, "qk_norm": False},
    "Qwen3ForCausalLM": {"qkv_bias": False, "qk_norm": True},
}

LIKE = {
    "<bos>": ("<|begin_of_text|>", "<s>", "<|endoftext|>"),
    "<eom>": ("<|endoftext|>", "<|end_of_text|>", "<|fim_pad|>", "</s>"),
    "<pre>": ("<|fim_prefix|>", "<fim_prefix>", "<PRE>"),
    "<suf>": ("<|fim_suffix|>", "<fim_suffix>", "<SUF>"),
    "<cur>": ("<|fim_middle|>", "<fim_middle>", "<MID>"),
    "<path>": ("<|file_sep|>", "<file_sep>"),
    "<snip>": ("<|repo_name|>", "<reponame>"),
}
"""Special tokens of others with the same meaning: ours start with their embeddings, the rest with the mean of all."""


class Vocabulary(Struct, frozen=True):
    """A tokenizer file in the layout's form. `kept` are the ids of the source's tokens that follow our special ones;
    `like` maps some of our special tokens to the source's token whose embedding they start with."""

    data: bytes
    kept: np.ndarray
    like: dict[int, int]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="mercury_training.adapt", description=__doc__.split(":")[0])
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
    vocabulary = vocabulary_of(source / TOKENIZER_FILE)
    size = len(SPECIALS) + len(vocabulary.kept)
    config = config_of(source / CONFIG_FILE, target.name, size, context)
    weights = _weights(source, config)
    for name in ("embedding.weight", "head.weight"):
        if name in weights:
            weights[name] = _rows(weights[name], vocabulary)
    model = Model(config)
    _check(weights, model, source)
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


def config_of(path: Path, name: str, vocabulary: int, context: int = CONTEXT) -> ModelConfig:
    """The configuration of a checkpoint, in our terms."""
    found = read_json(path)
    family = next((kind for kind in found.get("architectures") or [] if kind in FAMILIES), None)
    if family is None:
        raise TrainingError(
            f"{path}: architectures is {found.get('architectures')}; choose a checkpoint of {', '.join(FAMILIES)}"
        )
    _refuse_what_we_lack(path, found)
    heads, width = _size(path, found, "num_attention_heads"), _size(path, found, "hidden_size")
    rope = found.get("rope_parameters") or {}
    return ModelConfig(
        name=name,
        width=width,
        layers=_size(path, found, "num_hidden_layers"),
        heads=heads,
        kv_heads=found.get("num_key_value_heads") or heads,
        head_width=found.get("head_dim") or width // heads,
        feed_forward=_size(path, found, "intermediate_size"),
        vocabulary=vocabulary,
        context=min(context, found.get("max_position_embeddings") or context),
        rope_theta=float(found.get("rope_theta") or rope.get("rope_theta") or 10_000.0),
        norm_epsilon=found.get("rms_norm_eps") or 1e-6,
        tied=bool(found.get("tie_word_embeddings", False)),
        **FAMILIES[family],
    )


def _size(path: Path, found: Mapping[str, Any], name: str) -> int:
    value = found.get(name)
    if not isinstance(value, int) or value < 1:
        raise TrainingError(f"{path}: {name} is {value!r}, not a number from 1 on; download the checkpoint again")
    return value


def vocabulary_of(path: Path) -> Vocabulary:
    """The tokenizer of a checkpoint in the layout's form; the source's own special tokens are left out."""
    found = read_json(path)
    model = found.get("model") or {}
    alphabet = set(pre_tokenizers.ByteLevel.alphabet())
    symbols = model.get("vocab")
    if model.get("type") != "BPE" or not isinstance(symbols, dict) or model.get("byte_fallback"):
        raise TrainingError(f"{path}: model.type is {model.get('type')!r}, not a byte-level BPE; {OTHER_VOCABULARY}")
    if missing := alphabet - symbols.keys():
        raise TrainingError(f"{path}: {len(missing)} of 256 byte symbols are missing; {OTHER_VOCABULARY}")
    added = {token["content"]: token["id"] for token in found.get("added_tokens") or []}
    spelled = [symbol for symbol in symbols if symbol not in added and alphabet.issuperset(symbol)]
    ordered = sorted(spelled, key=symbols.__getitem__)
    ours = _json_of(untrained().to_str())
    ids = {symbol: number for number, symbol in enumerate([*SPECIALS, *ordered])}
    ours["model"] = model | {"vocab": ids, "merges": _merges(model, ids), "unk_token": None}
    ours["added_tokens"] = [{"id": number, "content": content} | SPECIAL for number, content in enumerate(SPECIALS)]
    known = added | symbols
    like = {ids[mine]: next((known[one] for one in theirs if one in known), None) for mine, theirs in LIKE.items()}
    return Vocabulary(
        msgspec.json.encode(ours),
        np.array([symbols[symbol] for symbol in ordered]),
        {mine: other for mine, other in like.items() if other is not None},
    )


OTHER_VOCABULARY = "mid-word cursors need a token for every byte: choose a checkpoint with such a vocabulary"
SPECIAL = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}


def _merges(model: Mapping[str, Any], ids: Mapping[str, int]) -> list[list[str]]:
    """The merges without those of tokens that are left out. Older files write a pair as one string."""
    pairs = (merge.split(" ") if isinstance(merge, str) else list(merge) for merge in model.get("merges") or [])
    return [pair for pair in pairs if all(part in ids for part in (*pair, "".join(pair)))]


def _refuse_what_we_lack(path: Path, found: Mapping[str, Any]) -> None:
    rope = found.get("rope_parameters") or found.get("rope_scaling") or {}
    kind = rope.get("rope_type") or rope.get("type") or "default"
    windowed = any(layer != "full_attention" for layer in found.get("layer_types") or [])
    wrong = {
        "rope_scaling": kind if kind != "default" else None,
        "partial_rotary_factor": found.get("partial_rotary_factor") or rope.get("partial_rotary_factor"),
        "use_sliding_window": found.get("use_sliding_window") or windowed or None,
        "attention_bias": found.get("attention_bias") or None,
        "mlp_bias": found.get("mlp_bias") or None,
        "hidden_act": found.get("hidden_act") if found.get("hidden_act", "silu") != "silu" else None,
        "quantization_config": found.get("quantization_config"),
    }
    for name, value in wrong.items():
        if value is not None and (name, value) != ("partial_rotary_factor", 1.0):
            raise TrainingError(f"{path}: {name} is {value!r}, which our model has not; choose a checkpoint without")


def _weights(source: Path, config: ModelConfig) -> dict[str, Tensor]:
    """The weights under our names, without the second copy of tied embeddings."""
    weights = {}
    for name, read in _stored(source).items():
        ours = our_names(name, LLAMA)
        if ours is None:
            raise TrainingError(f"{source}: {name} is no weight of this architecture; choose another checkpoint")
        weights |= {own: read() for own in ours if not (own == "head.weight" and config.tied)}
    return weights


def their_name(ours: str) -> str:
    """What transformers calls a weight of ours."""
    part, _, kind = ours.rpartition(".")
    if not part.startswith("layers."):
        return f"{next(theirs for theirs, own in LLAMA.whole.items() if own == part)}.{kind}"
    _, index, part = part.split(".", 2)
    return f"{LLAMA.layer}{index}.{next(theirs for theirs, own in LLAMA.parts.items() if own == (part,))}.{kind}"


def _stored(source: Path) -> dict[str, Callable[[], Tensor]]:
    """How to read each weight."""
    found: dict[str, Callable[[], Tensor]] = {}
    for path in weight_files(source):
        try:
            with safe_open(path, framework="pt") as file:
                found |= {key: _reader(path, key) for key in file.keys()}  # noqa: SIM118
        except (SafetensorError, OSError) as error:
            raise TrainingError(f"{path}: damaged ({error}); download the checkpoint again") from error
    return found


def _reader(path: Path, name: str) -> Callable[[], Tensor]:
    def read() -> Tensor:
        with safe_open(path, framework="pt") as file:
            return file.get_tensor(name)

    return read


def _rows(theirs_VD: Tensor, vocabulary: Vocabulary) -> Tensor:
    """Our special tokens, then the tokens that were kept."""
    kept_VD = theirs_VD[torch.from_numpy(vocabulary.kept)]
    specials_SD = kept_VD.float().mean(0).repeat(len(SPECIALS), 1).to(theirs_VD.dtype)
    for mine, other in vocabulary.like.items():
        specials_SD[mine] = theirs_VD[other]
    return torch.cat([specials_SD, kept_VD])


def _check(weights: Mapping[str, Tensor], model: Model, source: Path) -> None:
    expected = {name: tuple(weight.shape) for name, weight in model.state_dict().items()}
    odd = sorted(name for name in expected.keys() | weights.keys() if expected.get(name) != _shape(weights.get(name)))
    if odd:
        name = odd[0]
        raise TrainingError(
            f"{source}: {name} is {_shape(weights.get(name)) or 'missing'}, its config says "
            f"{expected.get(name) or 'there is none'}; download the checkpoint again"
        )


def _shape(weight: Tensor | None) -> tuple[int, ...] | None:
    return None if weight is None else tuple(weight.shape)


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
