"""Beside a Copilot that somebody has signed in to: nothing is suggested twice, and each hears of its own alone."""

from contextlib import closing
from pathlib import Path

import pytest

from mercury_engine.model_folders import FAKE
from tests.e2e.environment import COMMAND
from tests.editors.scenes import SHOP
from tests.editors.tools import found
from tests.editors.vscode.codeserver import CodeServer

pytestmark = [pytest.mark.editor, pytest.mark.slow, pytest.mark.parametrize("model", [FAKE], indirect=True)]

COPILOT = Path(__file__).with_name("copilot")
THEIRS = " # by Copilot"
MANAGED = 'chatExtensionId:"GitHub.copilot-chat"'
REPLACED = ("copilot", "github-authentication")


@pytest.fixture
def window(package, browser, environment, tmp_path):
    server = CodeServer(
        tmp_path / "vs",
        environment,
        command=COMMAND,
        more=[COPILOT],
        options={"builtin-extensions-dir": editors_own(tmp_path / "own")},
        **{"chat.disableAIFeatures": False},
    )
    (tmp_path / "project/.git").mkdir(parents=True)
    with closing(server), closing(server.window(browser, tmp_path / "project", unmanaged)) as window:
        yield window


def unmanaged(page) -> None:
    """The editor then takes Copilot for an extension like any other; it would be off until its own setup is done."""

    def serve(route):
        text = route.fetch().text()
        assert MANAGED in text
        route.fulfill(body=text.replace(MANAGED, MANAGED.replace("GitHub", "nobody")), content_type="text/javascript")

    page.route("**/workbench.js", serve)


def editors_own(folder: Path) -> Path:
    """The extensions that come with the editor, without those whose place is taken here."""
    folder.mkdir()
    for path in (found("code-server").parent / "node_modules/code-server/lib/vscode/extensions").iterdir():
        if path.name not in REPLACED:
            (folder / path.name).symlink_to(path)
    return folder


def test_mercury_is_silent_beside_copilot_until_chosen(window):
    window.ready()
    assert carried_on(window) == SHOP.rest
    window.run("github.copilot.signIn")
    window.until(lambda: "GitHub Copilot suggests here" in window.status, "the status")
    assert carried_on(window) == THEIRS
    window.press("Tab")
    window.has(SHOP.before + THEIRS)
    window.answer("Use Mercury")
    window.ready()
    assert carried_on(window) == SHOP.rest
    window.press("Tab")
    window.has(SHOP.whole)
    assert window.run("github.copilot.taken") == 1
    window.run("mercury-ls.metrics")
    window.until(lambda: "accepted    1\n" in window.text, "the server to hear of its own")


def carried_on(window) -> str:
    window.open(SHOP.before[:-1])
    window.type(SHOP.before[-1])
    return window.first_ghost(SHOP.before[-1])
