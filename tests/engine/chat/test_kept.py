"""Requests of a kept process are limited by the processor's time, not by how busy the machine is."""

from mercury_engine.chat.kept import KeptProcess

CHILD = """\
import time
from mercury_engine.chat.kept import requests

for line in requests():
    while "busy" in line:
        pass
    if "waiting" in line:
        time.sleep(0.4)
    print("done", flush=True)
"""


def test_request_that_waits_is_answered_and_one_that_computes_for_ever_is_not(tmp_path, monkeypatch):
    (tmp_path / "patient_child.py").write_text(CHILD)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    process = KeptProcess("patient_child", 0.3)
    assert process.answer(b"waiting") == b"done\n"
    assert process.answer(b"busy") is None
    assert process.answer(b"next") == b"done\n"
    process.close()
