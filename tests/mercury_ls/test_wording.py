"""What people read: paths as they write them, and one file or two files."""

import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercury_engine.redaction import ForeignText
from mercury_ls.wording import abbreviated, counted, harmless, one_line, quoted, readable

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
        ("file:///home/me/my%20project/a%1B%5B2J%0Ab%E2%80%AE.py", "a\\x1b[2J\\nb\\u202e.py"),
        ("C:\\a.py", "C:\\a.py"),
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="paths of another kind")
def test_paths_are_written_as_people_write_them(monkeypatch, place, expected):
    monkeypatch.setenv("HOME", HOME)
    assert readable(place, ["/home/me/my project"]) == expected


@pytest.mark.parametrize("home", ["/", "relative"])
@pytest.mark.skipif(os.name == "nt", reason="paths of another kind")
def test_invalid_home_is_not_written(monkeypatch, home):
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
def test_home_folder_is_a_tilde_wherever_path_begins(monkeypatch, text, expected):
    monkeypatch.setenv("HOME", HOME)
    assert abbreviated(text) == expected


def test_singular_is_not_plural():
    assert counted(1, "file") == "1 file"
    assert counted(0, "file") == "0 files"
    assert counted(1200, "reply") == "1,200 replies"


@given(st.text(st.characters(), max_size=30))
def test_foreign_text_does_nothing_and_shows_what_it_is(text):
    shown = one_line(text)
    assert len(shown.splitlines()) <= 1
    assert not re.search("[\0-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", shown)
    assert one_line(shown) == shown
    assert harmless(text).replace("\n", "\\n").replace("\t", "\\t").replace("](", "]\\(") == shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[2J", "\\x1b[2J"),
        ("\x9b2J", "\\x9b2J"),
        ("a\u202eb", "a\\u202eb"),
        ("a\U000e0041", "a\\U000e0041"),
        ("\ud800", "\\ud800"),
        ("a\n  licence mit", "a\\n  licence mit"),
        ("[a](command:b)[c](d)", "[a]\\(command:b)[c]\\(d)"),
        ("naïve – 中文 👩\u200d💻", "naïve – 中文 👩\u200d💻"),
    ],
)
def test_deceptive_characters_are_spelled_out(text, expected):
    assert one_line(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("*.log", "`*.log`"),
        ("*.log` is no rule; run `x", "`*.log' is no rul…`"),
        ("password = 'hunter22'", "`password = '…`"),
        ("a\n  b", "`a b`"),
    ],
)
def test_text_of_others_stays_within_its_quotes(text, expected):
    assert quoted(ForeignText(text), 16) == expected
