"""A stronger model is offered in a message beside the code, and answers after a yes."""

import os
import sys
from contextlib import closing

import pytest

from bench.harness.stand_in_hub import StandIn, serving
from bench.harness.tiny import checkpoint
from tests.e2e.environment import home, stop_engine
from tests.editors.scenes import SHOP
from tests.editors.vscode.codeserver import CodeServer
from tests.mercury_ls.models import stand_in_machine

pytestmark = [pytest.mark.editor, pytest.mark.slow]


def test_stronger_model_is_offered_installed_and_used(package, browser, tmp_path):
    made = checkpoint(tmp_path / "made")
    files = {path.name: path.read_bytes() for path in made.iterdir()}
    (house := tmp_path / "h").mkdir()
    (project := tmp_path / "project").mkdir()
    command = [sys.executable, stand_in_machine.__file__]
    with serving(StandIn(files, "org/Tiny-Coder")) as hub:
        variables = home(house, HF_ENDPOINT=hub.address, PYTHONPATH=os.getcwd())
        del variables["MERCURY_ENGINE_MODEL"]
        with (
            closing(CodeServer(tmp_path / "vs", variables, command=command)) as server,
            closing(server.window(browser, project)) as window,
        ):
            try:
                follow(window, hub)
            finally:
                stop_engine(variables)


def follow(window, hub):
    window.ready()
    window.open(SHOP.before[:-1])
    window.type(SHOP.before[-1])
    window.first_ghost(SHOP.before[-1])
    question = "this machine can run a stronger model: org/Tiny-Coder"
    window.until(lambda: any(question in message for message in window.messages), "the question")
    assert not hub.asked
    window.answer("Install")
    window.until(lambda: any("org/Tiny-Coder suggests from now on" in each for each in window.messages), "the end")
    window.until(lambda: "tiny-coder" in window.status and "Ready" in window.status, "it")
