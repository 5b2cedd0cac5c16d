import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from mercury_engine.api import PROTOCOL_VERSION
from mercury_ls.serve import local

HOLD_LOCK = """
import sys
from pathlib import Path
from mercury_ls.serve import local
try:
    with local.lock(Path(sys.argv[1])):
        print("held", flush=True)
        sys.stdin.read()
except local.AlreadyRunningError as error:
    print(error, flush=True)
"""


@pytest.fixture
def directory():
    """Short enough for a socket's path, which pytest's own directories need not be."""
    with tempfile.TemporaryDirectory(prefix="m") as path:
        yield Path(path)


def mode(path):
    return path.stat().st_mode & 0o777


def test_the_runtime_directory_is_made_private(directory):
    made = local.runtime_directory(str(directory / "run" / "mercury"))
    assert mode(made) == 0o700


def test_the_environment_chooses_the_runtime_directory(directory, monkeypatch):
    monkeypatch.setenv("MERCURY_LS_RUNTIME_DIR", str(directory / "there"))
    assert local.runtime_directory() == directory / "there"


def test_a_directory_that_others_can_enter_is_refused_with_a_remedy(directory):
    directory.chmod(0o750)
    with pytest.raises(local.PlacementError, match=f"mode 750.*chmod 700 {directory}"):
        local.runtime_directory(str(directory))


def test_a_directory_of_somebody_else_is_refused_with_a_remedy(directory, monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(local.PlacementError, match=r"not to you \(12345\).*MERCURY_LS_RUNTIME_DIR"):
        local.runtime_directory(str(directory))


def test_a_link_in_place_of_the_directory_is_refused(directory):
    (directory / "real").mkdir(mode=0o700)
    (directory / "link").symlink_to(directory / "real")
    with pytest.raises(local.PlacementError, match="no directory"):
        local.runtime_directory(str(directory / "link"))


def test_only_the_user_may_use_the_socket_and_its_name_has_the_protocol(directory):
    with local.listening(directory) as listener:
        (path,) = directory.iterdir()
        assert path.name == f"engine-v{PROTOCOL_VERSION}.sock"
        assert mode(path) == 0o600
        assert listener.token == ""
        assert local.address(directory).path == str(path)
    assert list(directory.iterdir()) == []


def test_a_stale_socket_is_replaced(directory):
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(local.address(directory).path)
    stale.close()
    with local.listening(directory) as listener:
        listener.socket.listen()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(local.address(directory).path)


def test_a_path_too_long_for_a_socket_is_refused_with_a_remedy(directory):
    deep = directory / ("d" * 90)
    deep.mkdir()
    with (
        pytest.raises(local.PlacementError, match=r"too long.*MERCURY_LS_RUNTIME_DIR"),
        local.listening(deep),
    ):
        pass


def test_without_unix_sockets_a_loopback_port_and_a_token_in_a_private_file_take_their_place(directory):
    with local.listening(directory, unix=False) as listener:
        address = local.address(directory, unix=False)
        (path,) = directory.iterdir()
        assert mode(path) == 0o600
        assert (address.host, address.port) == listener.socket.getsockname()
        assert address.token == listener.token
        assert len(listener.token) > 40
    with pytest.raises(FileNotFoundError):
        local.address(directory, unix=False)


def test_the_standing_token_is_made_once_and_is_private(directory, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(directory))
    monkeypatch.setenv("HOME", str(directory))
    token, path = local.standing_token()
    assert local.standing_token() == (token, path)
    path.write_text("\n")
    assert len(local.standing_token()[0]) > 30
    assert (mode(path), len(token)) == (0o600, 43)


def test_the_lock_is_for_one_process_and_names_it(directory):
    with local.lock(directory):
        other = subprocess.run(
            [sys.executable, "-c", HOLD_LOCK, str(directory)],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )
    assert f"process {os.getpid()}" in other.stdout
    assert "mercury-ls serve --stop" in other.stdout


def test_the_lock_of_a_killed_process_is_free(directory):
    command = [sys.executable, "-c", HOLD_LOCK, str(directory)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(local.AlreadyRunningError), local.lock(directory):
            pass
        process.kill()
    with local.lock(directory):
        pass


def test_a_spawned_server_is_detached_and_writes_to_the_log(directory):
    log = directory / "log" / "serve.log"
    process = local.spawn(["--version"], log)
    process.wait()
    assert mode(log) == 0o600
    assert log.read_text()


def test_a_long_log_is_put_aside(directory):
    log = directory / "serve.log"
    log.write_bytes(b"x" * (local.LOG_LIMIT + 1))
    local.spawn(["--version"], log).wait()
    assert log.stat().st_size < local.LOG_LIMIT < (directory / "serve.old.log").stat().st_size
