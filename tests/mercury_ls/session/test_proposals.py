"""Shapes of the code around the cursor go with a request, made from the files that the project's index knows."""

from contextlib import aclosing

import pytest

from mercury_engine.fake import FakeEngine
from mercury_ls.serve.in_process import InProcessClient
from mercury_ls.session.session import InlineRequest
from mercury_ls.session.wiring import Wiring


class Listening(FakeEngine):
    """A fake engine that keeps the last request."""

    def infill(self, request):
        self.request = request
        return super().infill(request)


@pytest.mark.parametrize("invoked", [False, True])
async def test_a_call_is_proposed_as_another_file_declares_its_function(tmp_path, invoked):
    (tmp_path / "shapes.py").write_text("def scaled(shape, factor):\n    return shape * factor\n")
    engine = Listening({"": "x"})
    client = InProcessClient(engine)
    await client.start()
    wiring = Wiring(user_file=tmp_path / "none", environ={}, make_engine=lambda settings, on_status: client)
    session = wiring.session([str(tmp_path)], {}, lambda status: None)
    while session.files.workspace.step(0.0):
        pass
    text = "from shapes import scaled\n\n\ndef f(shape, factor):\n    return scaled(\n"
    path = tmp_path / "use.py"
    session.open(path.as_uri(), str(path), "python", 1, text)
    async with aclosing(
        session.inline(InlineRequest(uri=path.as_uri(), offset=len(text) - 1, invoked=invoked))
    ) as found:
        async for _ in found:
            pass
    assert [each.text for each in engine.request.proposals] == ["shape, factor)"]
    await session.end()
