"""The whole way: what an editor sends and what it gets."""

import pytest
from lsprotocol import types as lsp

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

STORE = """\
def load(path):
    with open(path) as file:
        return file.read()


def reload(path):
    with open(path) as file:
        """


async def test_capabilities_say_what_server_can_do(editor):
    capabilities = editor.result.capabilities
    assert capabilities.inline_completion_provider is not None
    assert capabilities.position_encoding == "utf-16"
    assert capabilities.text_document_sync.change == lsp.TextDocumentSyncKind.Incremental
    assert capabilities.completion_provider is None
    assert "mercury.didAccept" in capabilities.execute_command_provider.commands
    assert not any("copilot" in command for command in capabilities.execute_command_provider.commands)


async def test_suggestion_continues_line(editor):
    uri = editor.open("store.py", STORE)
    (item,) = await editor.inline(uri, 7, 8)
    assert item.insert_text == "return file.read()"
    assert item.range == lsp.Range(lsp.Position(7, 8), lsp.Position(7, 8))
    assert item.command.command == "mercury.didAccept"
    assert len(item.command.arguments) == 1


async def test_positions_count_utf16_units(editor):
    uri = editor.open("astral.py", "a = '🐍🐍'; value = compute(1)\nb = '🐍🐍'; value = ")
    (item,) = await editor.inline(uri, 1, 20)
    assert item.insert_text.startswith("compute")
    assert item.range.start == lsp.Position(1, 20)


async def test_rejection_counts_once(editor):
    uri = editor.open("refuse.py", STORE)
    before = (await editor.request("mercury/status")).rejected
    (item,) = await editor.inline(uri, 7, 8)
    for _ in range(2):
        editor.client.protocol.notify("mercury/didReject", {"id": item.command.arguments[0]})
    assert (await editor.request("mercury/status")).rejected == before + 1


async def test_asked_by_hand_there_are_alternatives(editor):
    text = "total = price * quantity\ntotal = price * weight\nother = 1\ntotal = price * "
    uri = editor.open("cycle.py", text)
    items = await editor.inline(uri, 3, 16, invoked=True)
    assert {item.insert_text for item in items} == {"quantity", "weight"}


async def test_menu_entry_is_continued_in_its_own_range(editor):
    uri = editor.open("menu.py", "result = total + compute(alpha)\nother = 1\nresult = total + comp")
    entry = lsp.SelectedCompletionInfo(lsp.Range(lsp.Position(2, 17), lsp.Position(2, 21)), "compute")
    (item,) = await editor.inline(uri, 2, 21, selected_completion_info=entry)
    assert item.insert_text == "compute(alpha)"
    assert item.range == entry.range


async def test_private_files_get_nothing_and_give_nothing(editor):
    secret = editor.open("private.py", "password_of_the_house = compute_secret(1)\npassword_of_the_house = ")
    assert await editor.inline(secret, 1, 24) == []
    other = editor.open("public.py", "password_of_the_house = ")
    assert await editor.inline(other, 0, 24) == []
    told = await editor.request("mercury/why", textDocument={"uri": secret}, position={"line": 1, "character": 24})
    assert ".gitignore" in told.reason


async def test_settings_change_without_restart(editor):
    uri = editor.open("settings.py", STORE)
    change = editor.client.workspace_did_change_configuration
    change(lsp.DidChangeConfigurationParams({"mercury": {"suggest": {"enabled": False}}}))
    assert await editor.inline(uri, 7, 8) == []
    change(lsp.DidChangeConfigurationParams({"mercury": {"suggest": {"enabled": True}}}))
    assert await editor.inline(uri, 7, 8) != []


async def test_untitled_buffers_are_documents_too(editor):
    uri = editor.open("untitled:Untitled-1", STORE)
    (item,) = await editor.inline(uri, 7, 8)
    assert item.insert_text == "return file.read()"


async def test_cells_of_notebook_see_each_other(editor):
    first, second = (f"vscode-notebook-cell:{editor.root.as_posix()}/book.ipynb#W{n}" for n in (1, 2))
    cells = [lsp.NotebookCell(lsp.NotebookCellKind.Code, uri) for uri in (first, second)]
    texts = ["frame = read_table(source, header=None)\n", "frame = read_table("]
    editor.client.notebook_document_did_open(
        lsp.DidOpenNotebookDocumentParams(
            lsp.NotebookDocument((editor.root / "book.ipynb").as_uri(), "jupyter-notebook", 1, cells),
            [lsp.TextDocumentItem(u, "python", 1, t) for u, t in zip((first, second), texts, strict=True)],
        )
    )
    (item,) = await editor.inline(second, 0, 19)
    assert item.insert_text == "source, header=None)"
