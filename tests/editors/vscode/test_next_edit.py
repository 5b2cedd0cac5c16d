"""The next edit in a real VS Code, against a server that offers what the test has written down."""

import json
from pathlib import Path

import pytest

pytestmark = [pytest.mark.editor, pytest.mark.slow]

TEXT = "# shapes\ndef area(width, height):\n    return width * hight\n\n\nprint(aera(2, 3))\n"
SPACES = "\n" * 120


def edit(line: int, start: int, stop: int, text: str, **more) -> dict:
    ends = {"start": {"line": line, "character": start}, "end": {"line": more.pop("to", line), "character": stop}}
    return {"range": ends, "newText": text, "display": "diff", **more}


FIRST = edit(2, 19, 24, "height")
SECOND = edit(5, 6, 10, "area")
DONE = TEXT.replace("hight", "height").replace("aera", "area")


@pytest.fixture
def window(told):
    """As people have it."""
    told.set("mercury-ls.nextEdit.enabled", None)
    return told


def offered(window, *edits: dict, text: str = TEXT, **said: str) -> None:
    """A window whose user has just typed on the first line, after which these edits are offered."""
    window.open(text, cursor=text.partition("\n")[0])
    window.past = len(journal(window))
    answer(window, *edits, **said)
    window.type(".")


def answer(window, *edits: dict, **said: str) -> None:
    """Written aside first: the server reads whenever it is asked."""
    part = window.folder / "answer.part"
    placed = [{"file": window.name, **edit} for edit in edits]
    part.write_text(json.dumps({"id": "one", "edits": placed, **said}), encoding="utf-8")
    part.rename(window.folder / "answer.json")


def typed(text: str) -> str:
    first, _, rest = text.partition("\n")
    return f"{first}.\n{rest}"


def journal(window) -> list[dict]:
    path = window.folder / "journal.jsonl"
    window.until(path.exists, "the server to start")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").rpartition("\n")[0].splitlines()]


def messages(window, method: str) -> list[dict]:
    """What the server was told since the edits were offered."""
    return [message["params"] for message in journal(window)[window.past :] if message["method"] == method]


def heard(window, method: str) -> dict:
    return window.until(lambda: messages(window, method), method)[-1]


def shows(window, *wanted: str) -> None:
    window.until(lambda: sorted(window.marks) == sorted(wanted), f"{wanted}")


def test_wrapping_edit_is_made_once(window):
    """VS Code inserts before and after the text, which stays as it was."""
    offered(window, edit(2, 11, 24, "round(width * hight)"))
    window.until(lambda: window.marks, "the edit")
    window.press("Control+Alt+.")
    window.until(lambda: window.cursor[0] == 2, "the jump")
    window.press("Control+Alt+.")
    window.has(typed(TEXT.replace("width * hight", "round(width * hight)")))
    heard(window, "mercury/didAccept")
    shows(window)


def test_diagnostics_of_other_servers_are_told(window):
    report = """
        globalThis.reported = vscode.languages.createDiagnosticCollection('other');
        const complaint = new vscode.Diagnostic(new vscode.Range(2, 19, 2, 24), 'hight is not defined');
        globalThis.reported.set(vscode.window.activeTextEditor.document.uri, [complaint]);
    """
    window.open(TEXT)
    window.past = len(journal(window))
    window.js(report)
    try:
        (diagnostic,) = heard(window, "mercury/didChangeDiagnostics")["diagnostics"]
        assert (diagnostic["message"], diagnostic["severity"]) == ("hight is not defined", 1)
        assert diagnostic["range"]["start"] == {"line": 2, "character": 19}
    finally:
        window.js("globalThis.reported.dispose()")


def test_next_edit_is_requested_with_version_and_place(window):
    offered(window, FIRST)
    shows(window, "hight", "height")
    asked = heard(window, "mercury/nextEdit")
    assert asked["position"] == {"line": 0, "character": 9}
    assert asked["textDocument"]["version"] == heard(window, "textDocument/didChange")["textDocument"]["version"]


def status(window, **more: object) -> None:
    told = {"state": "ready", "detail": "", "progress": None, "engine": "", "model": "", "device": "", **more}
    (window.folder / "status.json").write_text(json.dumps(told), encoding="utf-8")


@pytest.fixture
def resting(window):
    """Whose server wants to be asked where the user rests."""
    status(window, atRest=True)
    yield window
    status(window)
    window.type(".")
    window.until(lambda: not (window.folder / "status.json").exists(), "the server to tell its status")


def test_line_in_which_the_user_rests_is_asked_about(resting):
    resting.open(TEXT, cursor="# shapes")
    resting.past = len(journal(resting))
    resting.type(".")

    def asked() -> list[tuple[bool, bool]]:
        contexts = [request["context"] for request in messages(resting, "mercury/nextEdit")]
        return [(context["typing"], context["rests"]) for context in contexts]

    resting.until(lambda: asked()[-1:] == [(False, False)], "the question after typing")
    answer(resting, SECOND)
    (hold := resting.folder / "hold").touch()
    resting.js("vscode.window.activeTextEditor.selection = new vscode.Selection(5, 0, 5, 0)")
    resting.until(lambda: asked()[-1:] == [(False, True)], "the question of who rests")
    resting.press("End")
    hold.unlink()
    shows(resting, "aera", "area")
    last = heard(resting, "mercury/nextEdit")
    assert (last["position"]["line"], last["context"]["rests"]) == (5, True)


def test_key_asks_by_hand_where_nothing_is_offered(window):
    window.open(TEXT, cursor="# shapes")
    window.past = len(journal(window))
    answer(window, FIRST)
    window.press("Control+Alt+.")
    shows(window, "hight", "height")
    assert heard(window, "mercury/nextEdit")["context"]["triggerKind"] == 1


def test_all_edits_are_shown_made_at_once_and_undone_at_once(window):
    offered(window, FIRST, SECOND)
    shows(window, "hight", "height", "aera", "area")
    window.press("Tab")
    window.has(typed(DONE))
    assert heard(window, "mercury/didAccept") == {"id": "one"}
    window.press("Control+z")
    window.has(typed(TEXT))


def test_first_tab_goes_there_and_second_makes_the_edit(window):
    offered(window, edit(125, 6, 10, "area"), text="# shapes\n" + SPACES + "\n\n\n\nprint(aera(2, 3))\n")
    window.until(lambda: any("next edit: line 126" in mark for mark in window.marks), "the hint")
    before = window.text
    window.press("Tab")
    window.until(lambda: window.cursor == (125, 6), "the jump")
    assert window.text == before
    shows(window, "aera", "area")
    window.press("Tab")
    window.has(before.replace("aera", "area"))


def test_next_edit_goes_on_in_another_file(window):
    other = window.open("print(aera(1))\n", "other.py")
    here = window.folder / "here.py"
    here.write_text("x = 1\n", encoding="utf-8")
    window.show(here, len("x = 1"))
    answer(window, edit(0, 6, 10, "area", file=other.name))
    window.type("0")
    window.until(lambda: any("other.py:1" in mark for mark in window.marks), "the hint")
    window.press("Tab")
    window.until(lambda: window.name == "other.py", "the other file")
    shows(window, "aera", "area")
    window.press("Tab")
    window.has("print(area(1))\n")


def test_ignored_offer_takes_no_key_in_another_file(window):
    offered(window, FIRST)
    window.until(lambda: window.marks, "the edit")
    other = window.folder / "unrelated.py"
    other.write_text("y = 1\n", encoding="utf-8")
    window.show(other, len("y = 1"))
    shows(window)
    window.press("Tab")
    window.has("y = 1   \n")


def test_long_hint_is_cut(window):
    offered(window, FIRST, note="2 more places cannot be judged: a_long_name_of_a_report.py:105, b.py:3")
    long = "↓ next edit: line 3 (Tab) · 2 more places cannot be judged: a_l…"
    shows(window, "hight", "height", long)


def test_who_got_nothing_while_typing_is_asked_for_once_more_after_stopping(window):
    window.open(TEXT, cursor=TEXT.partition("\n")[0])
    window.past = len(journal(window))
    window.type(".")

    def typing() -> list[bool]:
        return [asked["context"]["typing"] for asked in messages(window, "mercury/nextEdit")]

    window.until(lambda: typing() == [True, False], "the second question")


def test_hint_says_so_on_the_line_of_the_edit(window):
    offered(window, FIRST, note="1 mention in text left")
    shows(window, "hight", "height", "↓ next edit: line 3 (Tab) · 1 mention in text left")
    window.show(window.folder / window.name, typed(TEXT).index("hight"))
    shows(window, "hight", "height", "next edit: here (Tab) · 1 mention in text left")


FAR = "# shapes\nprint(aera(1))\n" + SPACES + "print(aera(2))\n"
FAR_EDITS = edit(1, 6, 10, "area", oldText="aera"), edit(122, 6, 10, "area", oldText="aera")


def listed(window) -> list[str]:
    """The rows of the list, once it is there."""
    rows = window.page.locator(".quick-input-list .monaco-list-row")
    rows.first.wait_for()
    return rows.all_inner_texts()


def test_edits_out_of_sight_are_listed_before_they_are_made(window):
    offered(window, *FAR_EDITS, text=FAR, summary="2 here")
    window.until(lambda: any("next edits: 2 here (Tab)" in mark for mark in window.marks), "the summary")
    window.press("Tab")
    first, second = listed(window)
    assert "print(aera(1))  →  print(area(1))" in first
    assert ":123" in second
    assert window.text == typed(FAR)
    window.press("Enter")
    window.has(typed(FAR).replace("aera", "area"))
    assert heard(window, "mercury/didAccept") == {"id": "one"}
    window.press("Control+z")
    window.has(typed(FAR))


def test_listed_edits_are_shown_in_place_and_may_be_left_out(window):
    offered(window, *FAR_EDITS, text=FAR, summary="2 here")
    shows(window, "aera", "area", "↓ next edits: 2 here (Tab)")
    window.press("Control+Alt+,")
    listed(window)
    rows = "return vscode.window.activeTextEditor.visibleRanges.some((r) => r.start.line <= 122 && 122 <= r.end.line)"
    window.press("ArrowDown")
    window.until(lambda: window.js(rows), "the second edit")
    window.press("Space")
    window.press("Enter")
    window.has(typed(FAR).replace("aera(1)", "area(1)"))
    assert heard(window, "mercury/didAccept") == {"id": "one", "edits": 1}
    shows(window)


def test_left_the_list_makes_nothing_and_the_offer_stays(window):
    offered(window, *FAR_EDITS, text=FAR, summary="2 here")
    window.until(lambda: window.marks, "the edits")
    window.press("Control+Alt+,")
    listed(window)
    window.press("Escape")
    shows(window, "aera", "area", "↓ next edits: 2 here (Tab)")
    assert window.text == typed(FAR)
    assert window.cursor == (0, len("# shapes."))


def test_edits_of_files_that_are_not_open_are_made_and_undone_at_once(window):
    closed = window.folder / "closed.py"
    closed.write_text("print(aera(3))\n", encoding="utf-8")
    offered(window, SECOND, edit(0, 6, 10, "area", file="closed.py", oldText="aera"), summary="1 here, 1 in closed.py")
    assert heard(window, "mercury/nextEdit")["context"]["closedFiles"] is True
    shows(window, "aera", "area", "↓ next edits: 1 here, 1 in closed.py (Tab)")
    window.press("Tab")
    assert len(listed(window)) == 2
    window.press("Enter")
    window.has(typed(TEXT.replace("aera", "area")))
    window.until(lambda: closed.read_text(encoding="utf-8") == "print(area(3))\n", "the other file to be saved")
    window.press("Control+z")
    window.has(typed(TEXT))
    other = "return (await vscode.workspace.openTextDocument(given)).getText()"
    assert window.js(other, str(closed)) == "print(aera(3))\n"


def test_changed_file_gets_no_edit(window):
    (window.folder / "changed.py").write_text("print(area(3))\n", encoding="utf-8")
    offered(
        window, SECOND, edit(0, 6, 10, "area", file="changed.py", oldText="aera"), summary="1 here, 1 in changed.py"
    )
    shows(window, "aera", "area", "↓ next edits: 1 here, 1 in changed.py (Tab)")
    window.press("Tab")
    shows(window)
    assert window.text == typed(TEXT)
    assert messages(window, "mercury/didReject") == []


def test_rename_provider_is_told_and_the_note_is_shown(window):
    provide = """
        const refuse = () => Promise.reject(new Error('not here'));
        const provider = { prepareRename: refuse, provideRenameEdits: refuse };
        globalThis.provider = vscode.languages.registerRenameProvider('python', provider);
    """
    offered(window, FIRST)
    assert heard(window, "mercury/nextEdit")["context"]["renameProvider"] == ""
    window.js(provide)
    try:
        offered(window, FIRST)  # asks nobody before the server; the next request says what was found out meanwhile
        offered(window, FIRST, note="undo and use rename")
        assert heard(window, "mercury/nextEdit")["context"]["renameProvider"] == "another extension"
        shows(window, "hight", "height", "↓ next edit: line 3 (Tab) · undo and use rename")
    finally:
        window.js("globalThis.provider.dispose()")


def test_nearest_part_is_made_and_the_other_stays(window):
    offered(window, FIRST, SECOND)
    shows(window, "hight", "height", "aera", "area")
    window.run("mercury-ls.nextEditOne")
    window.has(typed(TEXT.replace("hight", "height")))
    shows(window, "aera", "area")


def test_escape_refuses_it(window):
    offered(window, FIRST)
    shows(window, "hight", "height")
    window.press("Escape")
    assert heard(window, "mercury/didReject") == {"id": "one"}
    shows(window)
    assert window.text == typed(TEXT)


def test_offer_moves_with_typing_and_goes_where_typed_over(window):
    offered(window, FIRST)
    shows(window, "hight", "height")
    window.press("Enter")
    shows(window, "hight", "height")
    window.js("vscode.window.activeTextEditor.selection = new vscode.Selection(3, 20, 3, 20)")
    window.type("x")
    shows(window)


def test_lines_that_come_stand_beside_the_code_and_cover_none_of_it(window):
    offered(window, edit(2, 24, 24, "\n    # one\n    # two"))
    shows(window, "↳     # one", "      # two")
    covered = window.page.evaluate(COVERED)
    assert covered == []
    window.press("Tab")
    window.has(typed(TEXT.replace("hight\n", "hight\n    # one\n    # two\n")))


COVERED = Path(__file__).with_name("covered.js").read_text("utf-8").removesuffix("\n")


def test_tab_indents_where_only_white_space_is_before_the_cursor(window):
    offered(window, FIRST)
    shows(window, "hight", "height")
    window.js("vscode.window.activeTextEditor.selection = new vscode.Selection(3, 0, 3, 0)")
    shows(window, "hight", "height", "↑ next edit: line 3 (Ctrl+Alt+.)")
    window.press("Tab")
    window.until(lambda: window.text.splitlines()[3] == "    ", "the indentation")
    assert "hight" in window.text


def test_hint_is_in_the_status_bar_while_an_edit_is_on_offer(window):
    offered(window, FIRST)
    window.js("vscode.window.activeTextEditor.selection = new vscode.Selection(3, 0, 3, 0)")
    told = window.page.locator(".statusbar-item", has_text="↑ next edit: line 3 (Ctrl+Alt+.)")
    told.wait_for()
    window.press("Escape")
    told.wait_for(state="hidden")


def test_tab_takes_an_edit_of_the_very_line_wherever_the_cursor_is_in_it(window):
    offered(window, FIRST)
    shows(window, "hight", "height")
    window.js("vscode.window.activeTextEditor.selection = new vscode.Selection(2, 0, 2, 0)")
    shows(window, "hight", "height")
    window.press("Tab")
    window.has(typed(TEXT.replace("hight", "height")))


def test_in_a_snippet_tab_goes_to_the_next_place(window):
    offered(window, FIRST)
    shows(window, "hight", "height")
    window.js("await vscode.window.activeTextEditor.insertSnippet(new vscode.SnippetString('(${1:a}, ${2:b})'))")
    window.press("Tab")
    selected = "const e = vscode.window.activeTextEditor; return e.document.getText(e.selection)"
    window.until(lambda: window.js(selected) == "b", "the second place")
    assert "hight" in window.text
    window.press("Escape")


def test_in_the_menu_tab_completes(window):
    window.set("editor.wordBasedSuggestions", "currentDocument")
    try:
        offered(window, FIRST, text=TEXT.replace("# shapes", "# shapes\nwid").replace("2, 3", "2, 3"))
        window.js("vscode.window.activeTextEditor.selection = new vscode.Selection(1, 3, 1, 3)")
        window.run("editor.action.triggerSuggest")
        window.menu.wait_for()
        window.press("Tab")
        window.until(lambda: window.text.splitlines()[1] == "width", "the completion")
        assert "hight" in window.text
    finally:
        window.set("editor.wordBasedSuggestions", "off")


@pytest.fixture
def menu(window):
    """The menu of the words of a document is open when the edit comes."""
    window.set("editor.wordBasedSuggestions", "currentDocument")
    offered(window, FIRST, text="heightened = 1\n" + TEXT.partition("\n")[2])
    shows(window, "hight", "height")
    for _ in range(3):
        window.press("ArrowDown")
    answer(window, FIRST)
    window.type("heigh")
    window.run("editor.action.triggerSuggest")
    window.menu.wait_for()
    yield window
    window.set("editor.wordBasedSuggestions", "off")


def test_beside_the_menu_it_shows_and_says_its_key(menu):
    shows(menu, "hight", "height", "↑ next edit: line 3 (Ctrl+Alt+.)")
    menu.press("Control+Alt+.")
    menu.until(lambda: "hight" not in menu.text, "the edit")
    assert menu.text.splitlines()[3] == "heigh"


def test_when_the_menu_is_closed_tab_makes_it(menu):
    shows(menu, "hight", "height", "↑ next edit: line 3 (Ctrl+Alt+.)")
    menu.press("Escape")
    shows(menu, "hight", "height")
    menu.press("Tab")
    menu.until(lambda: "hight" not in menu.text, "the edit")
    assert menu.text.splitlines()[3] == "heigh"


@pytest.fixture
def suggest(window):
    """Has ghost text suggested from now on, at one place."""
    path = window.folder / "inline.json"

    def at(line: int, character: int, text: str) -> None:
        place = {"line": line, "character": character}
        command = {"title": "", "command": "mercury.didAccept", "arguments": ["text"]}
        item = {"insertText": text, "range": {"start": place, "end": place}, "command": command}
        path.write_text(json.dumps({"items": [item]}), encoding="utf-8")

    yield at
    path.unlink()


def test_as_long_as_ghost_text_has_the_tab_key_the_hint_does_not_claim_it(window, suggest):
    hint = "↓ next edit: line 126 (Tab)"
    far = edit(125, 6, 10, "area")
    offered(window, far, text=TEXT.replace("print", SPACES + "print"))
    shows(window, hint)
    suggest(0, len("# shapes.."), " and solids")
    answer(window, far, id="two")
    window.type(".")
    window.shows(" and solids")
    told = "textDocument/didShowInlineEdit"
    window.until(lambda: heard(window, told)["item"]["command"]["arguments"] == ["two"], "the offer")
    shows(window)
    window.press("Escape")
    window.shows("")
    shows(window, hint)


def test_answer_for_an_older_version_is_not_shown(window):
    offered(window, {**FIRST, "ahead": -1})
    heard(window, "mercury/nextEdit")
    window.run("mercury-ls.suggest")  # answered after it
    assert window.marks == []


def test_settings_of_others_take_nothing_away(window):
    hold = window.folder / "hold"
    hold.touch()
    try:
        offered(window, FIRST)
        heard(window, "mercury/nextEdit")
        window.js(SET, {"name": "editor.fontLigatures", "value": True})
    finally:
        hold.unlink()
    shows(window, "hight", "height")
    window.js(SET, {"name": "editor.fontLigatures"})
    window.press("Tab")
    window.has(typed(TEXT.replace("hight", "height")))


SET = """
    const heard = new Promise((done) => vscode.workspace.onDidChangeConfiguration(done));
    await vscode.workspace.getConfiguration().update(given.name, given.value, true);
    await heard;
"""


def test_turned_off_nothing_is_asked(window):
    window.set("mercury-ls.nextEdit.enabled", False)
    offered(window, FIRST)
    window.js("await new Promise((done) => setTimeout(done, 700))")
    assert messages(window, "mercury/nextEdit") == []
