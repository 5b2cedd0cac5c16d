"""A server that hangs ends by itself, and one that works or waits does not."""

import subprocess
import sys

import pytest

HANGING = """
import asyncio, os, re
from mercury_ls.lsp.watchdog import watch

async def serve():
    watch(asyncio.get_running_loop(), seconds=0.2)
    await asyncio.sleep({rest})
    {work}
    os._exit(7)  # ending in good order takes its time on a busy machine, and is watched

asyncio.run(serve())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rest", "work", "code"),
    [
        (0, "re.fullmatch('(a|a)*b', 64 * 'a')", 1),
        (0, "while True: pass", 1),
        (0, "await asyncio.sleep(0)", 7),
        (1.1, "await asyncio.sleep(0)", 7),
    ],
)
def test_watchdog_ends_what_hangs(rest, work, code):
    program = HANGING.format(rest=rest, work=work)
    ended = subprocess.run([sys.executable, "-c", program], stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert ended.returncode == code
    assert (b"Timeout" in ended.stderr) == (code == 1), "the log says where it was"
