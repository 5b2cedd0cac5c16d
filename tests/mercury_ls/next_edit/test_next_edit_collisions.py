"""Names that are spelled alike and are not the same: what must be left alone when one of them changes."""

from mercury_ls.code.documents import Document
from mercury_ls.code.modules import Project
from mercury_ls.next_edit.kinds import trim
from tests.marked import marked
from tests.mercury_ls.next_edit.next_edit_scenarios import Scenario
from tests.mercury_ls.next_edit.test_pipeline import check, last_of, question_of


async def test_added_lines_have_the_line_ends_of_the_others():
    drawn = (
        "def a(one):\r\n⟦    log(one, x)\r\n→    if x:\r\n        log(one, x, 1)\r\n⟧"
        "\r\n\r\ndef c(three):\r\n⟦    log(three, x)\r\n→    if x:\r\n        log(three, x, 1)\r\n⟧$0"
        "\r\n\r\ndef b(two):\r\n    «log(two, x→if x:\r\n        log(two, x, 1»)\r\n"
    )
    await check(Scenario("line ends", "python", drawn))


async def test_another_file_knows_a_function_by_its_module():
    text = 'import file\nimport json\n\nfile.load("a", "r")\njson.load(path, cls)\n'
    other = Document("file:///project/other.py", "/project/other.py", "python", 3, text).snapshot()
    drawn = "def load(path⟦, mode→⟧$0):\n    return open(path)\n"
    answer = await last_of(question_of(drawn, "python", neighbours=(other,)))
    assert [(edit.uri, text[edit.start : edit.end]) for edit in answer.edits] == [(other.uri, ', "r"')]


def test_long_run_of_blanks_is_seen_once():
    snapshot, _ = marked(f"y = 2  \ntext = 'a{' ' * 200_000}b'\n$0")
    places = trim.find(trim.Trim(), snapshot, snapshot, Project())
    assert [(place.start, place.end) for place in places] == [(5, 7)]
