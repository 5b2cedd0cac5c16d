"""Names that exist compete where an answer reaches a place for one, and the model chooses among them."""

import numpy as np
import pytest
from msgspec.structs import replace

from mercury_engine.api import Members
from mercury_engine.decode.choice import Choice, Chooser
from mercury_engine.decode.names import KnownNames, NameCandidate
from mercury_engine.decode.rivals import Rivals, is_settled, rivals
from mercury_engine.model.config import TINY
from mercury_engine.tokens.layout import freeze, lay_out
from mercury_engine.tokens.prefix import Prefix
from tests.engine.autoregressive import models as added
from tests.engine.tiny import BUDGET, TOKENIZER, engine, final, gap, random_runtime

EFFORTS = ("low", "medium", "high")
HERE = Members("", ("width", "height", "with_name"), (0, 0, 0))


def answered(members=(), effort="low", marked="return self.$0\n"):
    asked = gap(marked, members=members, effort=effort, invoked=True)
    return final(added.engine(added.random_runtime()), asked).text


@pytest.mark.parametrize("effort", EFFORTS)
def test_answer_begins_with_name_that_exists(effort):
    assert not answered(effort=effort).startswith(HERE.names)
    assert answered((HERE,), effort).startswith(HERE.names)


def test_names_only_end_an_answer_while_typing():
    writes = added.Scripted("return self.colour")
    assert final(added.engine(writes), gap("return self.$0\n")).text == "colour"
    assert final(added.engine(writes), gap("return self.$0\n", members=(HERE,))).text == ""


def test_names_only_end_answers_of_a_model_of_ours():
    asked = gap("return self.$0\n")
    assert final(engine(random_runtime()), asked).text
    assert final(engine(random_runtime()), replace(asked, members=(HERE,))).text == ""


def test_most_used_name_wins_among_likeliest():
    for name in ("width", "height"):
        uses = tuple(10**12 * (other == name) for other in HERE.names)
        assert answered((Members("", HERE.names, uses),)).startswith(name)


def test_names_that_need_not_follow_take_part_at_higher_efforts():
    scope = Members("", ("width", "height"), (10**12, 0), role="scope")
    named = [
        KnownNames.of(TOKENIZER, gap("x = $0", members=(scope,), effort=effort, invoked=True), " ")
        for effort in EFFORTS
    ]
    token = TOKENIZER.encode(" width")[0]
    assert [len(each.candidates(b"", b" ", token)) for each in named] == [0, 2, 2]


def test_without_names_nothing_changes():
    assert answered((Members("other", ("width",), (0,)),)) == answered()


def test_names_that_begin_alike_all_compete():
    chooser, logits = Chooser(TOKENIZER, TINY.vocabulary), np.zeros(TINY.vocabulary, np.float32)
    alike = [NameCandidate((300, 301 + number)) for number in range(9)]
    others = [NameCandidate((400 + number,), number) for number in range(12)]
    assert len(rivals(alike, logits, b"", chooser).candidates) == 9
    assert [each.evidence for each in rivals(others, logits, b"", chooser).candidates] == [11, 10, 9, 8, 7, 6, 5, 4]


def test_name_that_model_is_sure_of_needs_no_comparison():
    names = [NameCandidate((300, 1)), NameCandidate((300, 2)), NameCandidate((400,))]
    assert is_settled(names, Choice(400, 0.95))
    assert not is_settled(names, Choice(400, 0.5))
    assert not is_settled(names, Choice(300, 0.95))
    assert not is_settled(names, Choice(500, 0.95))


def test_names_side_by_side_have_the_probabilities_that_each_has_alone():
    asked, runtime = gap("return self.$0\n"), random_runtime()
    row = lay_out(TOKENIZER, asked, freeze(TOKENIZER, asked, BUDGET), BUDGET)
    prefix = Prefix.stream(row.ids)
    chooser = Chooser(TOKENIZER, TINY.vocabulary)
    candidates = [NameCandidate(tuple(TOKENIZER.encode("." + name))) for name in HERE.names]
    together = rivals(candidates, np.zeros(TINY.vocabulary, np.float32), b".", chooser)

    def extend(ids):
        behind = np.arange(len(ids)) + prefix.positions_R[-1] + 1
        return Prefix(np.append(prefix.ids_R, ids), np.append(prefix.positions_R, behind))

    def logits(competing: Rivals):
        return runtime.forward(competing.rows(prefix, 0, extend), runtime.cache()).logits_WV[1:]

    alone = [logits(Rivals((candidate,), together.first_V, b".")) for candidate in together.candidates]
    np.testing.assert_allclose(logits(together), np.concatenate(alone), atol=1e-3)
