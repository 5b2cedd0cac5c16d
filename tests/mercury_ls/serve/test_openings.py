"""A server knows what became of the last one that opened the model."""

import pytest

from mercury_engine.api import EngineError
from mercury_engine.fake import FakeEngine
from mercury_ls.serve.openings import Openings

MIB = 1 << 20


class Machine:
    """Its clock, its free memory, and the servers that open a model here."""

    def __init__(self, folder):
        self.folder, self.now, self.free = folder, 1_000_000.0, 700 * MIB
        self.attempts = 0

    def server(self, model="quicksilver"):
        return Openings(self.folder, model, free=lambda: self.free, clock=lambda: self.now)

    def opened(self, seconds, error=None, model="quicksilver"):
        """What the server says: its own error, one before it has tried, or nothing."""

        def load(report):
            self.attempts += 1
            self.now += seconds
            if error is not None:
                raise error
            return FakeEngine()

        try:
            self.server(model).noted(load)(lambda share, what: None)
        except EngineError as refusal:
            return str(refusal)
        return ""


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


ALLOC = EngineError("quicksilver cannot be opened (can't alloc)")


def test_failure_that_took_long_is_not_repeated_at_once(machine):
    assert machine.opened(36, ALLOC) == str(ALLOC)
    assert machine.opened(36, ALLOC).startswith(f"{ALLOC} (tried again at ")
    assert machine.attempts == 1
    machine.now += 60
    assert machine.opened(36, ALLOC) == str(ALLOC)
    machine.now += 60
    assert "(tried again at" in machine.opened(36, ALLOC)  # the second wait is longer
    machine.now += 240
    assert machine.opened(2) == ""
    assert machine.opened(36, ALLOC) == str(ALLOC)
    machine.now += 60
    assert machine.opened(2) == ""  # a success ended the row of failures


def test_more_memory_or_another_model_is_a_reason_to_try(machine):
    machine.opened(36, ALLOC)
    assert machine.opened(1, model="smaller") == ""
    machine.opened(36, ALLOC)
    machine.free = 900 * MIB
    assert machine.opened(2) == ""


def test_quick_failures_may_be_tried_as_often_as_the_user_likes(machine):
    damaged = EngineError("weights.safetensors is damaged: install it again")
    assert [machine.opened(1, damaged), machine.opened(1, damaged)] == [str(damaged)] * 2


def test_server_that_was_killed_while_opening_is_remembered(machine):
    with pytest.raises(SystemExit):  # as little as the process itself, it comes to no end
        machine.opened(1, SystemExit())
    assert "the last server was killed while it opened the model" in machine.opened(1)
    machine.now += 60
    assert machine.opened(1) == ""


def test_server_that_was_told_to_stop_while_opening_leaves_nothing(machine):
    server = machine.server()
    with pytest.raises(SystemExit):
        server.noted(lambda report: exit())(lambda share, what: None)
    server.close()
    assert machine.opened(1) == ""


def test_folder_that_cannot_be_written_and_notes_that_cannot_be_read_stop_nothing(machine, tmp_path):
    (tmp_path / "opening.json").write_text("{")
    assert machine.opened(1) == ""
    machine.folder = tmp_path / "none"
    assert machine.opened(1) == ""
