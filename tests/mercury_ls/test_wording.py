"""What people read: paths as they write them, and one file or two files."""

import os

import pytest

from mercury_ls.wording import abbreviated, counted, readable

HOME = "/home/me"


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("file:///home/me/my%20project/src/a.py", "src/a.py"),
        ("/home/me/my project/src/a.py", "src/a.py"),
        ("file:///home/me/notes.md", "~/notes.md"),
        ("/etc/hosts", "/etc/hosts"),
        ("/home/meadow/a.py", "/home/meadow/a.py"),
        ("untitled:Untitled-1", "Untitled-1"),
        ("vscode-notebook-cell:/home/me/my%20project/a.ipynb#W0s", "a.ipynb#W0s"),
        ("a.py", "a.py"),
        ("C:\\a.py", "C:\\a.py"),
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="paths of another kind")
def test_paths_are_written_as_people_write_them(monkeypatch, place, expected):
    monkeypatch.setenv("HOME", HOME)
    assert readable(place, ["/home/me/my project"]) == expected


@pytest.mark.parametrize("home", ["/", "relative"])
@pytest.mark.skipif(os.name == "nt", reason="paths of another kind")
def test_a_home_that_is_none_is_not_written(monkeypatch, home):
    monkeypatch.setenv("HOME", home)
    assert readable("/etc/hosts") == "/etc/hosts"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("user file /home/me/.config/a.toml", "user file ~/.config/a.toml"),
        ("model in /home/me", "model in ~"),
        ("/home/me, for you alone", "~, for you alone"),
        ("/home/meadow and /mnt/home/me/a", "/home/meadow and /mnt/home/me/a"),
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="paths of another kind")
def test_the_home_folder_is_a_tilde_wherever_a_path_begins(monkeypatch, text, expected):
    monkeypatch.setenv("HOME", HOME)
    assert abbreviated(text) == expected


def test_one_is_not_many():
    assert counted(1, "file") == "1 file"
    assert counted(0, "file") == "0 files"
    assert counted(1200, "reply") == "1,200 replies"
