"""Whatever crosses a boundary of the product has a sender and a reader in it."""


def test_everything_that_is_sent_is_read_and_the_other_way_round():
    from tests.reach import UNUSED, unused  # parses the whole product

    assert sorted(unused()) == sorted(UNUSED), "remove what lost its other end, or say in UNUSED why it stays"
