"""What is said of an extra that is missing works for how mercury-ls was installed."""

import pytest

from mercury_engine import installation
from mercury_engine.installation import with_extra

GIT = '{"url": "https://git.example/m.git", "vcs_info": {"vcs": "git", "commit_id": "1f"%s}}'


@pytest.mark.parametrize(
    ("direct_url", "said"),
    [
        (None, "run `pip install '.[chat]'` in a clone of mercury-ls"),
        ('{"url": "file:///a/clone", "dir_info": {}}', "run `pip install '.[chat]'` in a clone of mercury-ls"),
        (
            '{"url": "file:///a/clone", "dir_info": {"editable": true}}',
            "run `pip install -e '.[chat]'` in a clone of mercury-ls",
        ),
        (
            '{"url": "file:///home/ada/m-1-py3-none-any.whl", "archive_info": {}}',
            "run `pip install './m-1-py3-none-any.whl[chat]'` beside the wheel",
        ),
        (GIT % "", "run `pip install 'mercury-ls[chat] @ git+https://git.example/m.git'`"),
        (
            GIT % ', "requested_revision": "v1"',
            "run `pip install 'mercury-ls[chat] @ git+https://git.example/m.git@v1'`",
        ),
        ("{}", "run `pip install '.[chat]'` in a clone of mercury-ls"),
    ],
)
def test_extra_is_added_from_where_the_package_came(monkeypatch, direct_url, said):
    monkeypatch.setattr(installation, "_direct_url", lambda: direct_url)
    monkeypatch.setattr(installation, "_installer", lambda: "pip install")
    assert with_extra("chat") == said


def test_extra_is_added_by_what_installed_the_package(monkeypatch, tmp_path):
    monkeypatch.setattr(installation, "_direct_url", lambda: None)
    monkeypatch.setattr(installation.sys, "prefix", str(tmp_path))
    monkeypatch.setattr(installation, "find_spec", lambda name: None)
    assert with_extra("serve").startswith("run `uv pip install '.[serve]'`")
    (tmp_path / "uv-receipt.toml").touch()
    assert with_extra("serve").startswith("run `uv tool install '.[serve]'`")
