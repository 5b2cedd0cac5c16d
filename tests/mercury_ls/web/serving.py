"""An application over a fake engine, and a client that asks it without a socket."""

from contextlib import asynccontextmanager

import httpx2

from mercury_engine.fake import FakeEngine
from mercury_ls.serve.access import Access
from mercury_ls.serve.in_process import WorkerClient
from mercury_ls.serve.worker import Worker
from mercury_ls.session.outcomes import Outcomes
from mercury_ls.session.stats import Stats
from mercury_ls.settings.schema import Settings
from mercury_ls.web.app import application
from mercury_ls.web.service import Service

TOKEN = "the-token"
LOCAL = "http://127.0.0.1:8391"


@asynccontextmanager
async def served(engine=None, settings=None, access=None, **more):
    """The service and its application."""
    worker = Worker(lambda report: engine or FakeEngine())
    async for status in worker.board.statuses():
        if status.state == "ready":
            break
    service = Service(WorkerClient(worker), settings or Settings(), stats=Stats(), outcomes=Outcomes(), **more)
    try:
        yield service, application(service, access or Access(TOKEN))
    finally:
        await worker.close()


def client(app, **headers):
    sent = {"authorization": f"Bearer {TOKEN}"} | headers
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=LOCAL, headers=sent)
