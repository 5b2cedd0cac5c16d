"""A release's notes are its section of the changelog."""

import pytest

from mercury_ls import __version__
from release.notes import notes
from release.version import ROOT

LOG = "# Changelog\n\n## Unreleased\n\n## 0.2.0 (2027-01-01)\n\n### Changed\n\n* b\n\n## 0.1.0\n\nThe first.\n\n* a\n"


@pytest.mark.parametrize(
    ("version", "text"), [("0.2.0", "### Changed\n\n* b\n"), ("0.1.0", "The first.\n\n* a\n")], ids=str
)
def test_notes_end_where_the_next_section_begins(version, text):
    assert notes(LOG, version) == text


@pytest.mark.parametrize("version", ["0.3.0", "0.1", "Unreleased"])
def test_version_without_notes_is_refused(version):
    with pytest.raises(ValueError, match="says nothing"):
        notes(LOG, version)


def test_notes_of_the_current_version_fit_one_screen():
    assert len(notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), __version__).splitlines()) <= 40
