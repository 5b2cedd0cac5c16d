"""Ghost text in a real VS Code with the real server: shown, typed through, taken in whole and in part, taken back."""

import json
import os
import signal
from pathlib import Path

import pytest

from tests.editors.scenes import BLOCK, SHOP, Scene

pytestmark = [pytest.mark.editor, pytest.mark.slow]

PART = "def load(path):\n"


@pytest.fixture
def window(real):
    real.ready()
    return real


def suggested(window, scene: Scene = SHOP) -> str:
    """The ghost text behind a scene's last key; it has been on the screen."""
    window.open(scene.before[:-1])
    window.type(scene.before[-1])
    window.first_ghost(scene.before[-1])
    return window.until(lambda: settled(window), "ghost text")


def settled(window) -> str:
    """Ghost text that two looks agree on, with the editor at rest between them."""
    before = window.ghost
    window.js("await new Promise((done) => setTimeout(done, 150))")
    return before if before and before == window.ghost else ""


def test_ghost_text_follows_what_is_typed(window, copies):
    ghost = suggested(window)
    if copies:
        assert ghost == SHOP.rest


def test_tab_takes_exactly_what_was_shown_and_one_undo_takes_it_back(window):
    ghost = suggested(window)
    window.press("Tab")
    window.has(SHOP.before + ghost)
    window.press("Control+z")
    window.has(SHOP.before)


@pytest.fixture
def several_lines(window):
    window.set("mercury.suggest.multiLine", "always")
    yield window
    window.set("mercury.suggest.multiLine", None)


def test_several_lines_are_shown_taken_as_shown_and_taken_back_at_once(several_lines, copies):
    ghost = suggested(several_lines, BLOCK)
    assert ghost.count("\n") == BLOCK.rest.count("\n") if copies else "\n" in ghost
    several_lines.press("Tab")
    several_lines.has(BLOCK.before + ghost)
    several_lines.press("Control+z")
    several_lines.has(BLOCK.before)


@pytest.mark.any_model
def test_word_is_accepted_and_the_rest_stays(window):
    ghost = suggested(window)
    window.press("Control+ArrowRight")
    taken = window.until(lambda: window.text.removeprefix(SHOP.before), "a word")
    assert ghost.startswith(taken)
    assert len(taken) < len(ghost)
    window.shows(ghost.removeprefix(taken))
    window.press("Control+z")
    window.has(SHOP.before)


@pytest.mark.any_model
def test_line_is_accepted_and_the_rest_stays(several_lines):
    ghost = suggested(several_lines, BLOCK)
    several_lines.run("mercury-ls.acceptLine")
    taken = several_lines.until(lambda: several_lines.text.removeprefix(BLOCK.before), "a line")
    assert ghost.startswith(taken.rstrip("\n "))
    assert taken.count("\n") <= 1


def test_typing_along_never_takes_it_off_the_screen(window, copies):
    ghost = suggested(window)
    along, rest = ghost[: len(ghost) // 2], ghost[len(ghost) // 2 :]
    window.page.evaluate(WATCH)
    window.type(along)
    seen = window.page.evaluate("() => { window.watching = false; return window.seen; }")
    assert seen
    assert all(frame and frame in ghost for frame in seen), seen
    left = window.until(lambda: settled(window), "what is left of it")
    assert left == rest if copies else left.startswith(rest)
    window.press("Tab")
    window.has(SHOP.before + along + left)


WATCH = Path(__file__).with_name("watch.js").read_text("utf-8").removesuffix("\n")


GROWN = ["amount = 0", "\nfor price in prices:", "\n    amount += price", "\nreturn amount"]


def test_an_answer_that_grows_is_shown_in_full_and_never_gone(told):
    """Of its own accord the editor asks once as long as nothing is typed, and by command it keeps what it shows."""
    growing = told.folder / "growing.json"
    place = {"line": 0, "character": 2}
    command = {"title": "", "command": "mercury.didAccept", "arguments": ["text"]}
    ranged = {"range": {"start": place, "end": place}, "command": command}
    texts = ["".join(GROWN[: count + 1]) for count in range(len(GROWN))]
    told.open("#")
    told.page.evaluate(WATCH)
    growing.write_text(json.dumps([{"items": [{"insertText": text, **ranged}]} for text in texts]), encoding="utf-8")
    try:
        told.type(" ")
        told.first_ghost(" ")
        told.shows(texts[-1])
    finally:
        growing.unlink()
    seen = told.page.evaluate("() => { window.watching = false; return window.seen; }")
    assert "" not in seen[seen.index(GROWN[0]) :], seen


@pytest.mark.any_model
def test_typing_something_else_takes_it_away(window):
    ghost = suggested(window)
    window.type("x")
    window.until(lambda: window.ghost != ghost, "the suggestion to go")
    assert window.text == SHOP.before + "x"


@pytest.mark.any_model
def test_escape_hides_it_and_inserts_nothing(window):
    suggested(window)
    window.press("Escape")
    window.shows("")
    assert window.text == SHOP.before


@pytest.mark.any_model
def test_key_asks_for_a_suggestion(window):
    suggested(window)
    window.press("Escape")
    window.shows("")
    window.press("Alt+\\")
    window.until(lambda: window.ghost, "a suggestion")


@pytest.mark.any_model
def test_with_several_cursors_nothing_is_suggested(window):
    ghost = suggested(window)
    window.run("editor.action.insertCursorAbove")
    window.type(ghost[0])
    window.run("editor.action.inlineSuggest.trigger")
    window.shows("")


@pytest.mark.any_model
def test_killed_server_comes_back(window):
    suggested(window)
    (pid,) = servers(window)
    os.kill(pid, signal.SIGKILL)
    window.until(lambda: servers(window) not in ([], [pid]), "another server")
    assert suggested(window)


def servers(window) -> list[int]:
    """The language servers that the window's extension host has started."""
    code = """
        const { execFileSync } = require('node:child_process');
        const told = execFileSync('ps', ['-o', 'pid=,args=', '--ppid', String(process.pid)]).toString();
        return told.split('\\n').filter((line) => line.includes('--stdio')).map((line) => parseInt(line));
    """
    return window.js(code.replace("require(", "process.getBuiltinModule("))


@pytest.mark.any_model
def test_snoozed_it_is_silent_and_says_so_until_it_is_woken(window):
    suggested(window)
    window.run("mercury-ls.snooze", 5)
    window.until(lambda: "Snoozed" in window.status, "the status")
    window.open(SHOP.before[:-1])
    window.type(SHOP.before[-1])
    assert window.js("await new Promise((done) => setTimeout(done, 300))") is None
    assert window.ghost == ""
    window.run("mercury-ls.wake")
    window.ready()
    assert suggested(window)


@pytest.mark.any_model
def test_language_is_turned_off_and_on_again(window):
    suggested(window)
    window.run("mercury-ls.toggleLanguage")
    window.until(lambda: "off for python" in window.status, "the status")
    window.type("e")
    window.shows("")
    window.run("mercury-ls.toggleLanguage")
    window.ready()
    assert suggested(window)


@pytest.mark.any_model
def test_why_says_the_reason(window):
    window.open("# nothing is known of a comm")
    window.run("mercury-ls.why")
    reasons = ("inside a comment", "the model adds nothing here", "no answer is likely")
    window.until(lambda: any(reason in message for message in window.messages for reason in reasons), "the reason")
    window.run("notifications.clearAll")


@pytest.mark.any_model
def test_metrics_are_a_page_to_read(window):
    window.open(SHOP.text)
    window.run("mercury-ls.metrics")
    window.until(lambda: "accepted" in window.text and "Last decisions" in window.text, "the page")
