from mercury_ls.completion.gate import Gate


def test_the_bar_is_the_setting_until_something_happens():
    assert Gate(0.25).bar(0.0) == 0.25
    assert Gate(0.25).bar(10_000.0) == 0.25


def test_rejecting_raises_the_bar_and_accepting_brings_it_back_to_the_setting_and_no_lower():
    gate = Gate(0.25)
    gate.rejected(1.0)
    raised = gate.bar(1.0)
    for second in range(2, 9):
        gate.accepted(float(second))
    assert raised > 0.25 == gate.bar(9.0)


def test_a_guessed_refusal_weighs_less():
    guessed, said = Gate(0.25), Gate(0.25)
    guessed.rejected(0.0, weight=0.3)
    said.rejected(0.0)
    assert 0.25 < guessed.bar(0.0) < said.bar(0.0)


def test_the_bar_returns_to_the_setting_within_the_hour():
    gate = Gate(0.25)
    for _ in range(5):
        gate.rejected(0.0)
    assert abs(gate.bar(3600.0) - 0.25) < 0.01


def test_no_storm_of_refusals_silences_it_for_good():
    gate = Gate(0.25)
    for second in range(1000):
        gate.rejected(float(second))
    assert gate.bar(1000.0) <= 0.75
    assert Gate(0.9).bar(0.0) <= 0.95


def test_a_fixed_bar_stays():
    gate = Gate(0.25, adapts=False)
    gate.rejected(0.0)
    assert gate.bar(0.0) == 0.25


def test_who_wants_to_see_nothing_but_certainties_sees_them():
    gate = Gate(1.0)
    assert gate.bar(0.0) == 1.0
    gate.rejected(0.0)
    assert gate.bar(0.0) == 1.0
