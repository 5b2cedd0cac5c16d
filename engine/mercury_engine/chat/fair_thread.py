"""A thread that does one thing after another for several owners, who take turns."""

from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any, TypeVar

Result = TypeVar("Result")


class FairThread:
    """The thread starts with the first work. Work that was cancelled while it waited is left out."""

    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(1, name)
        self._waiting: OrderedDict[str, deque[tuple[Future[Any], Callable[[], Any]]]] = OrderedDict()
        self._lock = Lock()

    def submit(self, owner: str, work: Callable[[], Result]) -> Future[Result]:
        future: Future[Result] = Future()
        with self._lock:
            self._waiting.setdefault(owner, deque()).append((future, work))
        self._executor.submit(self._do_next)
        return future

    def _do_next(self) -> None:
        with self._lock:
            owner, queue = next(iter(self._waiting.items()))
            future, work = queue.popleft()
            self._waiting.move_to_end(owner)
            if not queue:
                del self._waiting[owner]
        if future.set_running_or_notify_cancel():
            settle(future, work)


def settle(future: Future[Result], work: Callable[[], Result]) -> None:
    """Gives a future what the work returns or raises."""
    try:
        future.set_result(work())
    except BaseException as error:
        future.set_exception(error)
