"""Where the editors for the tests come from: the machine's own mirror, whichever notation names it."""

import pytest

from tests.editors import tools
from tests.editors.tools import EDITORS, Tool, UnreachableError, bring, found, mirror


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sources.list", "deb http://mirror.test/debian bookworm main\n"),
        ("sources.list", "deb [signed-by=/k.gpg arch=amd64] http://mirror.test/debian/ bookworm main\n"),
        ("sources.list.d/debian.sources", "Types: deb\nURIs: http://mirror.test/debian\nSuites: bookworm\n"),
        ("sources.list.d/a.sources", "URIs: http://other.test/tools\n\nURIs: http://mirror.test/debian\n"),
        ("sources.list", "deb http://mirror.test/debian-security s main\ndeb http://mirror.test/debian b main\n"),
    ],
)
def test_mirror_is_that_of_the_machine(tmp_path, name, text):
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert mirror(tmp_path) == "http://mirror.test/debian"


def test_machine_without_mirror_is_told_what_to_do(tmp_path):
    with pytest.raises(UnreachableError, match="names no Debian mirror; add one"):
        mirror(tmp_path)


def test_present_editor_is_not_fetched_again(tmp_path, monkeypatch):
    monkeypatch.setenv("MERCURY_LS_EDITORS", str(tmp_path))
    (name, *_) = EDITORS
    assert found(name) is None
    (tmp_path / name).mkdir()
    (tmp_path / name / "nvim").touch()
    assert bring(name) == found(name) == tmp_path / name / "nvim"


def test_unavailable_editor_is_named_and_the_others_are_fetched(tmp_path, monkeypatch, capsys):
    def unreachable(folder):
        raise UnreachableError("the mirror is away")

    def made(folder):
        (folder / "ed").write_text("#!/bin/sh\necho ed 1.0\n", encoding="utf-8")
        (folder / "ed").chmod(0o755)

    monkeypatch.setenv("MERCURY_LS_EDITORS", str(tmp_path))
    monkeypatch.setattr(tools, "EDITORS", {"far": Tool("far 1", "far", unreachable), "ed": Tool("ed 1", "ed", made)})
    monkeypatch.setattr("sys.argv", ["tools"])
    tools.main()
    told = capsys.readouterr()
    assert told.err == "far is not here, and its tests are skipped: the mirror is away\n"
    assert told.out == f"{tmp_path / 'ed' / 'ed'}\n"
