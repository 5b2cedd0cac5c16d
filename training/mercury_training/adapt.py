"""Turns an autoregressive checkpoint into a canvas model: `python -m mercury_training.adapt SOURCE TARGET`.

SOURCE is a GGUF file, or a local folder in Hugging Face's layout: `config.json`, `.safetensors`, and `tokenizer.json`.
It must be of the class LlamaForCausalLM, Qwen2ForCausalLM or Qwen3ForCausalLM, with a byte-level BPE. Nothing else is
read, nothing is run. TARGET is a model folder: the same weights under our names, row i still predicting token i + 1,
so that it reads as before; it then has to learn to draft (`mercury_training.train --model TARGET`, docs/TRAINING.md).

The vocabulary becomes the layout's: its 64 special tokens first, then the tokens of SOURCE that are spelled in bytes:
all of them, or the most frequent ones of a corpus, or those of a tokenizer that was made in one of these ways.
Pre-tokens are the layout's, too (lines and single digits are separate), so that some texts are tokenised differently
than before, always into tokens that SOURCE knows.

    python -m mercury_training.adapt SOURCE TARGET --vocabulary 47413 --counted CORPUS
    python -m mercury_training.adapt SOURCE TARGET --vocabulary EARLIER/tokenizer.json
    python -m mercury_training.adapt --corpus CORPUS TARGET OUT     # the same corpus in the model's vocabulary
"""

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import torch
from torch import Tensor

from mercury_engine.model import gguf, provenance
from mercury_engine.model.architectures import DOWNLOAD, read_json
from mercury_engine.model.checkpoint import Checkpoint, read_checkpoint
from mercury_engine.model.config import TOKENIZER_FILE
from mercury_engine.model.network import Model
from mercury_engine.model.stored import check_finite
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_engine.tokens.vocabulary import SPECIALS
from mercury_training.corpus.shards import Corpus, CorpusFile, Split, token_type, write_split
from mercury_training.errors import TrainingError, reported
from mercury_training.models import save
from mercury_training.vocabulary import (
    SourceVocabulary,
    Vocabulary,
    as_in,
    keeping,
    most_frequent,
    read_source,
)

COMMAND = "mercury_training.adapt"
CONTEXT = 2048
FAMILIES = ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
MANIFEST = "manifest.json"
PRECISIONS = {"F32": torch.float32, "F16": torch.float16}
EMBEDDING, HEAD = "embedding.weight", "head.weight"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog=COMMAND, description=(__doc__ or "").split(":")[0])
    parser.add_argument("source", type=Path, metavar="SOURCE", help="the checkpoint; with --corpus, the adapted model")
    parser.add_argument("target", type=Path, metavar="TARGET", help="the folder to write")
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="write this corpus in the model's vocabulary")
    parser.add_argument("--context", type=int, default=CONTEXT, help=f"tokens that it will read (default: {CONTEXT})")
    parser.add_argument(
        "--vocabulary", metavar="N|FILE", help="keep N tokens, or those in a tokenizer.json (default: all)"
    )
    parser.add_argument("--counted", type=Path, metavar="DIR", help="the corpus whose N most frequent tokens are kept")
    options = parser.parse_args(arguments)
    with reported(COMMAND):
        if options.corpus:
            recode(options.corpus, options.source, options.target)
        else:
            model = adapt(options.source, options.target, options.context, options.vocabulary, options.counted)
            size = sum(weight.numel() for weight in model.parameters())
            print(f"{options.target}: {size / 1e6:.1f} M parameters, vocabulary {model.config.vocabulary}")


def adapt(
    source: Path, target: Path, context: int = CONTEXT, wanted: str | None = None, counted: Path | None = None
) -> Model:
    """Write the checkpoint `source` as the model folder `target`, in the precision of its embedding; quantised files
    become bfloat16."""
    checkpoint, theirs = _read(source, context)
    if checkpoint.architecture not in FAMILIES:
        raise TrainingError(f"{source}: is a {checkpoint.architecture}; choose a checkpoint of {', '.join(FAMILIES)}")
    vocabulary = _vocabulary(theirs, wanted, counted)
    tables = {
        name: _rows(_floats(source, checkpoint, name), vocabulary, f"{source}: {name}")
        for name in (EMBEDDING, HEAD)
        if name in checkpoint.weights
    }
    precision = PRECISIONS.get(checkpoint.weights[EMBEDDING].tensor.dtype, torch.bfloat16)
    weights = {name: table.to(precision) for name, table in tables.items()}
    for name in checkpoint.weights.keys() - {EMBEDDING, HEAD}:
        weights[name] = _floats(source, checkpoint, name).to(precision)
    size = len(vocabulary.origins)
    model = Model(msgspec.structs.replace(checkpoint.config, name=target.name, vocabulary=size))
    model.load_state_dict(weights, assign=True)
    save(model, target)
    (target / TOKENIZER_FILE).write_bytes(vocabulary.data)
    Tokenizer.load(target / TOKENIZER_FILE)
    chosen_by = {"corpus": counted / MANIFEST} if counted else {"vocabulary": Path(wanted)} if wanted else {}
    read = {"checkpoint": source} | chosen_by
    provenance.note(COMMAND, target, read, context=context, vocabulary=size, coverage=vocabulary.coverage)
    return model


def recode(corpus: Path, model: Path, out: Path) -> None:
    """Encode the corpus in the vocabulary of the model; edits are text and stay as they are."""
    before, after = Corpus.open(corpus), Tokenizer.load(model / TOKENIZER_FILE)
    out.mkdir(parents=True, exist_ok=True)
    for name in ("edits.jsonl.xz", "held_out_edits.jsonl.xz", MANIFEST):
        if (corpus / name).exists():
            shutil.copyfile(corpus / name, out / name)
    shutil.copyfile(model / TOKENIZER_FILE, out / TOKENIZER_FILE)
    for name in ("train", "held_out"):
        part = out / f"{name}.part"
        documents = _recoded(getattr(before, name), before.tokenizer, after, part)
        write_split(out, name, [(part, documents)], token_type(after.vocabulary))
        part.unlink()


def _read(source: Path, context: int) -> tuple[Checkpoint, SourceVocabulary]:
    if source.is_file():
        file = gguf.read_gguf(source)
        spec = msgspec.json.decode(gguf.tokenizer_of(file).to_str())
        return gguf.checkpoint_in(file, context), read_source(spec, source)
    path = source / TOKENIZER_FILE
    return read_checkpoint(source, context), read_source(read_json(path), path)


def _vocabulary(source: SourceVocabulary, wanted: str | None, counted: Path | None) -> Vocabulary:
    if (wanted or "").isdecimal() != (counted is not None):
        raise TrainingError("--vocabulary N and --counted: add the other one, or name a tokenizer file")
    if wanted is None:
        return keeping(source, source.symbols)
    return as_in(source, Path(wanted)) if counted is None else most_frequent(source, int(wanted), counted)


def _floats(source: Path, checkpoint: Checkpoint, name: str) -> Tensor:
    rows = checkpoint.weights[name].rows()
    check_finite(rows, f"{source}: {name}", DOWNLOAD)
    return torch.from_numpy(rows)


def _rows(theirs_VD: Tensor, vocabulary: Vocabulary, place: str) -> Tensor:
    """The rows of our tokens; those without an origin are the mean of the text tokens'."""
    origins_V = torch.from_numpy(vocabulary.origins)
    if (last := int(origins_V.max())) >= len(theirs_VD):
        raise TrainingError(f"{place} has {len(theirs_VD)} rows, and the tokenizer a token {last}; {DOWNLOAD}")
    ours_VD = theirs_VD[origins_V.clamp(min=0)]
    is_text_V = (origins_V >= 0) & (torch.arange(len(origins_V)) >= len(SPECIALS))
    ours_VD[origins_V < 0] = ours_VD[is_text_V].mean(0)
    return ours_VD


def _recoded(split: Split, before: Tokenizer, after: Tokenizer, part: Path) -> list[CorpusFile]:
    documents, start = [], 0
    with part.open("wb") as file:
        for number, document in enumerate(split.documents):
            tokens = np.array(after.encode(split.text(number, before)), token_type(after.vocabulary))
            file.write(tokens.tobytes())
            documents.append(msgspec.structs.replace(document, start=start, stop=start + len(tokens)))
            start += len(tokens)
    return documents


if __name__ == "__main__":
    main()
