"""Figures for Prometheus: requests, their times, and what happened to suggestions."""

import time
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from mercury_ls.serve.asgi import Handler, Receive, Scope, Send

CONTENT_TYPE = CONTENT_TYPE_LATEST
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
OTHER = "other"


class Metrics:
    """The figures of one server. Paths that do not exist are counted as one: strangers choose no labels."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "mercury_http_requests", "Requests answered.", ["path", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "mercury_http_seconds",
            "Time to answer a request.",
            ["path"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self.running = Gauge("mercury_http_running", "Requests in progress.", registry=self.registry)
        self.suggestions = Counter(
            "mercury_suggestions", "Suggestions by outcome.", ["kind", "outcome"], registry=self.registry
        )
        self.tokens = Counter("mercury_tokens", "Tokens generated.", registry=self.registry)
        self.ready = Gauge("mercury_engine_ready", "1 if the engine answers, else 0.", registry=self.registry)
        ProcessCollector(registry=self.registry)

    def text(self) -> bytes:
        return generate_latest(self.registry)


def measured(app: Handler, metrics: Metrics) -> Handler:
    """The same, but every request is counted, and the time until its last byte was sent."""

    async def handle(scope: Scope, receive: Receive, send: Send) -> None:
        began = time.perf_counter()

        async def noticing(message: Any) -> None:
            if message["type"] == "http.response.start":
                scope["status"] = str(message["status"])
            await send(message)

        metrics.running.inc()
        try:
            await app(scope, receive, noticing)
        finally:
            metrics.running.dec()
            path = scope.get("endpoint", OTHER)
            status = scope.get("status", "499")  # the client left before there was an answer
            metrics.requests.labels(path, status).inc()
            metrics.seconds.labels(path).observe(time.perf_counter() - began)

    return handle
