"""Chooses the model that suggests: it must load, and the running engine makes way."""

import time
from collections.abc import Callable

from mercury_engine import model_folders
from mercury_engine.api import EngineError, EngineInfo
from mercury_ls.link.wire import Status
from mercury_ls.serve import added, daemon
from mercury_ls.serve.models import Report
from mercury_ls.settings.schema import Settings

PATIENCE_SECONDS = 2.0
"""An editor that lost its engine starts the next one at once."""
LOADING_SECONDS = 60.0
POLL_SECONDS = 0.1


def check(name: str, settings: Settings, report: Report) -> EngineInfo:
    """Loads the model once; `EngineError` says what it lacks."""
    with added.opened(name, settings, report) as engine:
        return engine.info()


def switch(
    name: str,
    status: Callable[[], Status | None] = daemon.status,
    stop: Callable[[], bool] = daemon.stop,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Ends the running engine server. Editors start another one, with the model that their settings name now; its name,
    if it is another than the one chosen, else ""."""
    if not stop():
        return ""
    status_now = None
    for _ in range(int(PATIENCE_SECONDS / POLL_SECONDS)):
        if status_now := _current(status):
            break
        sleep(POLL_SECONDS)
    for _ in range(int(LOADING_SECONDS / POLL_SECONDS)):
        if status_now is None or status_now.state not in ("starting", "loading"):
            break
        sleep(POLL_SECONDS)
        status_now = _current(status)
    if status_now is None or status_now.info is None or model_folders.answers(name, status_now.info):
        return ""
    return model_folders.FAKE if status_now.info.engine == model_folders.FAKE else status_now.info.model


def _current(status: Callable[[], Status | None]) -> Status | None:
    try:
        return status()
    except (OSError, EngineError):
        return None
