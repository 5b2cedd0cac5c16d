"""What forwards cost: measured within bounds at the start, completely while idle."""

import numpy as np
import pytest

from mercury_engine.decode.costs import CostMeter, measure_costs
from tests.engine.tiny import random_runtime


class Device:
    """A clock that each forward advances by the cost of its rows, in milliseconds, and the first one by more."""

    def __init__(self, *, each=0.0, row=1.0, preparing=0.0):
        self.now = 0.0
        self.forwards = []
        self._each, self._row, self._preparing = each, row, preparing
        self._runtime = random_runtime()
        self.config, self.cache = self._runtime.config, self._runtime.cache

    def padded(self, rows):
        return rows if rows < 3 else -(-rows // 4) * 4

    def forward(self, rows, cache):
        count = self.padded(len(rows.ids_R))
        first = self._preparing if count not in self.forwards else 0.0
        self.now += (self._each + self._row * count + first) / 1000
        self.forwards.append(count)
        return self._runtime.forward(rows, cache)

    def clock(self):
        return self.now


def test_measuring_times_forwards_of_every_size():
    device = Device(each=3.0, preparing=50.0)
    costs = measure_costs(device, clock=device.clock)
    assert costs.rows == (1, 2, 4, 8, 16, 32, 64, 128)
    assert costs.milliseconds == pytest.approx([3.0 + rows for rows in costs.rows])


def test_sizes_above_a_slow_one_are_not_measured_and_cost_in_proportion():
    device = Device(row=10.0)
    costs = measure_costs(device, clock=device.clock)
    assert costs.rows == (1, 2, 4, 8, 16)
    assert costs.of(64) == pytest.approx(640.0)


def test_start_measures_two_sizes_and_all_the_others_lie_between():
    device = Device(each=3.0, preparing=20.0)
    costs = CostMeter(device, clock=device.clock).start()
    assert costs.rows == (1, 32)
    assert costs.of(8) == pytest.approx(11.0)


def test_rows_cost_what_the_size_costs_to_which_they_are_padded():
    device = Device(each=3.0)
    costs = measure_costs(device, clock=device.clock)
    assert costs.of(np.array([1, 2, 3, 4, 5, 9, 128])) == pytest.approx([4.0, 5.0, 7.0, 7.0, 11.0, 15.0, 131.0])
    assert costs.of(160) == pytest.approx(131.0 * 160 / 128)
    assert costs.of(np.inf) == np.inf


@pytest.mark.parametrize("each", [1.0, 10.0, 100.0, 1000.0])
def test_start_on_busy_machine_takes_at_most_five_forwards_and_its_time(each):
    device = Device(each=each, preparing=each)
    assert CostMeter(device, clock=device.clock).start(seconds=0.2).of(32) == pytest.approx(each + 32)
    assert len(device.forwards) == 5 or device.now < 0.2 + (3 * each + 33) / 1000


def test_sizes_left_over_are_measured_one_forward_at_a_time():
    device = Device(each=3.0, preparing=20.0)
    meter = CostMeter(device, clock=device.clock)
    started = meter.start()
    before = len(device.forwards)
    counts = []
    for costs in meter.rest():
        counts.append(len(device.forwards) - before)
        assert costs.of(1) == started.of(1)
    assert max(np.diff(counts)) <= 2
    assert costs.milliseconds == pytest.approx([3.0 + rows for rows in (1, 2, 4, 8, 16, 32, 64, 128)])
