"""The VS Code extension's manifest agrees with the server's settings and with the extension's own sources."""

import json
import re

from mercury_ls.settings import load as config
from mercury_ls.settings.schema import Settings
from tests.editors.vscode.manifest import MANIFEST, ROOT, renewed, text_of

EXTENSION = MANIFEST.parent


def manifest() -> dict:
    return json.loads(MANIFEST.read_text(encoding="utf-8"))


def server_settings() -> dict[str, dict]:
    groups = manifest()["contributes"]["configuration"]
    properties = {name: value for group in groups for name, value in group["properties"].items()}
    return {name: value for name, value in properties.items() if name.startswith("mercury.")}


def test_its_settings_are_those_of_the_schema():
    assert MANIFEST.read_text(encoding="utf-8") == text_of(renewed(manifest()))


def test_settings_and_defaults_are_the_servers():
    options = {name: value["default"] for name, value in server_settings().items()}
    loaded = config.load(options=options)
    assert loaded.problems == ()
    assert loaded.settings == Settings()
    assert len(options) == len(config.effective(config.Loaded()))


def test_settings_that_folders_must_not_set_are_machine_scoped():
    scopes = {name: value["scope"] for name, value in server_settings().items()}
    for name in ("engine.address", "engine.model", "privacy.secretPatterns", "privacy.allowNetwork", "log.file"):
        assert scopes[f"mercury.{name}"] == "machine"
    restricted = manifest()["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"]
    own = {"mercury-ls.nextEdit.enabled"}
    assert set(restricted) == {name for name, scope in scopes.items() if scope != "machine"} | own


def test_commands_are_registered_and_keys_run_them():
    source = (EXTENSION / "src/extension.ts").read_text(encoding="utf-8")
    handlers = source[source.index("const handlers") : source.index("return Object.entries(handlers)")]
    registered = set(re.findall(r"^      (\w+): \(", handlers, re.MULTILINE))
    contributes = manifest()["contributes"]
    commands = {entry["command"].removeprefix("mercury-ls.") for entry in contributes["commands"]}
    assert registered == commands | {"nextEditByTab"}
    assert {key["command"].removeprefix("mercury-ls.") for key in contributes["keybindings"]} <= registered


def test_tab_is_left_alone_in_menus_snippets_and_where_it_indents():
    (tab,) = (key for key in manifest()["contributes"]["keybindings"] if key["key"] == "tab")
    for context in ("!suggestWidgetVisible", "!inSnippetMode", "!inlineSuggestionVisible", "!editorHasSelection"):
        assert context in tab["when"].split(" && ")
    assert "mercury-ls.nextEditByTab" in tab["when"]


def test_proposed_apis_are_not_requested():
    assert "enabledApiProposals" not in manifest()


def test_lock_file_names_no_registry():
    lock = (EXTENSION / "package-lock.json").read_text(encoding="utf-8")
    assert '"resolved"' not in lock
    assert lock.count('"integrity"') > 10


def test_readme_is_there_with_its_licence():
    assert (EXTENSION / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert manifest()["license"] == "Apache-2.0"
    assert (ROOT / "editors/vscode/media/icon.png").read_bytes().startswith(b"\x89PNG")
