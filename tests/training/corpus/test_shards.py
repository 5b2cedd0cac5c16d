"""What is written is what is read: documents with their boundaries, repositories together, edit rows as they were."""

import numpy as np
import pytest

from mercury_engine.api import Edit
from mercury_training.corpus.shards import (
    Corpus,
    CorpusFile,
    EditRow,
    Replacement,
    Split,
    read_edits,
    token_type,
    write_edits,
    write_split,
)
from mercury_training.errors import TrainingError
from tests.training.small import write_corpus


def part(path, tokens: list[int], *documents: CorpusFile):
    np.array(tokens, np.uint16).tofile(path)
    return path, documents


@pytest.fixture
def split(tmp_path) -> Split:
    first = CorpusFile("a/b", "x.py", "python", "MIT", 0, 2), CorpusFile("a/b", "y.py", "python", "MIT", 2, 3)
    empty = CorpusFile("c/d", "empty.py", "python", "ISC", 0, 0)
    last = CorpusFile("e/f", "z.rs", "rust", "MIT", 0, 2)
    parts = [
        part(tmp_path / "1", [1, 2, 3], *first),
        part(tmp_path / "2", [], empty),
        part(tmp_path / "3", [65535, 4], last),
    ]
    assert write_split(tmp_path, "train", parts) == 5
    return Split.open(tmp_path, "train")


def test_documents_keep_their_boundaries_across_parts(split):
    assert [split.tokens_of(number).tolist() for number in range(len(split))] == [[1, 2], [3], [], [65535, 4]]
    assert isinstance(split.tokens, np.memmap)


def test_documents_of_a_repository_are_neighbours(split):
    assert split.repositories == {"a/b": range(2), "c/d": range(2, 3), "e/f": range(3, 4)}


def test_index_of_other_tokens_is_refused(split, tmp_path):
    with (tmp_path / "train.u16").open("ab") as tokens:
        tokens.write(b"\0\0")
    with pytest.raises(TrainingError, match=r"train\.u16: 6 tokens"):
        Split.open(tmp_path, "train")


def test_split_may_be_rewritten_in_another_width_while_being_read(split, tmp_path):
    (tmp_path / "4").write_bytes(np.array([70_000], np.uint32).tobytes())
    documents = [CorpusFile("a/b", "x.py", "python", "MIT", 0, 1)]
    write_split(tmp_path, "train", [(tmp_path / "4", documents)], token_type(70_001))
    assert Split.open(tmp_path, "train").tokens.tolist() == [70_000]
    write_split(tmp_path, "train", [part(tmp_path / "5", [9], *documents)])
    assert Split.open(tmp_path, "train").tokens.tolist() == [9]
    assert split.tokens.tolist() == [1, 2, 3, 65535, 4]


def test_empty_split_opens(tmp_path):
    assert write_split(tmp_path, "held_out", []) == 0
    assert len(Split.open(tmp_path, "held_out")) == 0


def test_edit_rows_come_back_as_they_were(tmp_path):
    row = EditRow(
        *("a/b", "0" * 40, "MIT", "x.py", "python", "repeat"),
        window="ä = 1\n",
        first_line=7,
        cursor=-1,
        edits=(Edit("x.py", 3, "", "b\n"),),
        expected=(Replacement(0, 1, "ü = 1\n"),),
    )
    assert write_edits(tmp_path / "edits.jsonl.xz", [row, row]) == 2
    assert list(read_edits(tmp_path / "edits.jsonl.xz")) == [row, row]


def damaged(folder, name):
    """A small corpus of which one file ends early."""
    write_corpus(folder)
    (folder / name).write_bytes((folder / name).read_bytes()[:40])
    return folder


@pytest.mark.parametrize("name", ["train.index", "train.u16", "edits.jsonl.xz"])
def test_damaged_corpus_says_which_file_and_what_to_do(tmp_path, name):
    with pytest.raises(TrainingError, match=rf"{name}: .*build (it|the corpus) again"):
        list(Corpus.open(damaged(tmp_path, name)).edits())


def test_folder_that_is_no_corpus_is_named(tmp_path):
    with pytest.raises(TrainingError, match=r"train\.index: cannot be read .* name a corpus folder"):
        Corpus.open(tmp_path)


def test_tokens_of_another_vocabulary_are_refused(tmp_path):
    """They would decode to some text, and be trained on."""
    write_corpus(tmp_path)
    tokens = np.fromfile(tmp_path / "train.u16", np.uint16)
    (tokens + 1).tofile(tmp_path / "train.u16")
    with pytest.raises(TrainingError, match=r"tokenizer\.json: not the vocabulary"):
        Corpus.open(tmp_path)
