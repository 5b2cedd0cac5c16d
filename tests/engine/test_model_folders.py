"""A model is an installed one by its name, or a folder by its path."""

import shutil

import pytest

from mercury_engine import model_folders
from mercury_engine.api import EngineError, EngineInfo
from mercury_engine.model_folders import FAKE, resolve
from mercury_engine.record import ModelRecord, write_record


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A data folder with one model that was added, and one that is still being added."""
    monkeypatch.setattr(model_folders, "added_home", lambda: tmp_path / "models")
    for folder in ("qwen", ".other.adding"):
        (tmp_path / "models" / folder).mkdir(parents=True)
        write_record(ModelRecord(name="qwen", kind="fim", prompt="qwen"), tmp_path / "models" / folder)
    (tmp_path / "models/half").mkdir()
    return tmp_path / "models"


def test_fake_engine_needs_no_folder():
    assert resolve(FAKE) is None


def test_path_names_a_folder(tmp_path, monkeypatch):
    (tmp_path / "model").mkdir()
    monkeypatch.chdir(tmp_path)
    assert resolve(str(tmp_path / "model")) == tmp_path / "model"
    assert resolve("./model").samefile(tmp_path / "model")


def test_plain_name_is_no_folder_of_the_current_project(tmp_path, monkeypatch):
    """A project's settings may name an installed model, and must not bring along one of their own."""
    (tmp_path / "model").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(EngineError, match="'model' is neither"):
        resolve("model")


def test_added_model_has_a_name(home):
    assert resolve("qwen") == home / "qwen"
    assert list(model_folders.added()) == ["qwen"]


def test_unfinished_model_is_none(home):
    for name in ("half", ".other.adding", "other"):
        with pytest.raises(EngineError, match="neither"):
            resolve(name)


def test_auto_is_never_a_model_that_was_added(home, monkeypatch):
    monkeypatch.setattr(model_folders, "shipped", dict)
    assert list(model_folders.installed()) == ["qwen"]
    with pytest.raises(EngineError, match="no model is installed: `pip install"):
        resolve("auto")
    assert model_folders.answers("auto", EngineInfo("ar", "qwen", "cpu", 2048)), "nobody can say otherwise"


def test_added_model_cannot_take_the_name_of_a_shipped_one(home, monkeypatch):
    monkeypatch.setattr(model_folders, "shipped", lambda: {"qwen": home / "shipped"})
    assert resolve("qwen") == home / "shipped"


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder of installed packages. What was found in others is forgotten, before and after."""
    monkeypatch.syspath_prepend(tmp_path / "site")
    model_folders._packaged.cache_clear()
    yield tmp_path / "site"
    model_folders._packaged.cache_clear()


def put(site, package):
    """An installed package with a model, as pip leaves it."""
    (site / "large-1.0.dist-info").mkdir(parents=True)
    (site / "large-1.0.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: large\nVersion: 1.0\n")
    (site / "large-1.0.dist-info/entry_points.txt").write_text(f"[mercury_ls.models]\nlarge = {package}\n")
    (folder := site / package.replace(".", "/")).mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    return folder


def test_model_of_a_package_is_what_auto_means(site):
    folder = put(site, "large_models.large")
    assert model_folders.shipped()["large"] == folder == resolve("large") == resolve("auto")


@pytest.mark.parametrize("package", ["large_models.large", "missing.large"])
def test_package_without_its_model_brings_none(site, package):
    shutil.rmtree(put(site, "large_models.large"))
    (site / "large-1.0.dist-info/entry_points.txt").write_text(f"[mercury_ls.models]\nlarge = {package}\n")
    assert "large" not in model_folders.shipped()


def test_package_is_found_without_being_imported(site):
    (put(site, "large_model").parent / "large_model/__init__.py").write_text("raise AssertionError")
    assert "large_model" in model_folders.shipped()


@pytest.mark.parametrize(("model", "same"), [("qwen", True), ("quicksilver", False)])
def test_engine_with_added_model_answers_for_its_name(home, model, same):
    assert model_folders.answers("qwen", EngineInfo("ar", model, "cpu", 2048)) == same
