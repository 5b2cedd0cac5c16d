"""A corpus of a few documents in the golden vocabulary, for tests."""

from pathlib import Path

import numpy as np
from msgspec.structs import replace

from mercury_engine.api import Edit
from mercury_engine.model.config import TINY
from mercury_engine.model.export import export
from mercury_engine.tokens.tokenizer import Tokenizer
from mercury_training import models
from mercury_training.corpus.shards import CorpusFile, EditRow, Replacement, Split, write_edits, write_split
from mercury_training.rows.fim_rows import FimRow
from mercury_training.rows.packing import EditTable, PackedRows

GOLDEN = Path(__file__).parents[1] / "engine/golden/tokenizer.json"
TOKENIZER = Tokenizer.load(GOLDEN)


def source(seed, functions=24):
    """A Python file with some structure, different for every seed."""
    draw = np.random.default_rng(seed)
    names = ["area", "count", "total", "width", "scale", "shape", "value", "index"]
    lines = ["import math", ""]
    for _ in range(functions):
        name, first, second = (names[int(i)] for i in draw.integers(len(names), size=3))
        lines += [f"def {name}({first}, {second}):", f"    if {first} > {int(draw.integers(99))}:"]
        lines += [f"        return {second} * {first}", f"    total = math.sqrt({second})", "    return total", ""]
    return "\n".join(lines)


def fim_row(**changed):
    known = {"id": "1", "repo": "team/shapes", "commit": "abc", "licence": "MIT", "path": "shapes.py"}
    known |= {"language": "python", "kind": "single_line"}
    return FimRow(**known | {"prefix": "def double(x):\n    return ", "suffix": "\n", "middle": "2 * x"} | changed)


def edit_row(number, **changed):
    expected = (Replacement(3, 4, "    if value < 7:\n"), Replacement(5, 5, "    count = 1\n"))
    known = {"repository": "team/shapes", "commit": "abc", "licence": "MIT", "path": "shapes.py", "language": "python"}
    known |= {"kind": "other", "window": source(number, 3), "first_line": 0, "cursor": 2}
    known["edits"] = Edit("shapes.py", 1, "x\n", "y\n"), Edit("other.py", 4, "", "import x\n")
    known |= {"expected": expected, "next": number % 2} if number % 3 else {"expected": ()}
    return EditRow(**known | changed)


def write_corpus(folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_bytes(GOLDEN.read_bytes())
    for split, seeds in (("train", range(6)), ("held_out", range(6, 8))):
        documents, parts, start = [], [], 0
        for seed in seeds:
            tokens = np.array(TOKENIZER.encode(source(seed)), np.uint16)
            documents.append(CorpusFile("team/shapes", f"shapes{seed}.py", "python", "MIT", start, start + len(tokens)))
            parts.append(tokens)
            start += len(tokens)
        path = folder / f"{split}.part"
        path.write_bytes(np.concatenate(parts).tobytes())
        write_split(folder, split, [(path, documents)])
    write_edits(folder / "edits.jsonl.xz", map(edit_row, range(6)))
    write_edits(folder / "held_out_edits.jsonl.xz", map(edit_row, range(6, 8)))
    return folder


def exported(folder):
    """A random model of this vocabulary, as an engine opens it."""
    models.save(models.create(replace(TINY, vocabulary=TOKENIZER.vocabulary), 0), folder / "float")
    (folder / "float/tokenizer.json").write_bytes(GOLDEN.read_bytes())
    export(folder / "float", folder / "int8")
    return folder / "int8"


def open_rows(folder, seed=0):
    edits = EditTable.open(folder / "edits.jsonl.xz", folder / "scratch")
    return PackedRows(Split.open(folder, "train"), edits, TOKENIZER, seed)
