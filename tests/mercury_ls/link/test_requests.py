"""What a model is told of files and texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercury_engine.api import Diagnostic, Edit, Gap, Mention, Proposal, Proposals, Region, Regions, Snippet
from mercury_ls.link.requests import normalized
from mercury_ls.link.wire import encode


@pytest.mark.parametrize(
    ("roots", "window", "snippet"),
    [
        (["/home/me/project"], "src/a.py", "lib/b.py"),
        (["/home/me/project", "/home/me/project/src/"], "a.py", "lib/b.py"),
        (["/home/me/pro"], "a.py", "lib/b.py"),
        ([], "a.py", "lib/b.py"),
    ],
)
def test_model_is_told_where_file_lies_in_its_project(roots, window, snippet):
    path = "/home/me/project/src/a.py"
    gap = Gap(
        session="",
        path=path,
        language="python",
        before="",
        snippets=(Snippet("/home/other/lib/b.py", ""),),
        edits=(Edit(path, 0, "", "x", mentions=(Mention(path, 3, "x"),)),),
        diagnostics=(Diagnostic(path, 0, 0, "unknown"),),
    )
    told = normalized(gap, roots)
    assert (told.path, told.snippets[0].path) == (window, snippet)
    assert told.edits[0].path == told.edits[0].mentions[0].path == told.diagnostics[0].path == told.path
    assert told.root + told.path == path


def with_line_feeds(text):
    return text.replace("\r\n", "\n").replace("\r", "\n")


@given(st.text("a\r\n", max_size=12), st.data())
def test_model_reads_line_feeds_and_places_stay(text, data):
    at = data.draw(st.sampled_from([at for at in range(len(text) + 1) if text[at - 1 : at + 1] != "\r\n"]))
    noted = {
        "session": "",
        "snippets": (Snippet("c.py", "x\r\n"),),
        "edits": (Edit("b.py", 0, "a\r\n", "", "x\r\n", "y\r\n", True),),
    }
    gap = normalized(Gap(path="b.py", language="python", before=text[:at], after=text[at:], **noted), [])
    assert (gap.before, gap.after) == (with_line_feeds(text[:at]), with_line_feeds(text[at:]))
    assert gap.snippets == (Snippet("c.py", "x\n"),)
    assert gap.edits == (Edit("b.py", 0, "a\n", "", "x\n", "y\n", True),)
    region = Region("b.py", "python", text, text, text)
    regions = normalized(Regions(regions=(region,), cursor=at, **noted), [])
    unified = with_line_feeds(text)
    assert regions.regions == (Region("b.py", "python", unified, unified, unified),)
    assert regions.regions[0].old[: regions.cursor] == gap.before
    proposals = normalized(Proposals(proposals=(Proposal(region, text),), **noted), [])
    assert proposals.proposals == (Proposal(regions.regions[0], unified),)


def test_names_that_are_no_unicode_can_be_sent_to_the_engine():
    gap = Gap(
        session="",
        path="/p\udcff/a\udce9.py",
        language="\ud800",
        before="",
        snippets=(Snippet("/p\udcff/b\udce9.py", ""),),
    )
    assert b"a?.py" in encode(normalized(gap, ["/p\udcff"]))
