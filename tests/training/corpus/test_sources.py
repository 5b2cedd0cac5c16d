"""Sources are found and read in place, and reserved ones never."""

import zipfile
from pathlib import Path

import pytest

from mercury_training.corpus import sources
from mercury_training.corpus.sources import blobs, discover, files, is_reserved, reserved_names
from tests.repositories import committed

MIT = "Permission is hereby granted, free of charge, to any person obtaining a copy of this software. " * 4
GPL = "GNU General Public License " * 20
RESERVED = reserved_names("# never\nLark-Parser/Lark\nexercism/python\npython-trio/trio\n")


def mirror(root, name: str, contents: dict[str, str]):
    folder = root / name / "repo"
    committed(folder, contents)
    return folder


def wheel(root, name: str, metadata: str, contents: dict[str, str]):
    with zipfile.ZipFile(root / f"{name}-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{name}-1.0.dist-info/METADATA", metadata)
        for path, text in contents.items():
            archive.writestr(path, text)


def test_mirror_is_read_at_its_head_with_licence_of_nearest_folder(tmp_path):
    contents = {
        "LICENSE": MIT,
        "a.py": "a = 1\n",
        "b/c.rs": "fn c() {}\n",
        "x/COPYING": GPL,
        "x/y.go": "z",
        "p.png": "-",
    }
    mirror(tmp_path, "some+where", contents)
    (source,) = discover([tmp_path], [], [], RESERVED)
    found = {file.path: (file.language, file.licence, file.data) for file in files(source)}
    assert (source.name, source.kind, len(source.revision)) == ("some/where", "git", 40)
    assert found == {
        "a.py": ("python", "MIT", b"a = 1\n"),
        "b/c.rs": ("rust", "MIT", b"fn c() {}\n"),
        "x/y.go": ("go", None, b"z"),
    }


def test_stated_licence_stands_for_root(tmp_path):
    mirror(tmp_path, "some+where", {"a.py": "a = 1\n"})
    (source,) = discover([tmp_path], [], [], RESERVED)
    assert [file.licence for file in files(source)] == [None]
    assert [file.licence for file in files(source, "Apache-2.0")] == ["Apache-2.0"]


def test_absent_blob_is_none_and_reading_goes_on(tmp_path):
    folder = mirror(tmp_path, "some+where", {"a.py": "a = 1\n"})
    with blobs(str(folder)) as read:
        assert read("0" * 40) is None
        assert read("HEAD:a.py") == b"a = 1\n"


def test_wheel_is_read_packed_with_licence_it_states(tmp_path):
    inside = {"good/a.py": "a = 1\n", "good/sub/LICENSE": GPL, "good/sub/b.py": "b = 1\n", "good/c.so": "-"}
    wheel(tmp_path, "good", "Name: good\nLicense-Expression: MIT\n", inside)
    wheel(tmp_path, "closed", "Name: closed\nLicense: Proprietary\n", {"closed/a.py": "a = 1\n"})
    found = {
        source.name: {file.path: file.licence for file in files(source)}
        for source in discover([], [], [tmp_path], RESERVED)
    }
    assert found == {
        "pypi/closed": {"closed/a.py": None},
        "pypi/good": {"good/a.py": "MIT", "good/sub/b.py": None},
    }


def test_installed_package_is_read_through_its_metadata(tmp_path):
    info = tmp_path / "tool-2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tool\nVersion: 2.0\nLicense: BSD\n")
    (info / "RECORD").write_text("tool.py,,\ntool-2.0.dist-info/METADATA,,\n../../bin/tool.py,,\n")
    (tmp_path / "tool.py").write_text("a = 1\n")
    (source,) = discover([], [str(tmp_path)], [], RESERVED)
    assert (source.name, source.revision) == ("pypi/tool", "2.0")
    assert [(file.path, file.licence) for file in files(source)] == [("tool.py", "BSD-3-Clause")]


def test_reserved_repositories_and_packages_are_no_sources(tmp_path):
    for name in ("lark-parser+lark", "other+trio"):
        mirror(tmp_path, name, {"a.py": "a = 1\n"})
    wheel(tmp_path, "Lark", "Name: lark\nLicense: MIT\n", {})
    wheel(tmp_path, "certifi", "Name: certifi\nLicense: MIT\n", {})
    assert discover([tmp_path], [], [tmp_path], RESERVED) == []


@pytest.mark.parametrize(
    ("path", "expected"),
    [("src/lark/tree.py", True), ("lib/Trio.py", True), ("src/python/a.py", False), ("src/larkspur.py", False)],
)
def test_copies_of_reserved_repositories_are_known_by_their_folder(path, expected):
    assert is_reserved(path, RESERVED) == expected


def test_git_answers_for_the_repository_it_is_asked_about(tmp_path, monkeypatch):
    """Also where git itself runs us, as a hook does, and says which repository it means."""
    sources.git(str(tmp_path), "init", "--quiet")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "another"))
    assert Path(sources.git(str(tmp_path), "rev-parse", "--show-toplevel").decode().strip()).samefile(tmp_path)
