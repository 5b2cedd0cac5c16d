"""The Zed extension: its manifest fits the server, its code compiles and behaves, against the API's signatures, and
what it starts suggests to a client like Zed."""

import asyncio
import json
import os
import shutil
import subprocess
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mercury_ls.cli.parser import parser
from mercury_ls.code.languages import LANGUAGES, find
from mercury_ls.settings.schema import find as setting
from tests.e2e.raw import Raw
from tests.editors.documented import EDITORS, blocks
from tests.editors.scenes import SHOP

HERE = Path(__file__).parent
EXTENSION = EDITORS / "zed"
MANIFEST = tomllib.loads((EXTENSION / "extension.toml").read_text(encoding="utf-8"))


def test_languages_are_registered_by_their_names_in_zed():
    server = MANIFEST["language_servers"]["mercury"]
    ids = server["language_ids"]
    assert sorted(server["languages"]) == sorted(ids)
    assert {find(id, "").id for id in ids.values()} == {language.id for language in LANGUAGES}


def test_extension_carries_the_licence_that_the_registry_asks_for():
    assert (EXTENSION / "LICENSE").read_bytes() == (EDITORS.parent / "LICENSE").read_bytes()


def test_documented_settings_name_real_ones():
    servers = [json.loads(block)["lsp"]["mercury"] for block in blocks("zed", "json")]
    for server in servers:
        trees = [server.get(name, {}) for name in ("settings", "initialization_options")]
        for group, values in [item for tree in trees for item in tree.items()]:
            assert all(setting(f"{group}.{name}") for name in values)


def test_documented_address_is_where_server_listens():
    predictions = json.loads(blocks("zed", "json")[1])["edit_predictions"]
    address = parser().parse_args(["serve", "--http"]).http
    assert predictions["open_ai_compatible_api"]["api_url"] == f"http://{address}/v1/completions"


MENU = {"completion": {"completionItem": {"snippetSupport": True, "insertReplaceSupport": True}}}
"""What Zed can, as far as it is asked for here: a menu, and neither ghost text nor next edits of language servers."""


@pytest.mark.editor
@pytest.mark.slow
def test_menu_entry_continues_typed_text(environment, tmp_path, copies):
    """With the documented settings, handed over as the extension does; how sure a model is, is its own affair."""
    own = json.loads(blocks("zed", "json")[0])["lsp"]["mercury"]
    assert own["binary"]["arguments"] == ["--stdio"]
    own["settings"]["suggest"]["minimum_probability"] = 0
    with ThreadPoolExecutor() as elsewhere:  # a browser of other tests may have this thread's event loop
        (entry,) = elsewhere.submit(asyncio.run, menu(environment, tmp_path, own["settings"])).result()
    assert entry["filterText"].startswith("it")
    if copies:
        assert entry["textEdit"]["newText"].endswith(SHOP.rest)


async def menu(environment: dict[str, str], folder: Path, settings: dict) -> list[dict]:
    async with Raw(environment, folder, initialize=False) as server:
        await server.request("initialize", {"rootUri": folder.as_uri(), "capabilities": {"textDocument": MENU}})
        server.send({"jsonrpc": "2.0", "method": "initialized", "params": {}})
        changed = {"settings": {"mercury": settings}}
        server.send({"jsonrpc": "2.0", "method": "workspace/didChangeConfiguration", "params": changed})
        uri = server.open("shop.py", SHOP.before)
        while (await server.request("mercury/status", {}))["state"] != "ready":
            pass
        line, character = SHOP.before.count("\n"), len(SHOP.before.rpartition("\n")[2])
        place = {"textDocument": {"uri": uri}, "position": {"line": line, "character": character}}
        return (await server.request("textDocument/completion", place))["items"]


@pytest.fixture
def cargo(tmp_path):
    """Runs it where it changes nothing here, and offline."""
    program = shutil.which("cargo")
    if program is None:
        pytest.skip("cargo is not here; rustup installs it")

    def runs(*arguments: str, folder: Path) -> None:
        variables = {**os.environ, "CARGO_TARGET_DIR": str(tmp_path / "target"), "RUSTFLAGS": "-D warnings"}
        command = [program, *arguments, "--offline", "--quiet"]
        ran = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stdout + ran.stderr

    return runs


@pytest.mark.editor
@pytest.mark.slow
def test_extension_compiles_against_the_signatures_of_the_api(cargo, tmp_path):
    extension = shutil.copytree(EXTENSION, tmp_path / "zed")
    cargo("check", "--config", f'patch.crates-io.zed_extension_api.path="{HERE / "api"}"', folder=extension)


@pytest.mark.editor
@pytest.mark.slow
def test_extension_behaves_as_its_own_tests_say(cargo, tmp_path):
    tree = tmp_path / "clone"
    shutil.copytree(EXTENSION, tree / "editors/zed")
    crates = shutil.copytree(HERE, tree / "tests/editors/zed", ignore=shutil.ignore_patterns("target"))
    cargo("test", folder=crates / "behaviour")
