"""The inside of the sandbox, run by its own interpreter as root: namespaces, a root folder, and for each program a
child without privileges. Only the standard library is imported.

Messages are JSON lines. The first one out is `{"ready": true}` or `{"error": …}`; then each `{"program": …}` is
answered by `{"verdict": …, "detail": …}`.
"""

import contextlib
import ctypes
import doctest  # noqa: F401  what programs usually import is imported once, before they are forked
import json
import os
import resource
import secrets
import select
import signal
import sys
import time
import unittest  # noqa: F401
from pathlib import Path

NEW_NAMESPACE, NEW_UTS, NEW_IPC, NEW_PID, NEW_NET = 0x20000, 0x4000000, 0x8000000, 0x20000000, 0x40000000
READ_ONLY, NO_SUID, NO_DEVICES, REMOUNT, BIND, RECURSIVE, PRIVATE = 1, 2, 4, 32, 4096, 16384, 1 << 18
DETACH = 2
NO_NEW_PRIVILEGES, PARENT_DEATH = 38, 1
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}

MEBIBYTE = 1 << 20
LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache")
DEVICES = ("/dev/null", "/dev/urandom", "/dev/zero")
LONGEST_DETAIL = 200

libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    root, options = sys.argv[1], json.loads(sys.argv[2])
    try:
        enter(root)
    except OSError as error:
        say({"error": f"{error.strerror} in {error.filename or 'the sandbox'}"})
        return
    say({"ready": True})
    for line in sys.stdin:
        say(judge(json.loads(line)["program"], options))


def say(message: dict) -> None:
    print(json.dumps(message), flush=True)


def enter(root: str) -> None:
    """Become the first process of new namespaces, whose root holds an interpreter and its libraries, read-only."""
    called("unshare", NEW_NAMESPACE | NEW_UTS | NEW_IPC | NEW_PID | NEW_NET)
    if child := os.fork():
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) and 1)
    called("prctl", PARENT_DEATH, signal.SIGKILL, 0, 0, 0)
    _mount("none", "/", RECURSIVE | PRIVATE)
    _mount("tmpfs", root, NO_SUID, "tmpfs", "size=1m,mode=755")
    inner = f"{root}/inside"
    for path in (*LIBRARIES, *DEVICES, sys.base_prefix):
        _expose(path, inner)
    os.makedirs(f"{inner}/tmp")
    os.makedirs(f"{root}/outside")
    _mount("none", root, REMOUNT | BIND | READ_ONLY | NO_SUID)
    called("syscall", PIVOT_ROOT[os.uname().machine], root.encode(), f"{root}/outside".encode())
    os.chdir("/")
    called("umount2", b"/outside", DETACH)


def _expose(path: str, inner: str) -> None:
    """Mount the same path below `inner`, read-only. A link such as /lib stays one."""
    target = inner + path
    if not os.path.lexists(path) or os.path.lexists(target):
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.islink(path):
        os.symlink(os.readlink(path), target)
        return
    if os.path.isdir(path):
        os.mkdir(target)
    else:
        Path(target).touch()
    _mount(path, target, BIND | RECURSIVE)
    devices = 0 if path.startswith("/dev/") else NO_DEVICES
    _mount("none", target, REMOUNT | BIND | READ_ONLY | NO_SUID | devices)


def judge(program: str, options: dict) -> dict:
    """Run one program in a child; whatever it leaves behind is killed."""
    token = secrets.token_hex(16)
    out, into = os.pipe()
    child = os.fork()
    if not child:
        run(program, token, into, options)
    os.close(into)
    waiting = os.pidfd_open(child)
    finished, _, _ = select.select([waiting], [], [], options["seconds"])
    _kill_all()
    os.close(waiting)
    os.set_blocking(out, False)
    output = b""
    with contextlib.suppress(BlockingIOError):
        output = os.read(out, 4096)
    os.close(out)
    if not finished:
        return {"verdict": "timed out", "detail": ""}
    marked, _, detail = output.decode("utf-8", "replace").partition(" ")
    return {"verdict": "passed" if marked == token else "failed", "detail": detail[:LONGEST_DETAIL]}


def _kill_all() -> None:
    """Kill every process of the namespace except this one, its first, and wait until all are gone."""
    while True:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.0005)


def run(program: str, token: str, into: int, options: dict) -> None:
    """Be the child process. Only a program that runs to its end is answered with the token."""
    verdict = ["stopped", "the sandbox could not be entered"]
    try:
        drop(into, options)
        exec(compile(program, "<program>", "exec"), {"__name__": "__main__"})
        verdict = [token, ""]
    except BaseException as error:
        verdict = ["failed", f"{type(error).__name__}: {error}"[:LONGEST_DETAIL]]
    finally:
        with contextlib.suppress(OSError):
            os.write(into, " ".join(verdict).encode("utf-8", "replace"))
        os._exit(0)


def drop(into: int, options: dict) -> None:
    """Drop privileges: a fresh folder, another user, no descriptor except the answer's, and all possible limits.

    A chrooted process cannot create user namespaces, and so cannot regain privileges.
    """
    called("unshare", NEW_NAMESPACE | NEW_IPC)
    size = f"size={options['disk_mebibytes']}m,nr_inodes=1000,mode=1777"
    _mount("tmpfs", "/inside/tmp", NO_SUID | NO_DEVICES, "tmpfs", size)
    os.chroot("/inside")
    os.chdir("/tmp")
    null = os.open("/dev/null", os.O_RDWR)
    for standard in range(3):
        os.dup2(null, standard)
    os.closerange(3, into)
    os.closerange(into + 1, 1 << 16)
    limit(options)
    os.environ.clear()
    os.setgroups([])
    os.setresgid(options["user"], options["user"], options["user"])
    os.setresuid(options["user"], options["user"], options["user"])
    called("prctl", NO_NEW_PRIVILEGES, 1, 0, 0, 0)


def limit(options: dict) -> None:
    limits = {
        resource.RLIMIT_AS: options["memory_mebibytes"] * MEBIBYTE,
        resource.RLIMIT_CPU: int(options["seconds"]) + 1,
        resource.RLIMIT_FSIZE: MEBIBYTE,
        resource.RLIMIT_NPROC: options["processes"],
        resource.RLIMIT_NOFILE: 64,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_MSGQUEUE: 0,
    }
    for kind, value in limits.items():
        resource.setrlimit(kind, (value, value))


def _mount(source: str, target: str, flags: int, kind: str = "none", data: str = "") -> None:
    called("mount", source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode())


def called(name: str, *arguments: object) -> None:
    if getattr(libc, name)(*arguments) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)


if __name__ == "__main__":
    main()
