import ctypes
import importlib.util
import os
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from mercury_engine.api import PROTOCOL_VERSION
from mercury_ls.link import claim, local


def mode(path):
    return path.stat().st_mode & 0o777


def test_runtime_directory_is_made_private(directory):
    made = local.runtime_directory(str(directory / "run" / "mercury"))
    assert mode(made) == 0o700


def test_environment_chooses_runtime_directory(directory, monkeypatch):
    monkeypatch.setenv("MERCURY_LS_RUNTIME_DIR", str(directory / "there"))
    assert local.runtime_directory() == directory / "there"


def test_directory_that_others_can_enter_is_refused_with_remedy(directory):
    directory.chmod(0o750)
    with pytest.raises(local.PlacementError, match=f"mode 750.*chmod 700 {directory}"):
        local.runtime_directory(str(directory))


def test_directory_of_somebody_else_is_refused_with_remedy(directory, monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(local.PlacementError, match=r"not to you \(12345\).*MERCURY_LS_RUNTIME_DIR"):
        local.runtime_directory(str(directory))


def test_link_in_place_of_directory_is_refused(directory):
    (directory / "real").mkdir(mode=0o700)
    (directory / "link").symlink_to(directory / "real")
    with pytest.raises(local.PlacementError, match="is not a folder"):
        local.runtime_directory(str(directory / "link"))


@pytest.fixture
def bound(directory):
    opened = []

    def bind(where=directory, **options):
        opened.append(local.bind(where, **options))
        return opened[-1]

    yield bind
    for listener in opened:
        listener.socket.close()


def test_socket_is_for_its_user_only_and_its_name_has_the_protocol(directory, bound):
    listener = bound()
    (path,) = directory.iterdir()
    assert path.name == f"engine-v{PROTOCOL_VERSION}.sock"
    assert mode(path) == 0o600
    assert listener.token == ""
    assert local.address(directory).path == str(path)


def test_stale_socket_is_replaced(directory, bound):
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(local.address(directory).path)
    stale.close()
    bound().socket.listen()
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(local.address(directory).path)


def check_loopback(directory, listener):
    address = local.address(directory)
    (path,) = directory.iterdir()
    assert mode(path) == 0o600
    assert (address.host, address.port) == listener.socket.getsockname()
    assert address.token == listener.token
    assert len(listener.token) > 40
    path.unlink()
    with pytest.raises(FileNotFoundError):
        local.address(directory)


def test_loopback_port_and_private_token_replace_unix_sockets(directory, bound, monkeypatch):
    monkeypatch.setattr(local, "has_unix_sockets", lambda: False)
    check_loopback(directory, bound())


def test_and_so_they_do_where_the_path_is_too_long_for_a_socket(directory, bound):
    deep = directory / ("d" * 90)
    deep.mkdir()
    check_loopback(deep, bound(deep))


def test_obstacle_to_the_socket_is_named_with_a_remedy(directory, bound):
    Path(local.address(directory).path).mkdir()
    with pytest.raises(local.PlacementError, match=rf"{directory}.*engine-v.*remove what is in its place"):
        bound()


def test_standing_token_is_made_once_and_is_private(directory, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(directory))
    monkeypatch.setenv("HOME", str(directory))
    token, path = local.standing_token()
    assert local.standing_token() == (token, path)
    path.write_text("\n")
    assert len(local.standing_token()[0]) > 30
    assert (mode(path), len(token)) == (0o600, 43)


def test_spawned_server_is_detached_and_writes_to_log(directory):
    log = directory / "log" / "serve.log"
    process = local.spawn(["--version"], log)
    process.wait()
    assert mode(log) == 0o600
    assert log.read_text()


def test_long_log_is_put_aside(directory):
    log = directory / "serve.log"
    log.write_bytes(b"x" * (local.LOG_LIMIT + 1))
    local.spawn(["--version"], log).wait()
    assert log.stat().st_size < local.LOG_LIMIT < (directory / "serve.old.log").stat().st_size


def test_without_a_writable_log_there_is_an_engine_all_the_same(directory):
    (directory / "file").touch()
    assert local.spawn(["--version"], directory / "file" / "serve.log").wait() == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a full disk as a file")
def test_on_a_full_disk_the_code_of_a_server_still_says_why_it_ended(directory, monkeypatch):
    monkeypatch.setenv("MERCURY_LS_RUNTIME_DIR", str(directory))
    with claim.lock(directory):
        assert local.spawn(["serve"], Path("/dev/full")).wait() == local.ALREADY_RUNNING


def test_files_lie_beside_the_socket_if_home_is_read_only(directory, monkeypatch):
    monkeypatch.setenv("MERCURY_LS_RUNTIME_DIR", str(directory / "run"))
    monkeypatch.setenv("XDG_STATE_HOME", str(directory / "home"))
    (directory / "home").touch()
    assert local.log_file() == directory / "run" / "serve.log"
    assert local.standing_token()[1] == directory / "run" / "http-token"


def test_home_of_a_user_without_one_is_beside_the_socket(monkeypatch, directory):
    monkeypatch.setenv("HOME", "/somewhere")
    local.settle_home()
    assert os.environ["HOME"] == "/somewhere"
    monkeypatch.setenv("MERCURY_LS_RUNTIME_DIR", str(directory))
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    monkeypatch.delenv("HOME")
    local.settle_home()
    assert os.environ["HOME"] == str(directory)
    directory.chmod(0o755)
    local.settle_home()
    assert os.environ["HOME"] == os.devnull


def test_folder_in_place_of_socket_is_named_before_server_is_started(directory):
    (directory / local.SOCKET).mkdir()
    with pytest.raises(local.PlacementError, match=rf"{directory / local.SOCKET} is a folder.*remove it"):
        local.check_usable(directory)


def test_read_only_directory_is_named_before_server_is_started(directory, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(local.PlacementError, match=rf"{directory}, which is read-only.*MERCURY_LS_RUNTIME_DIR"):
        local.check_usable(directory)


def test_free_memory_is_a_part_of_all_and_can_be_given_back():
    local.return_dropped_memory()
    assert 0 < local.free_memory() < local.memory()


GB = 1 << 30
V2 = ("memory.max", "memory.current")
V1 = ("memory.limit_in_bytes", "memory.usage_in_bytes")


@pytest.mark.parametrize(
    ("own", "groups", "expected"),
    [
        ("0::/", {"": (V2, 4 * GB, 3 * GB)}, [(4 * GB, 2 * GB)]),
        ("0::/", {"": (V2, "max", 3 * GB)}, []),
        (
            "0::/user/app\n",
            {"user": (V2, 8 * GB, 5 * GB), "user/app": (V2, 4 * GB, 3 * GB)},
            [(4 * GB, 2 * GB), (8 * GB, 4 * GB)],
        ),
        ("12:cpu:/x\n4:memory:/docker/1\n0::/\n", {"memory": (V1, 4 * GB, 3 * GB)}, [(4 * GB, 2 * GB)]),
        ("4:memory:/docker/1\n", {"memory/docker/1": (V1, 4 * GB, GB)}, [(4 * GB, 0)]),
        ("0::/../..", {}, []),
        ("nonsense", {}, []),
    ],
)
def test_container_limits_are_found(own, groups, expected, tmp_path):
    (tmp_path / "own").write_text(own)
    for name, (files, *values) in groups.items():
        folder = tmp_path / "cgroup" / name
        folder.mkdir(parents=True, exist_ok=True)
        for file, value in zip(files, values, strict=True):
            (folder / file).write_text(f"{value}\n")
        (folder / "memory.stat").write_text(f"inactive_file 1\nfile 1\ntotal_inactive_file {GB}\nactive_file 2\n")
    assert list(local.memory_limits(tmp_path / "own", tmp_path / "cgroup")) == expected


@pytest.mark.parametrize(("limits", "free"), [([], 6 * GB), ([(4 * GB, 3 * GB)], GB), ([(4 * GB, 5 * GB)], 1)])
def test_free_memory_in_a_container_is_what_its_limit_leaves(limits, free, monkeypatch):
    monkeypatch.setattr(Path, "read_text", lambda self, encoding: f"MemAvailable: {6 << 20} kB")
    monkeypatch.setattr(local, "memory_limits", lambda: limits)
    assert local.free_memory() == free


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells how many addresses a process uses")
def test_free_memory_of_a_limited_process_is_what_its_limit_leaves(monkeypatch):
    """Code, stacks and reserves of a model that is to be opened take addresses, too."""
    limit = local.resident_memory() + local.ADDRESSES_BESIDE + (64 << 20)
    monkeypatch.setattr("resource.getrlimit", lambda kind: (limit, 0))
    assert 0 < local.free_memory() <= 64 << 20


def test_free_memory_is_zero_where_system_does_not_report_it(monkeypatch):
    monkeypatch.setattr(Path, "read_text", lambda self, encoding: "MemTotal: 3 kB")
    assert local.free_memory() == 0


class Locks:
    """Windows' `msvcrt`: a range of bytes of a file that is locked is locked for every other handle."""

    LK_NBLCK = 2

    def __init__(self) -> None:
        self.held: set[tuple[int, int]] = set()

    def locking(self, descriptor: int, mode: int, size: int) -> None:
        assert (mode, size) == (self.LK_NBLCK, 1)
        byte = os.fstat(descriptor).st_ino, os.lseek(descriptor, 0, os.SEEK_CUR)
        if byte in self.held:
            raise PermissionError(13, "Permission denied")
        self.held.add(byte)


class Kernel:
    """Windows' kernel32, which fills in a structure that says how long it is."""

    def __init__(self, answers: int = 1):
        self.answers = answers

    def GlobalMemoryStatusEx(self, counters) -> int:  # noqa: N802
        assert counters._obj.length == 64
        counters._obj.sizes[0], counters._obj.sizes[1] = 16 * GB, 5 * GB
        return self.answers


FLAGS = {"CREATE_NEW_PROCESS_GROUP": 0x200, "DETACHED_PROCESS": 0x8}


@pytest.fixture
def windows(monkeypatch):
    """The module as it is loaded on Windows; the rest of the process stays where it is."""
    spec = importlib.util.spec_from_file_location("local_on_windows", local.__file__)
    module = importlib.util.module_from_spec(spec)
    with monkeypatch.context() as loading:
        loading.setattr(sys, "platform", "win32")
        for name, flag in FLAGS.items():
            loading.setattr(subprocess, name, flag, raising=False)
        spec.loader.exec_module(module)
    module.sys = SimpleNamespace(platform="win32", executable=sys.executable)
    module.os = SimpleNamespace(**{**vars(os), "name": "nt"})
    monkeypatch.setitem(sys.modules, "msvcrt", Locks())
    monkeypatch.setattr(ctypes, "windll", SimpleNamespace(kernel32=Kernel()), raising=False)
    return module


def test_on_windows_the_profile_keeps_others_out(windows, directory):
    directory.chmod(0o755)
    assert windows.runtime_directory(str(directory)) == directory


def test_on_windows_a_port_with_a_token_takes_the_place_of_a_socket(windows, directory):
    listener = windows.bind(directory)
    with listener.socket:
        address = windows.address(directory)
        assert (address.host, address.port, address.token) == (*listener.socket.getsockname(), listener.token)
        assert windows.is_listed(directory)


def test_on_windows_one_server_holds_the_lock_and_its_id_can_be_read(windows, directory, monkeypatch):
    monkeypatch.setattr(local, "lock_file", windows.lock_file)
    with claim.lock(directory):
        assert (directory / claim.LOCK).read_text().strip() == str(os.getpid())
        with pytest.raises(local.AlreadyRunningError, match=str(os.getpid())), claim.lock(directory):
            pass


def test_windows_tells_its_memory(windows, monkeypatch):
    assert (windows.memory(), windows.free_memory(), windows.resident_memory()) == (16 * GB, 5 * GB, 0)
    monkeypatch.setattr(ctypes, "windll", SimpleNamespace(kernel32=Kernel(answers=0)))
    assert (windows.memory(), windows.free_memory()) == (0, 0)


def test_on_windows_a_server_outlives_the_console_it_was_started_from(windows, directory):
    started = []
    windows.subprocess = SimpleNamespace(
        Popen=lambda command, **how: started.append((command[1:], how["creationflags"])), DEVNULL=subprocess.DEVNULL
    )
    windows.spawn(["serve"], directory / "log")
    assert started == [(["-P", "-m", "mercury_ls", "serve"], 0x208)]


def test_on_windows_only_the_owner_of_the_lock_can_have_written_to_it(windows, directory):
    assert windows.has_open(1, directory)
    assert windows.IGNORES_CASE


@pytest.mark.parametrize(("listed", "is_ours"), [("python -m mercury_ls serve\n", True), ("vim\n", False), ("", False)])
def test_without_proc_a_server_is_known_by_its_command_line(listed, is_ours, directory, monkeypatch):
    monkeypatch.setattr(os.path, "isdir", lambda path: False)
    asked = []
    run = lambda command, **_: asked.append(command) or SimpleNamespace(stdout=listed)  # noqa: E731
    monkeypatch.setattr(local.subprocess, "run", run)
    assert local.has_open(4711, directory) is is_ours
    assert asked[0][-1] == "4711"
