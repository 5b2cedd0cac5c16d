"""Where the editors for the tests come from: the machine's own mirror, whichever notation names it."""

import pytest

from tests.editors.tools import EDITORS, bring, found, mirror


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
def test_the_mirror_is_the_machines_own(tmp_path, name, text):
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert mirror(tmp_path) == "http://mirror.test/debian"


def test_a_machine_without_one_is_told_what_to_do(tmp_path):
    with pytest.raises(SystemExit, match="names no Debian mirror; add one"):
        mirror(tmp_path)


def test_an_editor_that_is_here_is_not_brought_again(tmp_path, monkeypatch):
    monkeypatch.setenv("MERCURY_LS_EDITORS", str(tmp_path))
    (name, *_) = EDITORS
    assert found(name) is None
    (tmp_path / name).mkdir()
    (tmp_path / name / "nvim").touch()
    assert bring(name) == found(name) == tmp_path / name / "nvim"
