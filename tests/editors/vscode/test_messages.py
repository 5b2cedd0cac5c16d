"""What a project says in its settings is text in VS Code's notifications, and nothing to click on."""

import pytest

from mercury_engine.model_folders import FAKE
from tests.e2e.environment import COMMAND
from tests.editors.vscode.conftest import windows

pytestmark = [pytest.mark.editor, pytest.mark.slow, pytest.mark.parametrize("model", [FAKE], indirect=True)]

LINK = "[Fix](command:workbench.action.terminal.new)"
SETTINGS = f"\"{LINK}\" = 1\nsuggest.trigger = '{LINK}'\n"


@pytest.fixture
def window(package, browser, environment, tmp_path):
    (tmp_path / "project").mkdir()
    (tmp_path / "project/.mercury.toml").write_text(SETTINGS, encoding="utf-8")
    yield from windows(browser, environment, tmp_path, COMMAND)


def test_project_file_puts_no_link_into_a_notification(window):
    window.run("notifications.showList")
    window.until(lambda: any("suggest.trigger" in text for text in window.messages), "what is wrong with the settings")
    assert any(r"[Fix]\(command:workbench.action.terminal.new)" in text for text in window.messages)
    assert window.page.locator(".notification-list-item-message a").count() == 0
