"""What is loaded from the hub is whole and checked, or not there; and every refusal says what to do."""

import errno
import os
from pathlib import Path

import pytest

from bench.harness.stand_in_hub import SHA, StandIn, serving
from mercury_engine.api import EngineError
from mercury_ls.models import hub
from mercury_ls.models.hub import RepositoryFile, fetch, look, megabytes

WEIGHTS = bytes(range(256)) * 40
FILES = {
    "config.json": b"{}",
    "tokenizer.json": b'{"added_tokens": []}',
    "model.safetensors": WEIGHTS,
    "pytorch_model.bin": b"pickle",
    "modeling.py": b"code",
    "onnx/config.json": b"{}",
    "consolidated.safetensors": WEIGHTS,
}


@pytest.fixture
def stand_in(monkeypatch, tmp_path):
    constants = hub.library().constants
    with serving(StandIn(FILES)) as served:
        monkeypatch.setattr(constants, "ENDPOINT", served.address)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        yield served


def loaded(repository, folder: Path) -> bytes:
    (weights,) = repository.weights
    return fetch(repository, weights, folder, lambda done, about: None).read_bytes()


def check_refused(said, act):
    with pytest.raises(EngineError) as refused:
        act()
    for text in said:
        assert text in str(refused.value)


def test_repository_is_described_before_anything_is_loaded(stand_in):
    found = look("org/tiny")
    assert (found.id, found.revision, found.licence, found.parameters) == ("org/tiny", SHA, "apache-2.0", 1234)
    assert [file.name for file in found.small] == ["config.json", "tokenizer.json"]
    assert [(file.name, file.size) for file in found.weights] == [("model.safetensors", len(WEIGHTS))]
    assert stand_in.asked == [("/api/models/org/tiny", 0)]


def test_file_arrives_whole(stand_in, tmp_path):
    assert loaded(look("org/tiny"), tmp_path) == WEIGHTS
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]


def test_interrupted_download_is_resumed(stand_in, tmp_path):
    repository = look("org/tiny")
    stand_in.cut["model.safetensors"] = 1000
    check_refused(["was interrupted after", "run the command again"], lambda: loaded(repository, tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors.part"]
    arrived = (tmp_path / "model.safetensors.part").stat().st_size
    assert 0 < arrived <= 1000
    stand_in.is_gone = False
    assert loaded(repository, tmp_path) == WEIGHTS
    assert stand_in.asked[-1] == (f"/org/tiny/resolve/{SHA}/model.safetensors", arrived)


def test_broken_connection_is_taken_up_again_at_once(stand_in, tmp_path):
    stand_in.cut["model.safetensors"] = 1000
    stand_in.stays = True
    assert loaded(look("org/tiny"), tmp_path) == WEIGHTS


def test_token_stays_with_hub_when_weights_lie_elsewhere(stand_in, tmp_path, monkeypatch):
    monkeypatch.setattr(hub.library().utils, "build_hf_headers", lambda: {"authorization": "Bearer hf_secret"})
    (tmp_path / "model.safetensors.part").write_bytes(WEIGHTS[:100])
    with serving(StandIn(FILES)) as store:
        stand_in.elsewhere = store.address.replace("127.0.0.1", "localhost")
        assert loaded(look("org/tiny"), tmp_path) == WEIGHTS
    assert "Bearer hf_secret" in stand_in.tokens
    assert store.tokens == {""}
    assert [start for _, start in store.asked] == [100]


def test_wrong_checksum_leaves_nothing_behind(stand_in, tmp_path):
    stand_in.wrong["model.safetensors"] = WEIGHTS[:-1] + b"!"
    check_refused(["model.safetensors of org/tiny arrived damaged"], lambda: loaded(look("org/tiny"), tmp_path))
    assert not list(tmp_path.glob("model*"))


def test_small_files_are_checked_too(stand_in, tmp_path):
    stand_in.wrong["config.json"] = b"[]"
    repository = look("org/tiny")
    check_refused(["config.json"], lambda: fetch(repository, repository.small[0], tmp_path, lambda *_: None))


@pytest.mark.parametrize("size", [len(WEIGHTS) + 1, len(WEIGHTS) - 1])
def test_file_of_another_length_is_no_model(stand_in, tmp_path, size):
    repository = look("org/tiny")
    file = RepositoryFile("model.safetensors", size, "f" * 64)
    check_refused(["damaged"], lambda: fetch(repository, file, tmp_path, lambda *_: None))


def test_full_disk_says_how_much_is_missing(stand_in, tmp_path, monkeypatch):
    repository = look("org/tiny")

    class Full:
        def __init__(self, file):
            self.file = file

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

        def tell(self):
            return 0

        def write(self, data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    real = Path.open
    monkeypatch.setattr(
        Path, "open", lambda path, *a, **k: Full(real(path, *a, **k)) if path.suffix == ".part" else real(path, *a, **k)
    )
    check_refused(["the disk is full", "0 MB short", str(tmp_path)], lambda: loaded(repository, tmp_path))


def test_gated_terms_are_named_with_the_page_to_accept_them(stand_in, tmp_path):
    stand_in.gated, stand_in.admitted = True, False
    repository = look("org/tiny")
    assert repository.gated
    check_refused(
        ["accept its terms", "https://huggingface.co/org/tiny", "HF_TOKEN"], lambda: loaded(repository, tmp_path)
    )


def test_renamed_repository_is_found_under_its_new_name(stand_in):
    stand_in.renamed["old/name"] = "org/tiny"
    assert look("old/name").id == "org/tiny"


def test_unknown_revision_is_named(stand_in):
    assert look("org/tiny", "main").revision == SHA
    check_refused(["org/tiny has no revision v9", "--revision"], lambda: look("org/tiny", "v9"))


def test_unknown_repository_is_named(stand_in):
    check_refused(["the hub has no org/other", "HF_TOKEN"], lambda: look("org/other"))


@pytest.mark.parametrize("id", ["org/a--b", "org/a..b", "org/" + 100 * "a"])
def test_impossible_name_is_named(stand_in, id):
    check_refused([f"{id} cannot be asked for: "], lambda: look(id))


def test_without_a_network(stand_in, monkeypatch):
    stand_in.is_gone = True
    check_refused(["the hub cannot be reached"], lambda: look("org/tiny"))
    monkeypatch.setattr(hub.library().constants, "HF_HUB_OFFLINE", True)
    check_refused(["HF_HUB_OFFLINE is set", "org/tiny is not in the cache"], lambda: look("org/tiny"))


def test_offline_the_cache_of_the_hubs_library_serves(stand_in, tmp_path, monkeypatch):
    folder = tmp_path / "cache/models--org--tiny"
    (folder / "refs").mkdir(parents=True)
    (folder / "refs/main").write_text(SHA)
    (folder / "snapshots" / SHA).mkdir(parents=True)
    for name in ("config.json", "model.safetensors"):
        (folder / "snapshots" / SHA / name).write_bytes(FILES[name])
    monkeypatch.setattr(hub.library().constants, "HF_HUB_OFFLINE", True)
    found = look("org/tiny")
    assert (found.revision, found.folder) == (SHA, folder / "snapshots" / SHA)
    assert stand_in.asked == []


def test_cached_files_are_not_loaded_again(stand_in, tmp_path):
    repository = look("org/tiny")
    snapshot = tmp_path / "cache/models--org--tiny/snapshots" / SHA
    snapshot.mkdir(parents=True)
    (snapshot / "model.safetensors").write_bytes(WEIGHTS)
    (tmp_path / "here").mkdir()
    assert loaded(repository, tmp_path / "here") == WEIGHTS
    assert len(stand_in.asked) == 1


def test_names_that_lead_elsewhere_are_not_loaded():
    names = ("../a.safetensors", "a/config.json", ".a.safetensors", "a.bin", "a.json", "config.json", "a.safetensors")
    assert [name for name in names if hub.is_wanted(name)] == ["config.json", "a.safetensors"]


@pytest.mark.parametrize(("size", "text"), [(988e6, "988 MB"), (12.34e9, "12.3 GB"), (9.96e9, "10.0 GB")])
def test_sizes_are_readable(size, text):
    assert megabytes(size) == text
