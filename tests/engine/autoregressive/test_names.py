"""Names that exist compete in other people's autoregressive models, for who asks by hand."""

import pytest

from mercury_engine.api import Members
from tests.engine.autoregressive.models import engine, random_runtime
from tests.engine.tiny import FLAT, STEEP, final, gap

NAMES = ("width", "height", "with_name")
HERE = Members("", NAMES, (0, 0, 0))


def answered(members=(), marked="return self.$0\n", **options):
    asked = gap(marked, members=members, effort="medium", most_tokens=12, invoked=True)
    return final(engine(random_runtime(), **options), asked)


@pytest.mark.parametrize("costs", [FLAT, STEEP])
def test_answer_begins_with_name_that_exists(costs):
    assert not answered(costs=costs).text.startswith(NAMES)
    assert answered((HERE,), costs=costs).text.startswith(NAMES)


def test_begun_name_is_finished():
    assert answered((HERE,), "return self.wi$0\n").text.startswith(("dth", "th_name"))


def test_drafts_change_nothing_where_names_compete():
    plain, drafted = (answered((HERE,), drafting=drafting) for drafting in (False, True))
    assert drafted.text == plain.text
    assert drafted.confidence == pytest.approx(plain.confidence, rel=1e-3, abs=1e-5)


def test_names_known_elsewhere_change_nothing():
    assert answered((Members("other", ("width",), (0,)),)).text == answered().text
