"""What is measured of a model, with a tiny one."""

from msgspec.structs import replace

from bench.pace import PASSES, measured
from mercury_engine.engine import open_runtime
from mercury_engine.model.config import TINY
from mercury_training.models import create, save


def test_reading_and_passes_are_measured(tmp_path):
    save(create(replace(TINY, context=1024), 0), tmp_path)
    figures = dict(measured(open_runtime(tmp_path)))
    assert set(figures) == {"read, tokens/s", "read, share of float32", *(f"{rows} rows, ms" for rows in PASSES)}
    assert all(value > 0 for value in figures.values())
