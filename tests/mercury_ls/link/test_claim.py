"""One server a user, whatever happens to the files by which it is found."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from mercury_ls.link import claim, local
from mercury_ls.link.claim import claimed

HOLD_LOCK = """
import sys
from pathlib import Path
from mercury_ls.link import claim, local
try:
    with claim.lock(Path(sys.argv[1])):
        print("held", flush=True)
        sys.stdin.read()
except local.AlreadyRunningError as error:
    print(error, flush=True)
"""


@pytest.fixture
def claims(directory):
    with ExitStack() as made:

        def make():
            one = made.enter_context(claimed(directory))
            made.enter_context(one.listener.socket)
            one.listener.socket.listen()
            return one

        yield make


def start(code, directory):
    command = [sys.executable, "-c", code, str(directory)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def listens(directory):
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(local.address(directory).path)
        except OSError:
            return False
    return True


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def test_lock_is_for_one_process_and_names_it(directory):
    with claim.lock(directory), start(HOLD_LOCK, directory) as other:
        said = other.communicate()[0]
    assert f"process {os.getpid()}" in said
    assert "mercury-ls serve --stop" in said


def test_lock_of_killed_process_is_free(directory):
    with start(HOLD_LOCK, directory) as process:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(local.AlreadyRunningError), claim.lock(directory):
            pass
        process.kill()
    with claim.lock(directory):
        pass


def test_lock_owner_is_looked_up_without_a_trace(directory):
    assert claim.owner(directory) == ""
    assert names(directory) == []
    with claim.lock(directory):
        assert claim.owner(directory) == str(os.getpid())
    assert claim.owner(directory) == ""


@pytest.mark.parametrize("make", [Path.mkdir, pytest.param(os.mkfifo, marks=pytest.mark.skipif("os.name == 'nt'"))])
def test_lock_that_is_no_file_is_named_with_remedy(directory, make):
    path = directory / claim.LOCK
    make(path)
    for ask in (claim.owner, claim.lock):
        with pytest.raises(local.PlacementError, match=rf"cannot use {path} as the lock .*: remove it"):
            ask(directory)


def test_unwritable_lock_locks_all_the_same(directory, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with claim.lock(directory), pytest.raises(local.AlreadyRunningError), claim.lock(directory):
        pass


def test_at_the_end_only_the_lock_file_is_left(directory):
    with claimed(directory):
        assert len(names(directory)) == 2
    assert names(directory) == [claim.LOCK]


def test_socket_in_place_is_left_alone(claims):
    assert claims().renew() is None


def delete_socket(directory):
    Path(local.address(directory).path).unlink()


def delete_lock(directory):
    (directory / claim.LOCK).unlink()


def delete_both(directory):
    delete_socket(directory)
    delete_lock(directory)


def replace_socket(directory):
    delete_socket(directory)
    local.bind(directory).socket.close()


def replace_lock(directory):
    delete_lock(directory)
    (directory / claim.LOCK).touch()


def recreate_directory(directory):
    shutil.rmtree(directory)
    directory.mkdir(mode=0o700)


@pytest.mark.parametrize(
    "lose", [delete_socket, delete_lock, delete_both, replace_socket, replace_lock, shutil.rmtree, recreate_directory]
)
def test_deleted_socket_is_restored(directory, claims, lose):
    ours = claims()
    lose(directory)
    if listener := ours.renew():
        listener.socket.listen()
    assert listens(directory)
    assert claim.owner(directory) == str(os.getpid())
    assert directory.stat().st_mode & 0o777 == 0o700
    assert ours.renew() is None


def test_without_unix_sockets_the_token_stays_the_same(directory, claims, monkeypatch):
    monkeypatch.setattr(local, "has_unix_sockets", lambda: False)
    ours = claims()
    token = local.address(directory).token
    (directory / local.PORT).unlink()
    assert ours.renew().token == local.address(directory).token == token


@pytest.mark.parametrize("lose", [delete_both, delete_lock, recreate_directory])
def test_later_server_keeps_its_socket(directory, claims, lose):
    first = claims()
    lose(directory)
    second = claims()
    with pytest.raises(local.AlreadyRunningError, match=f"process {os.getpid()}"):
        first.renew()
    assert listens(directory)
    assert second.renew() is None


@pytest.mark.parametrize("lose", [delete_both, delete_lock, recreate_directory])
def test_ending_server_takes_nothing_from_next(directory, claims, lose):
    with claimed(directory):
        lose(directory)
        second = claims()
    assert listens(directory)
    assert second.renew() is None


@pytest.mark.skipif(os.name == "nt", reason="Windows ends a process at once")
def test_stopped_process_that_holds_lock_is_ended(directory):
    with start(HOLD_LOCK, directory) as process:
        assert process.stdout.readline() == "held\n"
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        claim.end(directory, str(process.pid))
        assert process.wait() == -signal.SIGKILL


def test_process_that_holds_the_lock_is_the_only_one_ended(directory):
    other = directory / "other"
    other.mkdir(mode=0o700)
    with start(HOLD_LOCK, directory) as holder, start(HOLD_LOCK, other) as bystander:
        assert holder.stdout.readline() == bystander.stdout.readline() == "held\n"
        claim.end(directory, str(bystander.pid))
        assert (holder.poll(), bystander.poll()) == (None, None)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="tells who has a file open")
def test_process_that_lock_only_names_is_not_ended(directory):
    """As in another container, which counts its processes anew."""
    other = directory / "other"
    other.mkdir(mode=0o700)
    with claim.lock(directory), start(HOLD_LOCK, other) as bystander:
        assert bystander.stdout.readline() == "held\n"
        (directory / claim.LOCK).write_text(f"{bystander.pid}\n")
        with pytest.raises(local.PlacementError, match=f"names process {bystander.pid}.*or remove the file"):
            claim.end(directory, str(bystander.pid))
        assert bystander.poll() is None


def test_own_process_is_not_ended(directory):
    with (
        claim.lock(directory),
        pytest.raises(local.PlacementError, match="something other than an engine server of yours"),
    ):
        claim.end(directory, str(os.getpid()))
