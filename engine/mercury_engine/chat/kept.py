"""A child process for work in which an untrusted schema or template could crash the engine, or never finish."""

import math
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator

PATIENCE = 6
"""Times the processor's time: on a busy machine an answer takes longer."""


class KeptProcess:
    """Runs a module that answers each of its `requests` with a line. It starts with the first one, and again after it
    ends; one that takes more than `seconds` of the processor's time is ended."""

    def __init__(self, module: str, seconds: float) -> None:
        self._command = (sys.executable, "-P", "-m", module, str(seconds))
        self._seconds = PATIENCE * seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._end: Callable[[], object] = lambda: None
        self._lock = threading.Lock()

    def answer(self, line: bytes) -> bytes | None:
        """The answer; None if the process crashed or took too long."""
        with self._lock:
            process = self._started()
            assert process.stdin is not None
            assert process.stdout is not None
            timer = threading.Timer(self._seconds, process.kill)
            timer.start()
            try:
                process.stdin.write(line + b"\n")
                process.stdin.flush()
                if (answer := process.stdout.readline()).endswith(b"\n"):
                    return answer
            except OSError:
                pass
            finally:
                timer.cancel()
            self.close()
            return None

    def close(self) -> None:
        self._process = None
        self._end()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.close()
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
            self._end = weakref.finalize(self, _ended, self._process)
        return self._process


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


def requests() -> Iterator[str]:
    """The lines that such a process is given."""
    for line in sys.stdin:
        _limit_processor_time(float(sys.argv[1]))
        yield line


def _limit_processor_time(seconds: float) -> None:
    if sys.platform != "win32":
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time() + seconds), most))
