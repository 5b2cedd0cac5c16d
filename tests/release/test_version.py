"""One version stands in one file, and every other file follows from it."""

import json
import re
import subprocess
import tomllib

import pytest

from mercury_ls import __version__
from release.version import (
    ADDRESS,
    ADDRESSED,
    FOLLOWERS,
    INSTALLERS,
    PACKAGE,
    PUBLISHED,
    PUBLISHER,
    ROOT,
    addressed,
    renewed,
    requirement,
)

LOCK = "editors/vscode/package-lock.json"


@pytest.mark.parametrize(("name", "place"), FOLLOWERS.items(), ids=FOLLOWERS)
def test_files_all_state_the_version(name, place):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert text == renewed(text, place, __version__), "run `make fix`"
    assert renewed(text, place, "9.8.7").count("9.8.7") == (2 if name == LOCK else 1)


@pytest.mark.parametrize(("name", "place"), INSTALLERS.items(), ids=INSTALLERS)
def test_plugins_install_the_package_of_their_version(name, place):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert text == renewed(text, place, requirement(PACKAGE, __version__)), "run `make fix`"
    assert renewed(text, place, requirement("theirs", "9.8.7")).count('"theirs==9.8.7"') == 1


@pytest.mark.parametrize(("name", "place"), PUBLISHED.items(), ids=PUBLISHED)
def test_publisher_is_the_same_everywhere(name, place):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert text == renewed(text, place, PUBLISHER), "run `make fix`"


@pytest.mark.parametrize(("name", "place"), ADDRESSED.items(), ids=ADDRESSED)
def test_address_is_written_where_it_belongs_and_removed_again(name, place):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert addressed(text, *place, ADDRESS) == text, "run `make fix`"
    named = addressed(addressed(text, *place, "https://host/a/b"), *place, "https://host/c/d")
    assert (named.count("https://host/c/d"), named.count("https://host/a/b")) == (1, 0)
    assert addressed(named, *place, "") == addressed(text, *place, "")
    READ.get(name.rpartition(".")[2], str)(named)


READ = {"toml": tomllib.loads, "json": json.loads}
"""Fails for what is not well formed."""


def test_address_stands_nowhere_else():
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    ours = re.compile(re.escape(ADDRESS) if ADDRESS else r"git(?:hub|lab)\.com/[\w.-]+/mercury[-_.](?:ls|nvim)")
    files = [name for name in names if (ROOT / name).is_file() and not name.endswith(".safetensors")]
    texts = {name: (ROOT / name).read_bytes().decode(errors="ignore") for name in files}
    assert {name for name, text in texts.items() if ours.search(text)} <= {*ADDRESSED, "release/version.py"}


def test_without_a_name_on_pypi_nothing_is_installed_by_one():
    assert requirement("", "1.0.0") == ""


def test_file_without_place_for_address_is_reported():
    with pytest.raises(ValueError, match=r"correct release/version\.py"):
        renewed("nothing", r'^version = "(.*)"', "1.0.0")
