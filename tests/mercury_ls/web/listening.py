"""The application on a real socket, on a thread of its own: for clients that know nothing of asyncio."""

import asyncio
from contextlib import asynccontextmanager, contextmanager
from queue import Queue
from threading import Thread

import uvicorn

from mercury_ls.serve.limits import HEAD_BYTES, LimitedConnection
from tests.mercury_ls.web.serving import served


class Server(uvicorn.Server):
    """Tells when it listens, and leaves signals alone."""

    def __init__(self, config, started):
        super().__init__(config)
        self._started = started

    async def startup(self, sockets=None):
        await super().startup(sockets)
        self._started(self.servers[0].sockets[0].getsockname()[1])

    @contextmanager
    def capture_signals(self):
        yield


@asynccontextmanager
async def listening(*given, **more):
    """The service and the port that it is asked at, on this loop."""
    port = asyncio.get_running_loop().create_future()
    async with served(*given, **more) as (service, app):
        server = Server(configured(app), port.set_result)
        task = asyncio.create_task(server.serve())
        try:
            yield service, await port
        finally:
            server.should_exit = True
            await task


def configured(app):
    return uvicorn.Config(
        app,
        port=0,
        http=LimitedConnection,
        h11_max_incomplete_event_size=HEAD_BYTES,
        lifespan="off",
        log_config=None,
        ws="none",
        timeout_graceful_shutdown=1,
    )


@contextmanager
def beside(*given, **more):
    """The same on a thread of its own."""
    found = Queue()

    async def run():
        async with listening(*given, **more) as (_, port):
            found.put((port, asyncio.get_running_loop(), stop := asyncio.Event()))
            await stop.wait()

    thread = Thread(target=asyncio.run, args=[run()])
    thread.start()
    port, loop, stop = found.get(timeout=30)
    try:
        yield port
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
