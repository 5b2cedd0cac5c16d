"""Names as they are written in a text and in the other files of its project, without any analyser."""

from pathlib import Path

import pytest

from mercury_ls.code.documents import Document
from mercury_ls.names.members import NameSources
from mercury_ls.names.written import WrittenNames
from mercury_ls.project.privacy import Privacy
from mercury_ls.project.workspace import Workspace
from mercury_ls.settings.schema import ContextSettings, PrivacySettings
from tests.cases import each_case, files_in

HERE = Path(__file__).parent
FILES = files_in((HERE / "project.txt").read_text("utf-8"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="module")
def workspace(folder):
    workspace = Workspace([folder], Privacy(PrivacySettings(), [folder]), ContextSettings())
    while workspace.step(0.0):
        pass
    return workspace


@pytest.fixture
def check(folder, workspace):
    """At `$0` of a text of the project these names are known of a role, in any order; `-name` is not among them."""

    async def check(path, marked, role, expected):
        text, offset = marked.replace("$0", ""), marked.index("$0")
        snapshot = Document(f"file://{folder}/{path}", f"{folder}/{path}", "", 1, text).snapshot()
        names = NameSources(reader=WrittenNames(workspace))
        assert names.about(snapshot, offset) == () or role != "scope"
        names.look_ahead(snapshot, offset)
        await names.settled()
        (found,) = [each for each in names.about(snapshot, offset) if each.role == role and not each.receiver] or [None]
        known = set(found.names) if found else set()
        wanted = set(expected.split())
        assert {name for name in wanted if name[0] != "-"} <= known
        assert known.isdisjoint(name[1:] for name in wanted)
        assert role == "scope" or expected or not known
        await names.close()
        return found

    return check


@each_case(HERE / "written.txt")
async def test_names_of_a_place_are_known(check, case):
    path, role, *complete = case.key.split()
    found = await check(path, case.drawn, role, case.expected.replace("nothing", ""))
    if role in ("member", "scope"):
        assert (found is not None and found.complete) == bool(complete)


@pytest.mark.parametrize("marked", ["# see $0\n", "x = 'a.$0'\n"])
async def test_comments_and_strings_have_no_names(check, marked):
    for role in ("member", "scope", "keyword", "import"):
        await check("shop/a.py", marked, role, "")
