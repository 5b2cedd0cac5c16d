"""A model is an installed one by its name, or a folder by its path."""

import pytest

from mercury_engine.api import EngineError
from mercury_ls.settings.models import FAKE, resolve


def test_the_fake_engine_needs_no_folder():
    assert resolve(FAKE) is None


def test_a_path_names_a_folder(tmp_path, monkeypatch):
    (tmp_path / "model").mkdir()
    monkeypatch.chdir(tmp_path)
    assert resolve(str(tmp_path / "model")) == tmp_path / "model"
    assert resolve("./model").samefile(tmp_path / "model")


def test_a_plain_name_is_no_folder_of_the_project_that_one_happens_to_be_in(tmp_path, monkeypatch):
    """A project's settings may name an installed model, and must not bring along one of their own."""
    (tmp_path / "model").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EngineError, match="'model' is neither"):
        resolve("model")
