import pytest

from mercury_ls.next_edit.ranking import can_be_shown


@pytest.mark.parametrize(("probability", "bar", "expected"), [(0.3, 0.5, True), (0.02, 0.6, False), (0.02, 0.0, True)])
def test_model_is_asked_where_what_it_writes_can_be_shown(probability, bar, expected):
    assert can_be_shown(probability, bar) is expected
