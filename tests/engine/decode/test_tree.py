"""Drafts of several sources as one tree: what it holds, in which order, and where its verification stops."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mercury_engine.decode.drafts import DraftedTokens
from mercury_engine.decode.tree import DraftTree, grow, stops

SHARES = {("sure", 0): 0.8, ("unsure", 0): 0.4, ("hopeless", 0): 0.001}


def proposal(source, *ids, others=()):
    return DraftedTokens(source, ids, tuple(None if token == 9 else (source, 0) for token in ids), others=others)


def path(tree, number):
    """The numbers of the tokens up to and including one."""
    return [] if number < 0 else [*path(tree, tree.parents[number]), number]


def check(proposals, *paths):
    """The tree has these paths, each with the probability that it is reached, likeliest first."""
    tree = grow(proposals, lambda evidence: SHARES.get(evidence, evidence[1] / 10))
    grown = [
        ([tree.ids[at] for at in path(tree, number)], round(reached, 4)) for number, reached in enumerate(tree.reached)
    ]
    assert grown == list(paths)
    return tree


def test_draft_is_a_chain():
    tree = check([proposal("sure", 70, 71)], ([70], 0.8), ([70, 71], 0.64))
    assert tree.is_chain
    assert tree.depths == [0, 1]


def test_drafts_share_their_beginning_and_the_better_evidence_counts():
    tree = check(
        [proposal("sure", 70, 71), proposal("unsure", 70, 72)],
        ([70], 0.8),
        ([70, 71], round(0.8 * 0.8 / 1.2, 4)),
        ([70, 72], round(0.8 * 0.4 / 1.2, 4)),
    )
    assert tree.grounds[0] == (("sure", 0), ("unsure", 0))
    assert not tree.is_chain
    assert tree.depths == [0, 1, 1]
    assert list(tree.judged(0, 72)) == [(("sure", 0), False), (("unsure", 0), True)]


def test_token_without_an_alternative_is_certain():
    check([proposal("unsure", 70, 9, 71)], ([70], 0.4), ([70, 9], 0.4), ([70, 9, 71], 0.16))


def test_unlikely_tokens_are_left_out():
    check(
        [proposal("hopeless", 70, 71), proposal("unsure", *range(70, 90))],
        *((list(range(70, 70 + count)), round(0.4**count, 4)) for count in range(1, 5)),
    )


def test_alternatives_are_followed_by_the_same_tokens():
    others = (((60, 0.32),), ())
    check(
        [DraftedTokens("canvas", (70, 71), (("canvas", 6), ("canvas", 5)), (), others)],
        ([70], 0.6),
        ([70, 71], 0.3),
        ([60], 0.3),
        ([60, 71], 0.15),
    )


def test_next_token_is_found_where_it_was_drafted():
    tree = check([proposal("sure", 70), proposal("unsure", 71, 70)], ([70], 0.6667), ([71], 0.3333), ([71, 70], 0.1333))
    assert [tree.next(-1, 70), tree.next(-1, 71), tree.next(1, 70), tree.next(0, 70)] == [0, 1, 2, None]


def test_verification_stops_at_the_last_token_that_agrees():
    np.testing.assert_allclose(stops([0.8, 0.4, 0.1], [-1, 0, -1], [False] * 3), [0.1, 0.4, 0.4, 0.1])
    np.testing.assert_allclose(stops([0.8], [-1], [True]), [0.2, 0.0])


drafts = st.lists(st.lists(st.integers(70, 73), max_size=6).map(lambda ids: proposal("unsure", *ids)), max_size=4)


@given(drafts, st.integers(1, 9))
def test_tree_begins_with_smaller_ones_and_verification_stops_somewhere(proposals, level):
    tree = grow(proposals, lambda evidence: level / 10)
    assert list(tree.reached) == sorted(tree.reached, reverse=True)
    for count in range(len(tree.ids) + 1):
        head = tree.head(count)
        assert all(parent < number for number, parent in enumerate(head.parents))
        assert len({tuple(path(head, number)) for number in range(count)}) == count
    found = stops(tree.reached, tree.parents, [False] * len(tree.ids))
    np.testing.assert_allclose(found.sum(), 1.0, atol=1e-6)


def test_chain_of_given_tokens_is_certain():
    tree = DraftTree.chain([70, 71])
    assert (tree.parents, tree.reached, tree.grounds) == ((-1, 0), (1.0, 1.0), ((), ()))
