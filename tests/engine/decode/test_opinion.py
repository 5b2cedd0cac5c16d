"""What an engine says of edits that others propose."""

import numpy as np
import pytest

from mercury_engine.api import Edit, Proposal, Proposals, Region
from mercury_engine.decode.opinion import LEAST, Opinion, read_history
from mercury_engine.model.runtime import Rows
from tests.engine.tiny import DOCUMENT, TOKENIZER, engine, gap, random_runtime

EDITS = (Edit("shapes.py", 2, "class Form:\n", "class Shape:\n", above="import math\n\n"),)


OLD = "        self.height = height\n"
ABOVE, _, BELOW = DOCUMENT.partition(OLD)
REGION = Region("shapes.py", "python", OLD, ABOVE, BELOW)


def proposals(*texts: str, **fields) -> Proposals:
    """Each for the line with the height."""
    proposed = tuple(Proposal(REGION, text) for text in texts)
    return Proposals(**{"session": "s", "edits": EDITS} | fields, proposals=proposed)


def last(answering, asked: Proposals) -> tuple[float | None, ...]:
    *_, opinions = answering.judge(asked)
    return opinions.likelihoods


def read_at_once(asked: Proposals, proposal: Proposal) -> float:
    """The same likelihood from one forward over everything."""
    runtime = random_runtime()
    opinion = Opinion.of(TOKENIZER, read_history(TOKENIZER, asked.edits), proposal)
    ids = opinion.ids
    forward = runtime.forward(Rows(ids, np.arange(len(ids), dtype=np.int32)), runtime.cache())
    logits_RV = np.asarray(forward.logits_WV, np.float64)
    logs_RV = logits_RV - np.log(np.exp(logits_RV).sum(axis=1, keepdims=True))
    return sum(max(LEAST, float(logs_RV[row, ids[row + 1]])) for row in range(opinion.anchor, len(ids) - 1))


def test_proposals_get_the_likelihoods_of_their_tokens():
    asked = proposals("        self.height = height or 1\n", "")
    for proposal, likelihood in zip(asked.proposals, last(engine(random_runtime()), asked), strict=True):
        assert likelihood == pytest.approx(read_at_once(asked, proposal), rel=1e-4)


def test_earlier_edits_are_read_only_once():
    answering = engine(random_runtime())
    edits = tuple(Edit("shapes.py", 2, "class Form:\n", f"class {name}:\n") for name in ("Shape", "Figure") * 4)
    last(answering, proposals("        self.height = 1\n", edits=edits))
    read = answering.report.actions["read"]
    last(answering, proposals("        self.height = 2\n", edits=edits))
    assert answering.report.actions == {"read": read, "opinion": 2}


def test_opinion_is_told_as_soon_as_it_is_there():
    told = [opinions.likelihoods for opinions in engine(random_runtime()).judge(proposals("pass\n", ""))]
    first, second = told[-1]
    assert (first, None) in told
    assert second is not None


def test_without_time_there_is_no_opinion():
    assert last(engine(random_runtime()), proposals("        pass\n", deadline_ms=0.0)) == (None,)


def test_completions_keep_their_place():
    answering, asked = engine(random_runtime()), gap(f"{DOCUMENT}def area($0)\n")
    list(answering.fill(asked))
    before = answering.report.prompts["awaited"]
    last(answering, proposals("        pass\n"))
    list(answering.fill(asked))
    assert answering.report.prompts["awaited"] - before <= 1
