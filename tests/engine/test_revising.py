"""What the user will make of several regions next, as an engine answers it that was taught to edit."""

import math

import pytest
from msgspec.structs import replace

from mercury_engine.api import Edit, Mention, Region, Regions, Rewrites
from mercury_engine.tokens import revisions
from mercury_engine.tokens.tokenizer import LINE
from tests.engine.tiny import DOCUMENT, TOKENIZER, engine, random_runtime

EDIT = Edit(
    "shapes.py", 2, "class Form:\n", "class Shape:\n", above="import math\n", mentions=(Mention("b.py", 4, "Form()\n"),)
)


def region(old: str, **fields) -> Region:
    above, below = DOCUMENT.split(old) if old in DOCUMENT else ("", "")
    return Region(
        "shapes.py", "python", old, "".join(LINE.findall(above)[-4:]), "".join(LINE.findall(below)[:4]), **fields
    )


ASKED = Regions(
    session="s",
    edits=(EDIT,),
    regions=(region("        self.height = height\n"), region("        return self.width * self.height\n")),
    cursor=0,
)


def final(asked: Regions, answering=None) -> Rewrites:
    *_, last = (answering or engine(random_runtime())).rewrite(asked)
    assert last.final
    return last


def test_regions_have_a_text_and_the_chance_that_they_stay():
    answer = final(ASKED)
    assert len(answer.regions) == 2
    for rewritten in answer.regions:
        assert 0.0 < rewritten.p_keep < 1.0
        assert rewritten.complete


def test_lines_of_which_no_change_is_likely_stay():
    """A model that knows nothing finds all that it may write as unlikely."""
    answer = final(ASKED)
    assert [(rewritten.text, rewritten.p_accept) for rewritten in answer.regions] == [
        (asked.old, 0.0) for asked in ASKED.regions
    ]


def test_regions_do_not_depend_on_each_other():
    together = final(ASKED)
    for number, asked in enumerate(ASKED.regions):
        alone = final(replace(ASKED, regions=(asked,))).regions[0]
        assert alone.p_keep == pytest.approx(together.regions[number].p_keep, rel=1e-3)


def test_lines_that_are_not_read_to_their_end_stay():
    long = f"        self.width = {'1 + ' * 60}1\n"
    answer = final(replace(ASKED, regions=(region(long),)))
    assert (answer.regions[0].text, answer.regions[0].p_keep) == (long, 0.0)


def test_without_time_nothing_changes():
    answer = final(replace(ASKED, deadline_ms=0.0))
    assert [rewritten.text for rewritten in answer.regions] == [asked.old for asked in ASKED.regions]


def test_old_lines_are_judged_as_they_were_taught():
    """The same row as training makes, read in one forward."""
    answer = final(replace(ASKED, regions=ASKED.regions[:1]))
    ids, here = revisions.past(TOKENIZER, ASKED.edits, ASKED.regions[0])
    asked = ASKED.regions[0]
    question = [*ids, *revisions.question(TOKENIZER, asked, here)]
    answer_ids = revisions.answer(TOKENIZER, asked.old)
    logs = _logs([*question, *answer_ids])
    expected = sum(logs[len(question) - 1 + at][token] for at, token in enumerate(answer_ids))
    assert math.log(answer.regions[0].p_keep) == pytest.approx(expected, rel=1e-3)


def _logs(ids):
    import numpy as np

    from mercury_engine.model.runtime import Rows

    runtime = random_runtime()
    forward = runtime.forward(Rows(np.array(ids, np.int32), np.arange(len(ids), dtype=np.int32)), runtime.cache())
    logits = np.asarray(forward.logits_WV, np.float64)
    return (
        logits
        - logits.max(1, keepdims=True)
        - np.log(np.exp(logits - logits.max(1, keepdims=True)).sum(1, keepdims=True))
    )


def test_rewriting_is_announced_where_there_is_an_adapter():
    runtime = random_runtime()
    for runtime.edits in (False, True):
        info = engine(runtime).info()
        assert info.rewrites == info.rewrites_lines == runtime.edits


def test_rewriting_reads_with_the_adapter():
    runtime = random_runtime()
    caches, new_cache = [], runtime.cache
    runtime.cache = lambda *, edits=False: caches.append(edits) or new_cache()
    answering = engine(runtime)
    caches.clear()
    final(ASKED, answering)
    assert caches == [True]
