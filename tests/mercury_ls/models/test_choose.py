"""The running engine makes way for the model that was chosen, and whoever keeps another one is named."""

import pytest

from mercury_engine.api import EngineInfo
from mercury_ls.link.wire import Status
from mercury_ls.models.choose import switch


def ready(model, engine="test"):
    return Status("ready", info=EngineInfo(engine, model, "cpu", 2048))


@pytest.mark.parametrize(
    ("was_running", "statuses", "other"),
    [
        (False, [], ""),
        (True, [None] * 30, ""),
        (True, [None, Status("starting"), Status("loading"), ready("stand-in")], ""),
        (True, [OSError("not yet"), ready("qwen")], "qwen"),
        (True, [ready("copies", engine="fake")], "fake"),
        (True, [Status("unavailable", "no memory")], ""),
    ],
)
def test_settings_that_keep_another_model_are_named(was_running, statuses, other):
    left = iter(statuses)

    def status():
        found = next(left)
        if isinstance(found, Exception):
            raise found
        return found

    assert switch("stand-in", status, lambda: was_running, lambda seconds: None) == other
