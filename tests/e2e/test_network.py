"""No socket but the user's own: the whole product, with the network taken away."""

from pathlib import Path

import pytest

from tests import tiny_model
from tests.e2e.environment import home, stop_engine
from tests.e2e.raw import Raw

pytestmark = pytest.mark.slow

DENYING = """
import os, socket, sys

def deny(event, arguments):
    if event in ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto"):
        target = arguments[0] if event == "socket.getaddrinfo" else arguments[1]
        family = None if event == "socket.getaddrinfo" else arguments[0].family
        if family != getattr(socket, "AF_UNIX", None):
            with open(os.environ["DENIED_FILE"], "a") as file:
                file.write(f"{event} {target}\\n")
            raise OSError(f"the network was denied: {event} {target}")

sys.addaudithook(deny)
"""


@pytest.fixture
def denied(tmp_path):
    """An environment in which every internet socket is refused and written down."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(DENYING, encoding="utf-8")
    file = tmp_path / "denied"
    variables = home(tmp_path, PYTHONPATH=str(site), DENIED_FILE=str(file))
    yield variables, file
    stop_engine(variables)


async def use(variables: dict[str, str], root: Path, state: str, options=None) -> None:
    async with Raw(variables, root, options=options) as server:
        await server.until(state)
        uri = server.open("a.py", "total = compute(1)\nother = 2\ntotal = ")
        await server.inline(uri, 2, 8)


@pytest.mark.parametrize("model", ["fake", "of ours"])
async def test_network_is_unused_unless_configured(denied, project, model, tmp_path_factory):
    """Nor by a library: of a model's runtime, say."""
    variables, file = denied
    before = set(Path(variables["HOME"]).iterdir())
    named = model if model == "fake" else str(tiny_model.write(tmp_path_factory.mktemp("models")))
    await use({**variables, "MERCURY_ENGINE_MODEL": named}, project, "ready")
    assert not file.exists(), file.read_text(encoding="utf-8")
    left = {path.name for path in set(Path(variables["HOME"]).iterdir()) - before}
    assert left <= {"cache", "config", "data", "state"}


async def test_requests_go_to_configured_address(denied, project):
    variables, file = denied
    options = {"mercury": {"engine": {"address": "http://127.0.0.1:9"}}}
    await use(variables, project, "unavailable", options)
    assert "9" in file.read_text(encoding="utf-8")
