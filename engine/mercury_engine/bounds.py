"""Size limits of the files that describe a model: they are read whole, and may come from an attacker."""

from pathlib import Path

from mercury_engine.api import EngineError

MIB = 1 << 20
LARGEST = {
    "config.json": 4 * MIB,
    "generation_config.json": MIB,
    "chat_template.jinja": MIB,
    "model.safetensors.index.json": 16 * MIB,
    "tokenizer.json": 64 * MIB,
    "tokenizer_config.json": 8 * MIB,
    "added_tokens.json": 8 * MIB,
    "vocab.json": 32 * MIB,
    "merges.txt": 32 * MIB,
}
"""The limit on all of a model's files except its weights. The largest tokenizers in use have 33 MB."""
OTHERS = 64 * MIB


def small_bytes(path: Path) -> bytes:
    """The file's content. `EngineError` for a file larger than its kind may be, of which nothing is kept; a pipe,
    which would block its reader, is an `OSError`."""
    if path.exists() and not path.is_file():
        raise OSError("it is not a file")
    limit = LARGEST.get(path.name, OTHERS)
    with path.open("rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise EngineError(f"{path}: is larger than the limit of {limit:,} bytes; get the model from its publisher")
    return content
