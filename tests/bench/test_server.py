import json
import sys

import pytest

from bench import server


@pytest.mark.slow
def test_server_is_started_typed_into_and_measured(monkeypatch, capsys):
    monkeypatch.setattr(server, "STARTS", 1)
    monkeypatch.setattr(server, "LINES", 50)
    monkeypatch.setattr(sys, "argv", ["server", "--keystrokes", "3"])
    server.main()
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert found["keystrokes"] == 3
    assert found["server_rss_mb"] > 10
    assert min(found["initialize_cpu_s"], found["inline_answer_ms"]) > 0
