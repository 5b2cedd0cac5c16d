import random

import pytest

from bench.opinions import Judged, fit, report


def proposals(informative: bool) -> list[list[Judged]]:
    """Each row has one that the author made and one that nobody made; by rule they are as likely."""
    rng = random.Random(0)
    return [
        [Judged(0.0, rng.gauss(-5.0 if made and informative else -10.0, 2.0), made) for made in (True, False)]
        for _ in range(200)
    ]


@pytest.mark.parametrize(("informative", "least", "most"), [(True, 0.3, 3.0), (False, -0.1, 0.1)])
def test_weight_of_the_opinion_is_what_it_tells(informative, least, most):
    rows = proposals(informative)
    assert least < fit([proposal for row in rows for proposal in row])["likelihood"] < most
    losses = [float(line.split()[-1]) for line in report(rows)[1:]]
    assert (losses[1] < losses[0] - 0.1) == informative
