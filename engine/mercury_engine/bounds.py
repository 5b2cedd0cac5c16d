"""How large the files that describe a model may be: they are read whole, and whoever made them may be hostile."""

from pathlib import Path

from mercury_engine.api import EngineError

__all__ = ["LARGEST", "small_bytes"]

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
"""All that is read of a model beside its weights. The largest tokenizers in use have 33 MB."""
OTHERS = 64 * MIB


def small_bytes(path: Path) -> bytes:
    """The file's content. `EngineError` for a file that is larger than its kind may be, of which nothing is kept; a
    pipe, which would keep whoever reads it waiting, is an `OSError`."""
    if path.exists() and not path.is_file():
        raise OSError("it is no file")
    limit = LARGEST.get(path.name, OTHERS)
    with path.open("rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise EngineError(
            f"{path}: has more than the {limit:,} bytes that are read of such a file; get the model from its makers"
        )
    return content
