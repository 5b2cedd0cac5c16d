import pytest

from mercury_engine.api import InfillRequest, Span, Window
from mercury_ls.link.client import EngineUnavailable


class NoReplicas:
    """A handle of a deployment without engines: each request, and its cancellation, say so."""

    def __init__(self, error):
        self.error = error
        self.answer = self

    def options(self, **_):
        return self

    def remote(self, *_):
        return self

    def __aiter__(self):
        return self

    async def __anext__(self):
        raise self.error

    def cancel(self):
        raise self.error


@pytest.mark.filterwarnings("ignore")
async def test_without_engines_a_request_is_told_so(monkeypatch):
    exceptions = pytest.importorskip("ray.serve.exceptions")
    from mercury_ls.team import engines

    monkeypatch.setattr(engines, "BETWEEN_TRIES_SECONDS", 0)
    place = engines.Place(NoReplicas(exceptions.DeploymentUnavailableError("engine")))
    request = InfillRequest(session="", windows=(Window("a.py", "python", "x = "),), spans=(Span(0, 4, 4, "line"),))
    with pytest.raises(EngineUnavailable, match="5 engines were lost"):
        async for _ in engines.ReplicatedEngine(place).infill(request):
            pass
