"""The configurations that are documented but that no test can run are well formed, and name what there is."""

import json
import re
import tomllib

from mercury_ls.editor import NAMED
from mercury_ls.settings.schema import find
from tests.editors.documented import EDITORS, blocks


def test_editors_take_at_most_three_steps():
    for readme in EDITORS.glob("*/README.md"):
        text = readme.read_text(encoding="utf-8")
        section = re.search(r"^## From nothing to the first suggestion$(.*?)^## |\Z", text, re.DOTALL | re.MULTILINE)
        ways = re.split(r"^## ", section[1] or text, flags=re.MULTILINE)
        steps = [len(re.findall(r"^\d+\. ", way, re.MULTILINE)) for way in ways]
        assert 1 <= max(steps) <= 3, readme


def test_vims_settings_are_real_ones():
    (settings,) = blocks("vim", "json")
    assert all(find(name.removeprefix("mercury.")) for name in json.loads(settings))


def test_vims_runtimepath_is_an_extension_of_coc():
    (configuration,) = blocks("vim", "vim")
    assert f"set runtimepath+={NAMED}/vim\n" in configuration
    manifest = json.loads((EDITORS / "vim/package.json").read_text(encoding="utf-8"))
    assert "coc" in manifest["engines"]
    assert (EDITORS / "vim" / manifest["main"]).is_file()


def test_helixs_settings_are_real_ones():
    servers = [tomllib.loads(block)["language-server"]["mercury"] for block in blocks("helix", "toml")]
    assert [servers[0]["command"], *servers[0]["args"]] == ["mercury-ls", "--stdio"]
    groups = servers[1]["config"]
    assert all(find(f"{group}.{name}") for group, tree in groups.items() for name in tree)
