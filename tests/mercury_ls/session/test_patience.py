from mercury_ls.session.patience import FORGETTING_SECONDS, LEAST, MOST, Patience


def test_rejections_lengthen_the_wait_and_accepts_shorten_it_within_bounds():
    patience = Patience()
    assert patience.at(5.0) == 1.0
    patience.rejected(5.0)
    assert patience.at(5.0) == 1.5
    for _ in range(100):
        patience.rejected(5.0)
    assert patience.at(5.0) == MOST
    for _ in range(100):
        patience.accepted(5.0)
    assert patience.at(5.0) == LEAST


def test_patience_is_as_usual_again_within_the_hour():
    patience = Patience()
    for _ in range(5):
        patience.rejected(0.0)
    assert patience.at(6 * FORGETTING_SECONDS) < 1.05
