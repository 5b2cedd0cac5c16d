"""Nothing of a hidden file leaves for the engine, in whichever field it stands."""

import pytest
from msgspec.structs import replace

from mercury_engine.api import Diagnostic, Edit, EngineError, Gap, Mention, Region, Regions, Snippet
from mercury_ls.session.gate import Gate
from mercury_ls.settings.schema import SuggestSettings
from tests.mercury_ls.session.test_generations import Desk, Typist, settled

CANARY = "tOp-SeCrEt-42"
ASKED = Gap(session="s", path="/p/a.py", language="python", before="x = ", after="\n")


def cleared(request):
    return Gate(Desk(), lambda path: "a rule" if path.endswith(".env") else None).cleared(request)


@pytest.mark.parametrize(
    "fields",
    [
        {"snippets": (Snippet("/p/.env", CANARY),)},
        {"edits": (Edit("/p/.env", 0, CANARY, ""),)},
        {"edits": (Edit("/p/.env", 0, "", CANARY),)},
        {"edits": (Edit("/p/.env", 0, "a", "b", above=CANARY),)},
        {"edits": (Edit("/p/.env", 0, "a", "b", below=CANARY),)},
        {"edits": (Edit("/p/.env", 0, "a", "b", mentions=(Mention("/p/b.py", 0, CANARY),)),)},
        {"diagnostics": (Diagnostic("/p/.env", 0, 0, CANARY),)},
        {"edits": (Edit(f"/p/{CANARY}.env", 0, "a", "b"),)},
    ],
    ids=lambda fields: f"{next(iter(fields))}",
)
def test_hidden_file_parts_are_left_out(fields):
    kept = {"snippets": (Snippet("/p/b.py", "b = 1"),), "edits": (Edit("/p/b.py", 0, "a", "b"),)}
    request = replace(ASKED, **{name: (*fields.get(name, ()), *kept.get(name, ())) for name in {*fields, *kept}})
    told = cleared(request)
    assert CANARY not in repr(told)
    assert (told.snippets, told.edits) == (kept["snippets"], kept["edits"])


def test_lines_of_hidden_files_that_mention_a_name_are_left_out():
    shown = Mention("/p/c.py", 1, "load()")
    edit = Edit("/p/b.py", 0, "a", "b", mentions=(Mention("/p/.env", 0, CANARY), shown))
    told = cleared(replace(ASKED, edits=(edit,)))
    assert told.edits == (replace(edit, mentions=(shown,)),)


def test_request_about_hidden_file_is_refused():
    with pytest.raises(EngineError, match="the file is private: a rule"):
        cleared(replace(ASKED, path="/p/.env"))
    regions = (Region("/p/a.py", "python", "x"), Region("/p/.env", "sh", CANARY))
    with pytest.raises(EngineError, match="the file is private: a rule"):
        cleared(Regions(session="s", regions=regions, cursor=0))


def test_request_without_hidden_files_stays_the_same_object():
    request = replace(ASKED, edits=(Edit("/p/b.py", 0, "a", "b"),))
    assert cleared(request) is request


async def test_edits_of_a_file_that_gets_a_hidden_name_no_longer_leave():
    typist = Typist(Desk(), SuggestSettings(ahead="off"))
    other = "file:///project/config.py"
    typist.session.open(other, "/project/config.py", "python", 1, "TOKEN = ''\n")
    typist.session.change(other, 2, [((0, 9, 0, 9), CANARY)], "utf-16")
    typist.open("x = $0\n")
    await typist.ask()
    assert CANARY in repr(typist.desk.pens[0].gap)
    typist.desk.pens[0].write("other", final=True)
    await settled()
    typist.session.files.renamed("/project/config.py", "/project/.env")
    typist.type("1 ")
    await typist.ask(invoked=True)
    await settled()
    assert len(typist.desk.pens) == 2
    assert CANARY not in repr(typist.desk.pens[1].gap)
    await typist.session.end()
