"""Names that exist compete where an answer reaches a member, and nowhere else."""

import numpy as np
import pytest

from mercury_engine.api import Members
from mercury_engine.decode.choice import Choice, Chooser
from mercury_engine.decode.names import Candidate, KnownNames, Rivals, is_settled, rivals
from mercury_engine.model.config import TINY
from mercury_engine.tokens.layout import freeze, lay_out
from mercury_engine.tokens.prefix import HintBuilder
from tests.engine.tiny import BUDGET, TOKENIZER, engine, final, random_runtime, request

SHAPE = Members("self", ("width", "height", "with_name"), (0, 0, 0))
HERE = Members("", ("width", "height", "with_name"), (0, 0, 0))


def candidates(head, said, following, members):
    """The names at `following`, after an answer to `head` has begun with what is `said`."""
    _, part = TOKENIZER.split_part(head)
    ids = TOKENIZER.encode(part + said) if said else []
    found = KnownNames(TOKENIZER, [members], head, part).candidates(ids, TOKENIZER.encode(following)[0])
    return [TOKENIZER.decode(candidate.path) for candidate in found]


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("return self.", [".width", ".height", ".with_name"]),
        ("return self.wi", [".width", ".with_name"]),
        ("return self.with_", ["_name"]),
        ("return f(x).", [").width", ").height", ").with_name"]),
        ("return self.nothing", []),
    ],
)
def test_at_the_cursor_names_go_on_with_what_is_typed(head, expected):
    assert candidates(head, "", ".", HERE) == expected


@pytest.mark.parametrize(
    ("said", "following", "expected"),
    [
        ("self", ".width", [".width", ".height", ".with_name"]),
        ("f(self", ".width", [".width", ".height", ".with_name"]),
        ("self", "(", []),
        ("myself", ".width", []),
        ("other.self", ".width", []),
        ("'self", ".width", []),
        ("x  # self", ".width", []),
        ("other", ".width", []),
    ],
)
def test_an_answer_reaches_a_member_behind_a_known_receiver(said, following, expected):
    assert candidates("return ", said, following, SHAPE) == expected


def test_underscores_at_the_end_are_left_to_the_model():
    assert candidates("super().", "", ".", Members("", ("__init__", "_"), (0, 0))) == ["().__init", "()._"]


def test_a_list_that_may_lack_names_leaves_others_free():
    some = Members("self", ("width",), (0,), complete=False)
    assert candidates("return ", "self", ".width", some) == [".width"]
    assert candidates("return ", "self", "._", some) == []


def answered(members=(), effort="low", marked="return self.$0\n"):
    return final(engine(random_runtime()), request(marked, members=members, effort=effort)).spans[0].text


@pytest.mark.parametrize("effort", ["low", "medium", "high"])
def test_an_answer_begins_with_a_name_that_exists(effort):
    assert not answered(effort=effort).startswith(HERE.names)
    assert answered((HERE,), effort).startswith(HERE.names)


def test_the_name_that_is_used_most_wins_among_the_likeliest():
    for name in ("width", "height"):
        uses = tuple(1_000_000 * (other == name) for other in HERE.names)
        assert answered((Members("", HERE.names, uses),)).startswith(name)


def test_without_names_and_for_sketches_nothing_changes():
    assert answered((Members("other", ("width",), (0,)),)) == answered()
    assert answered((HERE,), "instant") == answered((), "instant")


def test_names_that_begin_alike_all_compete():
    chooser, logits = Chooser(TOKENIZER, TINY.vocabulary), np.zeros(TINY.vocabulary, np.float32)
    alike = [Candidate((300, 301 + number), 0) for number in range(9)]
    others = [Candidate((400 + number % 5,), number) for number in range(9)]
    assert len(rivals(alike, logits, b"", chooser).candidates) == 9
    assert [each.uses for each in rivals(others, logits, b"", chooser).candidates] == [8, 7, 6, 5]


def test_a_name_that_the_model_is_sure_of_needs_no_comparison():
    names = [Candidate((300, 1), 0), Candidate((300, 2), 0), Candidate((400,), 0)]
    assert is_settled(names, Choice(400, 0.95))
    assert not is_settled(names, Choice(400, 0.5))
    assert not is_settled(names, Choice(300, 0.95))
    assert not is_settled(names, Choice(500, 0.95))


def test_names_side_by_side_have_the_probabilities_that_each_has_alone():
    asked, runtime = request("return self.$0\n"), random_runtime()
    row = lay_out(TOKENIZER, asked, freeze(TOKENIZER, asked, BUDGET), BUDGET)
    builder = HintBuilder.of(row, TOKENIZER, hints=TINY.hints)
    prefix = builder.build(row.ids, row.positions)
    chooser = Chooser(TOKENIZER, TINY.vocabulary)
    candidates = [Candidate(tuple(TOKENIZER.encode("." + name)), 0) for name in HERE.names]
    together = rivals(candidates, np.zeros(TINY.vocabulary, np.float32), b".", chooser)

    def logits(competing: Rivals):
        return runtime.forward(competing.rows(prefix, 0, builder), runtime.cache()).logits_WV

    alone = [logits(Rivals((candidate,), together.first_V, b".")) for candidate in together.candidates]
    np.testing.assert_allclose(logits(together), np.concatenate(alone), atol=1e-3)
