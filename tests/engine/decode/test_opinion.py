"""What an engine says of edits that others propose."""

import numpy as np
import pytest
from msgspec.structs import replace

from mercury_engine.api import Edit, InfillRequest, Span, Window
from mercury_engine.decode.opinion import Opinion, read_history
from mercury_engine.model.runtime import Rows
from tests.engine.tiny import DOCUMENT, TOKENIZER, engine, final, random_runtime, request

EDITS = (Edit("shapes.py", 2, "class Form:\n", "class Shape:\n", above="import math\n\n"),)


def proposals(*texts: str, **fields) -> InfillRequest:
    """Each for the line with the height."""
    old = "        self.height = height\n"
    start = DOCUMENT.index(old)
    spans = tuple(Span(0, start, start + len(old), "proposal", text=text) for text in texts)
    window = Window("shapes.py", "python", DOCUMENT)
    return InfillRequest(session="s", windows=(window,), spans=spans, edits=EDITS, **fields)


def read_at_once(asked: InfillRequest, span: Span) -> list[float]:
    """The same probabilities from one forward over everything."""
    runtime = random_runtime()
    opinion = Opinion.of(TOKENIZER, read_history(TOKENIZER, asked), asked, span)
    ids = opinion.ids
    forward = runtime.forward(Rows(ids, np.arange(len(ids), dtype=np.int32)), runtime.cache())
    logits_RV = np.asarray(forward.logits_WV, np.float64)
    probabilities_RV = np.exp(logits_RV) / np.exp(logits_RV).sum(axis=1, keepdims=True)
    return [float(probabilities_RV[row, ids[row + 1]]) for row in range(opinion.anchor, len(ids) - 1)]


def test_proposals_get_the_probabilities_of_its_tokens():
    asked = proposals("        self.height = height or 1\n", "")
    answer = final(engine(random_runtime()), asked)
    assert [filled.text for filled in answer.spans] == [span.text for span in asked.spans]
    for span, filled in zip(asked.spans, answer.spans, strict=True):
        assert filled.confidence == pytest.approx(read_at_once(asked, span), rel=1e-4)


def test_earlier_edits_are_read_only_once():
    answering = engine(random_runtime())
    edits = tuple(Edit("shapes.py", 2, "class Form:\n", f"class {name}:\n") for name in ("Shape", "Figure") * 4)
    list(answering.infill(replace(proposals("        self.height = 1\n"), edits=edits)))
    read = answering.report.actions["read"]
    list(answering.infill(replace(proposals("        self.height = 2\n"), edits=edits)))
    assert answering.report.actions == {"read": read, "opinion": 2}


def test_proposals_are_not_encoded_ahead():
    assert list(engine(random_runtime()).warm(proposals("        pass\n"))) == []


def test_without_time_there_is_no_opinion():
    answer = final(engine(random_runtime()), proposals("        pass\n", deadline_ms=0.0))
    assert [filled.confidence for filled in answer.spans] == [()]


def test_completions_keep_their_place():
    answering, asked = engine(random_runtime()), request(f"{DOCUMENT}def area($0)\n")
    list(answering.infill(asked))
    before = answering.report.prompts["awaited"]
    list(answering.infill(proposals("        pass\n")))
    list(answering.infill(asked))
    assert answering.report.prompts["awaited"] - before <= 1
