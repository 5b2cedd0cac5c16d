"""The next edit in real Neovims, against a server that offers what the test has written down: no model is asked."""

import json
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.editor, pytest.mark.slow]

SERVER = str(Path(__file__).with_name("scripted_server.py"))
TEXT = "def area(width, height):\n    return width * hight\n\n\nprint(aera(2, 3))\n"

SCREEN = Path(__file__).with_name("screen.lua").read_text("utf-8")


def edit(line: int, start: int, stop: int, text: str, **more) -> dict:
    ends = {"start": {"line": line, "character": start}, "end": {"line": more.pop("to", line), "character": stop}}
    return {"file": "area.py", "range": ends, "newText": text, "display": "diff", **more}


FIRST = edit(1, 19, 24, "height")
SECOND = edit(4, 6, 10, "area")


def below(line: int, at: int = 0) -> list:
    """The hint at the cursor's line that the edit is further down."""
    return ["?", at, f"  ↓ next edit: line {line} (<Tab>)"]


@pytest.fixture
def editor(bare, tmp_path):
    bare.start([sys.executable, SERVER, str(tmp_path)])
    for mode, key, name in (("n", "<Tab>", "next-edit"), ("n", "g<Tab>", "next-edit-one"), ("n", "<C-x>", "dismiss")):
        bare.lua("vim.keymap.set(...)", mode, key, f"<Plug>(mercury-{name})")
    return bare


def offered(editor, *edits: dict, text: str = TEXT, **more: str) -> None:
    """An editor whose user has just made a change on the first line, after which these edits are offered."""
    editor.open(text, "area.py")
    editor.attached()
    answer(editor, *edits, **more)
    editor.keys("1Gx")


def answer(editor, *edits: dict, **more: str) -> None:
    """Written aside first: the server reads whenever it is asked."""
    part = editor.folder / "answer.part"
    part.write_text(json.dumps({"id": "one", "edits": edits, **more}), encoding="utf-8")
    part.rename(editor.folder / "answer.json")


def test_next_edit_is_asked_for_again_once_the_engine_is_ready(editor):
    editor.open(TEXT, "area.py")
    editor.attached()
    answer(editor, FIRST)
    editor.lua(
        "local id = vim.lsp.get_clients()[1].id\n"
        "for _, state in ipairs({ 'loading', 'ready' }) do\n"
        "  require('mercury.status').changed(id, { state = state, detail = '' })\n"
        "end"
    )
    shows(editor, ["-", 1, "hight"], ["+", 1, "height"])


def test_model_that_rewrites_is_asked_at_once(editor):
    editor.lua("require('mercury').setup(...)", {"servers": [], "next_edit_debounce_ms": 3_600_000})
    editor.open(TEXT, "area.py")
    editor.attached()
    answer(editor, FIRST)
    eager = "require('mercury.status').changed(vim.lsp.get_clients()[1].id, { state = 'ready', eager = true })"
    editor.lua(eager)
    shows(editor, ["-", 1, "hight"], ["+", 1, "height"])


@pytest.mark.parametrize("place", [(), [edit(1, 19, 24, "hight", oldText="hight")]])
def test_line_in_which_the_user_rests_is_asked_about(editor, place):
    editor.open(TEXT, "area.py")
    editor.attached()
    editor.lua(
        "require('mercury.status').changed(vim.lsp.get_clients()[1].id, ...)", {"state": "ready", "atRest": True}
    )

    def asked() -> list[bool | None]:
        return [request["context"].get("rests") for request in journal(editor, "mercury/nextEdit")]

    editor.until(lambda: asked() == [None], "the question of a client that is ready")
    if place:
        answer(editor, *place, kind="diagnostic", label="new error")
    editor.keys("1Gx")
    editor.until(lambda: asked() == [None, None], "the question after an edit")
    taken(editor)
    answer(editor, SECOND, id="two")
    (hold := editor.folder / "hold").touch()
    editor.keys("5G")
    editor.until(lambda: asked() == [None, None, True], "the question of who rests")
    editor.keys("$")
    hold.unlink()
    shows(editor, ["-", 4, "aera"], ["+", 4, "area"])
    assert asked() == [None, None, True]


def test_command_asks_by_hand_where_nothing_is_offered(editor):
    editor.open(TEXT, "area.py")
    editor.attached()
    editor.command("Mercury next")
    editor.says("there is no next edit; :Mercury why has the reason")
    answer(editor, FIRST)
    editor.command("Mercury next")
    shows(editor, ["-", 1, "hight"], ["+", 1, "height"])
    assert [request["context"]["triggerKind"] for request in journal(editor, "mercury/nextEdit")] == [1, 1]


def taken(editor) -> None:
    editor.until(lambda: not (editor.folder / "answer.json").exists(), "the server to take its answer")


def shows(editor, *wanted: list) -> None:
    editor.until(lambda: sorted(editor.lua(SCREEN)) == sorted(wanted), f"{wanted}, not {editor.lua(SCREEN)}")


def journal(editor, method: str) -> list[dict]:
    lines = (editor.folder / "journal.jsonl").read_text(encoding="utf-8").rpartition("\n")[0].splitlines()
    return [message["params"] for message in map(json.loads, lines) if message["method"] == method]


def told(editor, method: str) -> dict:
    return editor.until(lambda: journal(editor, method), method)[0]


def reach(editor, text: str) -> None:
    editor.until(lambda: editor.text == text.removesuffix("\n"), f"the text {text!r}")


CHANGED = TEXT[1:]


def test_key_goes_to_what_is_broken_and_changes_nothing(editor):
    place = edit(4, 6, 10, "aera", oldText="aera")
    offered(editor, place, kind="diagnostic", label="new error")
    shows(editor, ["?", 0, "  ↓ new error: line 5 (<Tab>)"])
    editor.keys("<Tab>")
    editor.until(lambda: editor.lua("return vim.api.nvim_win_get_cursor(0)") == [5, 6], "the cursor to be at the error")
    shows(editor)
    assert told(editor, "workspace/executeCommand")["arguments"] == ["one"]
    assert editor.lua("return vim.api.nvim_buf_get_lines(0, 1, -1, false)") == TEXT.splitlines()[1:]


def test_diagnostics_of_other_servers_are_reported(editor):
    editor.open("ß = hight\n", "area.py")
    editor.attached()
    report = """
    local place = { lnum = 0, col = 5, end_lnum = 0, end_col = 10, severity = 2, message = "hight is not defined" }
    vim.diagnostic.set(vim.api.nvim_create_namespace("other"), 0, { place })
    """
    editor.lua(report)
    (diagnostic,) = told(editor, "mercury/didChangeDiagnostics")["diagnostics"]
    start, stop = {"line": 0, "character": 4}, {"line": 0, "character": 9}
    assert diagnostic == {"range": {"start": start, "end": stop}, "severity": 2, "message": "hight is not defined"}


def test_next_edit_is_asked_for_with_version_and_place(editor):
    offered(editor, FIRST)
    asked = told(editor, "mercury/nextEdit")
    versions = [change["textDocument"]["version"] for change in journal(editor, "textDocument/didChange")]
    assert asked["textDocument"]["version"] == versions[-1]
    assert asked["position"] == {"line": 0, "character": 0}
    assert asked["context"] == {"triggerKind": 2, "closedFiles": True, "places": True, "typing": False}


@pytest.mark.parametrize(
    ("due", "shown"),
    [
        (edit(1, 24, 24, "  # fixed", display="ghost"), [["~", 1, "  # fixed"]]),
        (
            edit(4, 0, 0, "def f(a, b):\n    return a\n"),
            [["+", 3, "def f(a, b):"], ["+", 3, "    return a"], below(5)],
        ),
        (
            edit(0, 3, 24, " area(w, h):\n    return w * h", to=1),
            [
                *(["-", 0, CHANGED.splitlines()[0]], ["-", 1, "    return width * hight"]),
                *(["+", 1, "ef  area(w, h):"], ["+", 1, "    return w * h"]),
            ],
        ),
    ],
    ids=["ghost text", "new lines strike nothing out", "changed lines stand below the struck ones"],
)
def test_edit_is_shown_as_what_it_is(editor, due, shown):
    offered(editor, due)
    shows(editor, *shown)


def test_accepting_makes_all_edits_and_undoing_takes_all_back(editor):
    offered(editor, FIRST, SECOND)
    shows(editor, ["-", 1, "hight"], ["+", 1, "height"], ["-", 4, "aera"], ["+", 4, "area"])
    editor.keys("<Tab>")
    reach(editor, CHANGED.replace("hight", "height").replace("aera", "area"))
    shows(editor)
    assert told(editor, "workspace/executeCommand")["arguments"] == ["one"]
    editor.keys("u")
    reach(editor, CHANGED)


def test_accepting_one_leaves_the_rest_on_offer(editor):
    offered(editor, FIRST, SECOND)
    shows(editor, ["-", 1, "hight"], ["+", 1, "height"], ["-", 4, "aera"], ["+", 4, "area"])
    editor.keys("g<Tab>")
    reach(editor, CHANGED.replace("hight", "height"))
    shows(editor, ["-", 4, "aera"], ["+", 4, "area"], below(5, at=1))
    assert journal(editor, "workspace/executeCommand") == []
    editor.keys("4Gg<Tab>")
    reach(editor, CHANGED.replace("hight", "height").replace("aera", "area"))
    assert told(editor, "workspace/executeCommand")["arguments"] == ["one"]


def test_ranges_follow_the_parts_that_were_taken(editor):
    offered(editor, edit(0, 0, 0, "# a\n# b\n"), edit(1, 19, 24, "height"))
    editor.until(lambda: editor.lua(SCREEN), "the offer")
    editor.keys("g<Tab>")
    reach(editor, "# a\n# b\n" + CHANGED)
    editor.keys("4Gg<Tab>")
    reach(editor, "# a\n# b\n" + CHANGED.replace("hight", "height"))


def test_distant_edit_is_jumped_to_first(editor):
    text = TEXT + "\n" * 80 + "aera()\n"
    offered(editor, edit(85, 0, 4, "area"), text=text)
    shows(editor, ["-", 85, "aera"], ["+", 85, "area"], below(86))
    editor.keys("<Tab>")
    editor.until(lambda: editor.cursor == [86, 0], "the jump")
    assert editor.text == text.removesuffix("\n")[1:]
    shows(editor, ["-", 85, "aera"], ["+", 85, "area"])
    editor.keys("<Tab>")
    reach(editor, text.replace("aera()", "area()")[1:])


def test_changes_out_of_sight_are_said_before_and_after(editor):
    text = TEXT + "\n" * 80 + "aera()\n"
    offered(editor, FIRST, edit(85, 0, 4, "area"), text=text, summary="2 edits")
    editor.until(lambda: ["?", 0, "  next edit: 2 edits (<Tab>) · 1 out of sight"] in editor.lua(SCREEN), "the hint")
    editor.keys("<Tab>")
    reach(editor, text.replace("hight", "height").replace("aera()", "area()")[1:])
    editor.says("changed out of sight too, at line 86: u reverts")


def test_edit_of_another_open_file_is_jumped_to(editor):
    editor.open("aera\n", "other.py")
    editor.attached()
    offered(editor, {**edit(0, 0, 4, "area"), "file": "other.py"})
    shows(editor, ["?", 0, "  → next edit: other.py:1 (<Tab>)"])
    editor.command("set hidden")
    editor.keys("<Tab>")
    editor.until(lambda: editor.text == "aera", "the other file")
    editor.keys("<Tab>")
    reach(editor, "area")


def test_dismissing_clears_it_and_tells_the_server(editor):
    offered(editor, FIRST)
    shows(editor, ["-", 1, "hight"], ["+", 1, "height"])
    editor.keys("<C-x>")
    shows(editor)
    assert told(editor, "mercury/didReject") == {"id": "one"}
    reason = "return require('mercury.nextedit').reason()"
    assert editor.lua(reason) == "you have rejected it; your next change asks again"
    assert editor.text == CHANGED.removesuffix("\n")
    editor.keys("1Gx")
    editor.until(lambda: editor.lua(reason) is None, "the server to know more")


def test_answer_for_another_version_is_not_shown(editor):
    offered(editor, edit(1, 19, 24, "height", ahead=-1))
    taken(editor)
    answer(editor, SECOND)
    editor.keys("x")
    shows(editor, ["-", 4, "aera"], ["+", 4, "area"], below(5))


def test_overtaken_answer_does_not_keep_next_from_being_asked(editor):
    editor.lua("require('mercury.options').current.next_edit_debounce_ms = 500")
    (editor.folder / "hold").touch()
    offered(editor, FIRST)
    taken(editor)
    answer(editor, SECOND)
    editor.keys("x")
    (editor.folder / "hold").unlink()
    shows(editor, ["-", 4, "aera"], ["+", 4, "area"], below(5))


def test_typing_clears_it(editor):
    offered(editor, FIRST)
    shows(editor, ["-", 1, "hight"], ["+", 1, "height"])
    editor.press("i", "i")
    assert editor.lua(SCREEN) == []


def test_writing_the_file_leaves_it_on_offer(editor):
    offered(editor, FIRST)
    shows(editor, ["-", 1, "hight"], ["+", 1, "height"])
    editor.keys(":silent write<CR>")
    editor.keys("<Tab>")
    reach(editor, CHANGED.replace("hight", "height"))


def test_change_after_it_was_shown_voids_next_edit(editor):
    offered(editor, FIRST)
    shows(editor, ["-", 1, "hight"], ["+", 1, "height"])
    editor.lua("vim.api.nvim_buf_set_lines(0, 0, 0, false, { '# new' }); require('mercury').next_edit()")
    assert editor.text == "# new\n" + CHANGED.removesuffix("\n")


def test_change_that_removes_its_place_clears_edit_without_error(editor):
    offered(editor, SECOND)
    shows(editor, ["-", 4, "aera"], ["+", 4, "area"], below(5))
    editor.keys("5G2|D")
    reach(editor, CHANGED.replace("print(aera(2, 3))", "p"))
    shows(editor)
    assert editor.rpc("nvim_exec2", "messages", {"output": True})["output"] == ""


def test_range_to_the_end_of_file_takes_its_last_line(editor):
    offered(editor, edit(4, 0, 0, "print(area(2, 3))\n", to=5))
    editor.until(lambda: editor.lua(SCREEN), "the offer")
    editor.keys("5G<Tab>")
    reach(editor, CHANGED.replace("aera", "area"))


def test_columns_behind_wide_characters_are_right(editor):
    start = len("'née 🦀' + ".encode("utf-16-le")) // 2
    offered(editor, edit(1, start, start + 5, "height"), text="# x\n'née 🦀' + hight\n")
    shows(editor, ["-", 1, "hight"], ["+", 1, "height"])


def test_beside_the_copilot_client_another_plugin_shows_next_edits(editor, tmp_path):
    editor.start([sys.executable, SERVER, str(tmp_path)], "mercury-copilot")
    editor.open(TEXT, "area.py")
    editor.attached()
    editor.attached("mercury-copilot")
    answer(editor, FIRST)
    editor.keys("1Gx")
    editor.asks()
    assert journal(editor, "mercury/nextEdit") == []


def test_offer_for_another_file_goes_with_the_edit_it_followed_from(editor):
    (editor.folder / "other.py").write_text("aera\n", encoding="utf-8")
    offered(editor, {**edit(0, 0, 4, "area"), "file": "other.py"})
    shows(editor, ["?", 0, "  → next edit: other.py:1 (<Tab>)"])
    editor.keys("u")
    reach(editor, TEXT)
    shows(editor)
