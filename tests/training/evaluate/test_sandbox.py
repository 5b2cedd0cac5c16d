"""Programs in the sandbox reach nothing and use little; where it cannot be built, nothing runs."""

import json
import os
import platform
import shutil
import socket
import subprocess
import sys

import pytest

from mercury_training.evaluate import jail
from mercury_training.evaluate.sandbox import Limits, Sandbox, SandboxError


@pytest.fixture(scope="module")
def root():
    if platform.system() != "Linux" or os.geteuid() != 0:
        pytest.skip("namespaces need Linux and root")


@pytest.fixture(scope="module")
def sandbox(root):
    with Sandbox(Limits(seconds=20)) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def impatient(root):
    with Sandbox(Limits(seconds=0.4)) as sandbox:
        yield sandbox


@pytest.mark.parametrize(
    "program",
    [
        "assert 1 + 1 == 2",
        "import math, re, collections, typing, random, hashlib\nassert hashlib.md5(b'').hexdigest()",
        "def f():\n    return 1\nassert f() == 1 and __name__ == '__main__'",
        "open('mine', 'w').write('x')\nassert open('mine').read() == 'x'",
    ],
)
def test_finished_program_passes(sandbox, program):
    assert sandbox.run(program).verdict == "passed"


@pytest.mark.parametrize(
    ("program", "detail"),
    [
        ("assert 1 + 1 == 3", "AssertionError"),
        ("def f(:", "SyntaxError"),
        ("raise SystemExit(0)", "SystemExit"),
        ("import os; os._exit(0)", ""),
        ("import os; os.kill(os.getpid(), 9)", ""),
        ("import os\nfor fd in range(64):\n  try: os.write(fd, b'passed ')\n  except OSError: pass\nos._exit(0)", ""),
        ("import os; os.closerange(0, 64)", ""),
        ("input()", "EOFError"),
    ],
)
def test_everything_else_fails(sandbox, program, detail):
    outcome = sandbox.run(program)
    assert outcome.verdict == "failed"
    assert detail in outcome.detail


def refused(sandbox, program, *errors):
    """The program must meet one of the errors, and say so by passing."""
    caught = f"({', '.join(errors)},)"
    indented = "\n".join(f"    {line}" for line in program.split("\n"))
    outcome = sandbox.run(f"try:\n{indented}\nexcept {caught}:\n    pass\nelse:\n    raise SystemExit('it worked')")
    assert outcome.verdict == "passed", outcome


@pytest.mark.parametrize("host", ["1.1.1.1", "127.0.0.1"])
def test_network_is_unreachable(sandbox, host):
    refused(sandbox, f"import socket\nsocket.create_connection(({host!r}, 53), 5)", "OSError")


def test_server_on_host_cannot_be_reached(sandbox):
    with socket.create_server(("127.0.0.1", 0)) as server:
        refused(sandbox, f"import socket\nsocket.create_connection({server.getsockname()!r}, 5)", "OSError")


def test_files_of_the_user_are_not_there(sandbox, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("mine")
    secret.chmod(0o666)
    tmp_path.chmod(0o777)
    refused(sandbox, f"open({str(secret)!r}).read()", "FileNotFoundError")
    refused(sandbox, f"open({str(secret)!r}, 'w').write('yours')", "FileNotFoundError")
    refused(sandbox, "open('/etc/passwd').read()", "FileNotFoundError")
    assert secret.read_text() == "mine"


@pytest.mark.parametrize("path", ["/x", "/usr/lib/x", f"{sys.base_prefix}/x", "/dev/x"])
def test_private_folder_is_the_only_writable_place(sandbox, path):
    refused(sandbox, f"open({path!r}, 'w')", "OSError")


def test_programs_see_nothing_of_each_other(sandbox):
    assert sandbox.run("open('/tmp/left', 'w').write('x')\nimport builtins\nbuiltins.left = 1").passed
    refused(sandbox, "open('/tmp/left')", "FileNotFoundError")
    refused(sandbox, "left", "NameError")


def test_environment_is_not_inherited(sandbox, monkeypatch):
    monkeypatch.setenv("SECRET", "mine")
    with Sandbox(Limits(seconds=20)) as fresh:
        assert fresh.run("import os\nassert not os.environ").passed
    count = (
        "import os\nopen_ = 0\nfor fd in range(4096):\n  try: os.fstat(fd)\n  except OSError: continue\n  open_ += 1\n"
    )
    assert sandbox.run(count + "assert open_ == 4, open_").passed, "null three times, and the answer's"


def test_sandbox_user_is_another_one_without_rights(sandbox):
    check = "import os\nassert os.getuid() == os.geteuid() == os.getgid() > 60000 and not os.getgroups()"
    assert sandbox.run(check).passed
    refused(sandbox, "import os\nos.setuid(0)", "PermissionError")
    refused(sandbox, "import os\nos.chroot('/tmp')", "PermissionError")
    status = "import ctypes\nassert ctypes.CDLL(None).prctl(39, 0, 0, 0, 0) == 1"
    assert sandbox.run(status).passed, "no new privileges"
    for flag in (0x10000000, 0x20000, 0x40000000):
        assert sandbox.run(f"import ctypes\nassert ctypes.CDLL(None).unshare({flag}) == -1").passed


def test_other_processes_are_out_of_reach(sandbox):
    refused(sandbox, f"import os\nos.kill({os.getpid()}, 0)", "ProcessLookupError", "PermissionError")
    refused(sandbox, "import os\nos.kill(1, 9)", "PermissionError")


def test_memory_is_limited(sandbox):
    refused(sandbox, "x = bytearray(1 << 30)", "MemoryError")
    refused(sandbox, "x = []\nwhile True: x.append(bytes(1 << 20))", "MemoryError")


def test_files_are_limited(sandbox):
    refused(sandbox, "open('a', 'wb').write(bytes(2 << 20))", "OSError")
    refused(sandbox, "for i in range(99): open(str(i), 'wb').write(bytes(1 << 20))", "OSError")
    refused(sandbox, "kept = [open(str(i), 'w') for i in range(99)]", "OSError")


@pytest.mark.parametrize("loop", ["while True: pass", "import time; time.sleep(99)"])
def test_endless_loops_are_stopped(impatient, loop):
    assert impatient.run(loop).verdict == "timed out"


def test_fork_bomb_is_stopped_and_leaves_nothing(impatient, sandbox):
    bomb = "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass"
    assert impatient.run(bomb).verdict == "timed out"
    assert impatient.run("import os\nif not os.fork(): os._exit(0)\nos.wait()").passed
    refused(sandbox, "import os, time\nfor _ in range(99):\n  if not os.fork(): time.sleep(99)", "OSError")


def test_processes_left_running_are_killed(sandbox):
    assert sandbox.run("import os, time\nif not os.fork():\n  time.sleep(99)").passed
    fill = "import os, time\nfor _ in range(7):\n  if not os.fork(): time.sleep(99)"
    assert all(sandbox.run(fill).passed for _ in range(3))


def test_flood_of_output_does_no_harm(sandbox):
    assert sandbox.run("print('x' * 10_000_000)\nimport sys\nsys.stderr.write('y' * 10_000_000)").passed
    assert sandbox.run("raise ValueError('z' * 1_000_000)").verdict == "failed"


def test_machine_that_cannot_isolate_runs_nothing(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(SandboxError, match="unshare --map-root-user"):
        Sandbox()


def test_root_without_rights_is_told_what_failed(root, tmp_path):
    """As in a container: the bounding set lacks CAP_SYS_ADMIN."""
    command = [sys.executable, "-I", "-S", jail.__file__, str(tmp_path), json.dumps({})]
    drop = "import ctypes, os, sys; ctypes.CDLL(None).prctl(24, 21, 0, 0, 0); os.execv(sys.argv[1], sys.argv[1:])"
    found = subprocess.run([sys.executable, "-c", drop, *command], capture_output=True, text=True, cwd="/")
    assert json.loads(found.stdout) == {"error": "Operation not permitted in unshare"}


@pytest.mark.skipif(shutil.which("unshare") is None, reason="unshare is missing")
def test_place_where_user_cannot_be_changed_is_refused(root):
    """A user namespace with one id in it: root there, but nobody to become."""
    code = "from mercury_training.evaluate.sandbox import Sandbox; Sandbox()"
    command = ["unshare", "--map-root-user", sys.executable, "-c", code]
    found = subprocess.run(command, capture_output=True, text=True)
    assert "SandboxError: no sandbox here" in found.stderr
    assert "--map-auto" in found.stderr


def test_dead_sandbox_says_so(root):
    with Sandbox(Limits(seconds=20)) as fresh:
        fresh._server.kill()
        fresh._server.wait()
        with pytest.raises(SandboxError, match="ended"):
            fresh.run("pass")
