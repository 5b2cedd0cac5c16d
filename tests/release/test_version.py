"""One version stands in one file, and every other file follows from it."""

import pytest

from mercury_ls import __version__
from release.version import FOLLOWERS, INSTALLERS, PACKAGE, ROOT, renewed, requirement

LOCK = "editors/vscode/package-lock.json"


@pytest.mark.parametrize(("name", "place"), FOLLOWERS.items(), ids=FOLLOWERS)
def test_every_file_tells_the_version(name, place):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert text == renewed(text, place, __version__), "run `make fix`"
    assert renewed(text, place, "9.8.7").count("9.8.7") == (2 if name == LOCK else 1)


@pytest.mark.parametrize(("name", "place"), INSTALLERS.items(), ids=INSTALLERS)
def test_plugins_install_the_package_of_their_version(name, place):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert text == renewed(text, place, requirement(PACKAGE, __version__)), "run `make fix`"
    assert renewed(text, place, requirement("theirs", "9.8.7")).count('"theirs==9.8.7"') == 1


def test_without_a_name_on_pypi_nothing_is_installed_by_one():
    assert requirement("", "1.0.0") == ""


def test_a_file_without_a_place_for_it_is_told():
    with pytest.raises(ValueError, match=r"correct release/version\.py"):
        renewed("nothing", r'^version = "(.*)"', "1.0.0")
