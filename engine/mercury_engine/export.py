"""`python -m mercury_engine.export SOURCE TARGET` writes a model as it ships, or as other engines read it."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from mercury_engine.model.config import ModelError
from mercury_engine.model.export import COMMAND, export
from mercury_engine.model.published import write_checkpoint, write_gguf

WRITERS = {"hf": write_checkpoint, "gguf": write_gguf}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog=COMMAND, description="Write a model as it ships, or for other engines.")
    parser.add_argument("source", type=Path, help="a folder with float weights: the model/ of a training run")
    parser.add_argument("target", type=Path, help="the folder to write, for the engine to open")
    parser.add_argument("--bits", type=int, choices=(4, 8), default=8, help="of each weight in a matrix (default: 8)")
    parser.add_argument(
        "--format",
        choices=WRITERS,
        help="of other engines, for any model of ours in the bits that it has: "
        "`hf` (transformers, vLLM, SGLang; 16 bits) or `gguf` (llama.cpp)",
    )
    options = parser.parse_args(arguments)
    try:
        if options.format:
            path = WRITERS[options.format](options.source, options.target)
            print(f"{path}: {path.stat().st_size / 2**20:.1f} MiB")
            return
        exported = export(options.source, options.target, options.bits)
    except ModelError as error:
        raise SystemExit(f"{COMMAND}: {error}") from error
    moved = max(exported.errors.values(), default=0.0)
    size = f"{len(exported.files)} files, {exported.bytes / 2**20:.1f} MiB"
    print(f"{options.target}: {size}; the relative error of each matrix is at most {moved:.2%}")


if __name__ == "__main__":
    main()
