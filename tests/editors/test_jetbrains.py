"""The template for LSP4IJ names the server and every language of ours, and what it draws and inserts is right."""

import json

import pytest

from mercury_ls.cli.parser import parser
from mercury_ls.code.edits import TextEdit
from mercury_ls.code.languages import LANGUAGES, Language
from mercury_ls.lsp.inline import as_insertion
from tests.editors.documented import EDITORS
from tests.editors.lsp4ij import Ghost, Lsp4ij
from tests.mercury_ls.lsp.test_server import Client

TEMPLATE = json.loads((EDITORS / "jetbrains/template.json").read_text(encoding="utf-8"))
MAPPINGS = {mapping["languageId"]: mapping["fileType"] for mapping in TEMPLATE["fileTypeMappings"]}


def test_plugin_starts_the_server_on_every_system():
    assert TEMPLATE["programArgs"].keys() == {"default", "windows"}
    for command in TEMPLATE["programArgs"].values():
        program, *arguments = command.removeprefix('sh -c "').removesuffix('"').split()
        assert program.removesuffix(".exe") == "mercury-ls"
        assert parser().parse_args(arguments).stdio


def test_plugin_knows_no_other_language():
    assert MAPPINGS.keys() == {language.id for language in LANGUAGES}


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.id)
def test_plugin_takes_the_files_of_a_language(language: Language):
    patterns = [*(f"*{extension}" for extension in language.extensions), *language.filenames]
    assert MAPPINGS[language.id]["patterns"] == patterns


LINES = "def total(item):\n    return tax(item.price)\n\n\ndef paid(item):\n    "
REST = "return tax(item.price)"


@pytest.fixture
async def ide(tmp_path):
    client = Client(tmp_path)
    yield Lsp4ij(client)
    await client.server.close()


@pytest.mark.parametrize("behind", ["", "  ", "\n", "  \n\nprint(paid)\n"], ids=repr)
async def test_drawn_text_is_what_accepting_makes_of_the_text(ide, behind):
    await ide.open(LINES + behind, len(LINES))
    assert await ide.pause() == Ghost("", REST)
    ide.accept()
    assert ide.text == LINES + REST + behind


async def test_another_client_is_told_what_is_replaced(ide):
    await ide.open(LINES + "  \n", len(LINES), {"name": "other", "version": "1"})
    assert await ide.pause() == Ghost("  ", REST)


def check_insertion(marked: str, text: str, wanted: str | None):
    """What `text` inserts at `$0` where it replaces what stands between `«` and `»`."""
    plain = marked.replace("«", "").replace("»", "")
    cursor, whole = plain.index("$0"), plain.replace("$0", "")
    start, end = marked.replace("$0", "").index("«"), marked.replace("$0", "").index("»") - 1
    insertion = None if wanted is None else TextEdit(cursor, cursor, wanted)
    assert as_insertion(TextEdit(start, end, text), whole, cursor) == insertion


def test_insertions_at_the_cursor_alone_are_served():
    check_insertion("f(«$0»)", "x", "x")
    check_insertion("f(«$0)»", "x)", "x")
    check_insertion("«f($0)»", "f(x)", "x")
    check_insertion("f(«$0)»", "x) + 1", None)
    check_insertion("f(«$0old»)", "new", None)
    check_insertion("«g($0»)", "f(x", None)
    check_insertion("f($0«a»)", "b", None)
    check_insertion("x = «$0  »", "1", "1")


async def test_requests_wait_for_a_pause_and_typed_text_counts(ide):
    await ide.open(LINES, len(LINES))
    ide.type("return tax(")
    assert [m for m in ide.client.sent if "items" in str(m)] == []
    assert await ide.pause() == Ghost("", "item.price)")


async def test_acceptance_is_learned_from_the_text_alone(ide):
    await ide.open(LINES + "  \n", len(LINES))
    await ide.pause()
    ide.accept()
    await ide.client.request("mercury/status", {})
    fates = ide.client.server.session.questions.outcomes._all.values()
    assert [(fate.kept, fate.shown) for fates in fates for fate in fates] == [(True, True)]
