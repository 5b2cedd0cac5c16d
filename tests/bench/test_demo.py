"""The demo: a function is completed by quicksilver, and a rename reaches two files."""

import subprocess
import sys

import pytest

from bench.demo import NEW_NAME, OLD_NAME, TYPED, Screen, accepts, diff
from mercury_engine import model_folders
from tests.e2e.environment import home, stop_engine

EDIT = {
    "range": {"start": {"line": 1, "character": 6}, "end": {"line": 1, "character": 9}},
    "oldText": "old",
    "newText": "newer",
}


def check(colours: bool, *expected: str) -> None:
    assert tuple(diff(Screen(colours), ["one", "print(old)"], [EDIT])) == expected


def test_diff_is_plain_where_there_are_no_colours():
    check(False, "   2 - print(old)", "   2 + print(newer)")


def test_diff_highlights_changed_word():
    check(
        True,
        "\x1b[90m   2 \x1b[0m\x1b[31m- print(\x1b[0m\x1b[1;7;31mold\x1b[0m\x1b[31m)\x1b[0m",
        "\x1b[90m   2 \x1b[0m\x1b[32m+ print(\x1b[0m\x1b[1;7;32mnewer\x1b[0m\x1b[32m)\x1b[0m",
    )


@pytest.mark.parametrize(
    ("ghost", "rest", "accepted"),
    [
        ("item in items", "item in items)", True),
        ("item in rows", "item in items)", False),
        ("ite", "item in items)", False),
        ("", "item", False),
    ],
)
def test_tab_is_pressed_for_what_was_going_to_be_typed(ghost, rest, accepted):
    assert accepts(ghost, rest) is accepted


@pytest.mark.slow
@pytest.mark.skipif("quicksilver" not in model_folders.shipped(), reason="quicksilver is not installed")
def test_quicksilver_does_well_at_chosen_moment(tmp_path):
    variables = home(tmp_path, MERCURY_ENGINE_MODEL="quicksilver", MERCURY_ENGINE_DEADLINE_MS="60000")
    command = [sys.executable, "-m", "bench.demo"]
    try:
        shown = subprocess.run(command, env=variables, check=True, capture_output=True, encoding="utf-8").stdout
    finally:
        stop_engine(variables)
    assert "\x1b" not in shown
    written, _, renamed = shown.partition("is renamed")
    assert all(line in written for line in TYPED.splitlines())
    assert renamed.count(f"[{OLD_NAME}]") == renamed.count(f"[{NEW_NAME}]") == 3
    assert "quicksilver: " in renamed
    if "completions by hand work" in renamed:
        pytest.skip("quicksilver is too slow here to follow typing")
    assert written.count("▏") >= 2
