"""The package with quicksilver's weights holds all that it promises, and no file too large to be hosted."""

import hashlib
import tomllib
from pathlib import Path

import pytest

from mercury_engine.model.export import CHECKSUMS_FILE
from mercury_engine.model_folders import PACKAGES
from mercury_engine.record import RECORD_FILE
from mercury_ls.serve import added

PACKAGE = Path(__file__).parents[2] / "models/quicksilver"
PROJECT = tomllib.loads((PACKAGE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FOLDER = PACKAGE / PROJECT["entry-points"][PACKAGES]["quicksilver"].replace(".", "/")
MIB = 1 << 20

with_weights = pytest.mark.skipif(not (FOLDER / CHECKSUMS_FILE).exists(), reason="the weights are not in this tree")


def test_model_has_its_own_name_and_nothing_to_import():
    assert FOLDER.name == "quicksilver"
    assert not list(PACKAGE.rglob("*.py"))


def test_licence_and_origin_come_along():
    assert set(PROJECT["license-files"]) <= {path.name for path in PACKAGE.iterdir()}
    assert "Qwen2.5-Coder-0.5B-Instruct" in (PACKAGE / "NOTICE").read_text(encoding="utf-8")
    assert (PACKAGE / "LICENSE").read_bytes() == (PACKAGE.parents[1] / "LICENSE").read_bytes()
    assert (PACKAGE / PROJECT["readme"]).parent == FOLDER


@with_weights
def test_files_are_those_that_were_sealed():
    sealed = dict(reversed(line.split("  ")) for line in (FOLDER / CHECKSUMS_FILE).read_text().splitlines())
    files = {path.name: path for path in FOLDER.iterdir()}
    assert files.keys() == {*sealed, CHECKSUMS_FILE, "MODEL.md"}
    assert RECORD_FILE not in files, "it would make of it a model that was added"
    assert {name: hashlib.sha256(files[name].read_bytes()).hexdigest() for name in sealed} == sealed


@with_weights
def test_files_are_small_enough_to_be_kept_and_sent():
    sizes = [path.stat().st_size for path in FOLDER.iterdir()]
    assert max(sizes) <= 48 * MIB
    assert sum(sizes) <= 205 * MIB


@with_weights
def test_its_parameters_are_counted_as_they_were_before_four_bits_packed_two_into_a_byte():
    parameters, precision = added.stored(FOLDER)
    assert (round(parameters / 1e6), precision) == (400, "int4")
