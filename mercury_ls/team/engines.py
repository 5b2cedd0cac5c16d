"""Engines on Ray Serve: one per replica; a request whose replica dies goes to another."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from typing import Any, cast

import msgspec
import ray
from ray import serve
from ray.exceptions import RayActorError, RayTaskError
from ray.serve.config import AutoscalingConfig, RequestRouterConfig
from ray.serve.exceptions import BackPressureError, DeploymentUnavailableError
from ray.serve.experimental.consistent_hash_router import ConsistentHashRouter
from ray.serve.handle import DeploymentHandle, DeploymentResponseGenerator

from mercury_engine.api import ChatRequest, Gap, Regions
from mercury_ls.link.client import EngineUnavailable, failed
from mercury_ls.link.questioner import Answered, Questioner
from mercury_ls.link.requests import prepared
from mercury_ls.link.wire import Failure, Request, Status, decode
from mercury_ls.serve.worker import LATENCIES
from mercury_ls.settings.schema import Settings
from mercury_ls.team.config import Replicas, TeamConfig, TeamError, lacking

NAME = "mercury-ls"
NAMESPACE = "mercury-ls"

TRIES = 5
"""How often a request is sent while engines are busy or being replaced."""
MOST_LOST, MOST_LOST_BY_CHAT = 2, 1
"""The number of engines that may die of one request. Schemas and templates of a conversation may have been the cause:
it is not retried."""
BETWEEN_TRIES_SECONDS = 0.2
STATUS_SECONDS = 1.0
PATIENCE_SECONDS = 60.0
NO_ROOM = (
    f"no engine has answered for {PATIENCE_SECONDS:.0f} s: `replicas` may ask for more `cpus` or `gpus` than there are"
)
GRACE_SECONDS = 20.0

log = logging.getLogger(__name__)


class EngineReplica:
    """An engine in its own process. Drafts are returned as msgpack, as in the engine protocol. Ray replaces an engine
    of another `generation`."""

    def __init__(self, settings: Settings, *, is_local: bool, generation: int) -> None:
        from mercury_ls.serve.models import loader
        from mercury_ls.serve.worker import Worker

        if is_local:
            _keep_local()
        self._worker = Worker(loader(settings))

    async def status(self) -> bytes:
        return msgspec.msgpack.encode(await self._loaded())

    async def answer(self, client: str, request: bytes) -> AsyncGenerator[bytes]:
        await self._loaded()
        stream = self._worker.ask(client, decode(request))
        try:
            async for answer in stream:
                yield msgspec.msgpack.encode(answer)
        finally:
            stream.close()

    async def warm(self, client: str, request: bytes) -> None:
        self._worker.warm(client, msgspec.msgpack.decode(request, type=Gap | Regions))

    async def check_health(self) -> None:
        if self._worker.board.status.state == "unavailable":
            raise RuntimeError(self._worker.board.status.detail)

    async def _loaded(self) -> Status:
        async for status in self._worker.board.statuses():
            if status.state not in ("starting", "loading"):
                break
        return self._worker.board.status


def _keep_local() -> None:
    """Ray Serve opens a port of each replica to all networks, without a password or a choice of address, though the
    replicas of one machine need it on that machine only."""
    from ray.serve._private import replica

    added = replica.add_port_to_grpc_server  # pyright: ignore[reportPrivateImportUsage]
    replica.add_port_to_grpc_server = lambda server, address: added(  # pyright: ignore[reportPrivateImportUsage]
        server, address.replace("[::]", "127.0.0.1")
    )


class EngineSeat:
    """State shared by all clients of the replicated engine."""

    def __init__(self, handle: DeploymentHandle) -> None:
        self.handle = handle
        self.status = Status("loading", "the engines are starting")
        self.latencies_ms: deque[float] = deque(maxlen=LATENCIES)

    async def follow(self) -> None:
        """Keep the status current, and report what users wait for; an unresponsive cluster is no reason to stop."""
        while True:
            before = self.status
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    self.status = msgspec.msgpack.decode(await self.handle.status.remote(), type=Status)
            except TimeoutError:
                self.status = Status("loading", NO_ROOM)
            except LOST as error:
                self.status = Status("loading", f"no engine answers: {_first_line(error)}")
            if (self.status.state, self.status.detail) != (before.state, before.detail):
                log.warning("engines: %s", ": ".join(filter(None, (self.status.state, self.status.detail))))
            await asyncio.sleep(STATUS_SECONDS)


LOST = (RayActorError, DeploymentUnavailableError, BackPressureError)


class ReplicatedEngine(Questioner):
    """The engines behind one handle, as one client sees them. Each session stays with one engine, whose caches know it,
    for as long as that engine lives."""

    roots: Sequence[str] = ()

    def __init__(self, place: EngineSeat, name: str = "") -> None:
        self._place = place
        self._name = name

    @property
    def status(self) -> Status:
        return self._place.status

    @property
    def latencies_ms(self) -> Sequence[float]:
        return tuple(self._place.latencies_ms)

    def for_client(self, name: str) -> "ReplicatedEngine":
        return ReplicatedEngine(self._place, name)

    async def warm(self, question: Gap | Regions) -> None:
        body = msgspec.msgpack.encode(prepared(question, self.roots))
        self._handle(question.session).warm.remote(self._name, body)

    async def _answers(self, request: Request, kind: type[Answered]) -> AsyncGenerator[Answered]:
        began = time.monotonic()
        async with aclosing(self._sent(request, kind)) as answers:
            async for answer in answers:
                yield answer
        if not isinstance(request, ChatRequest):
            self._place.latencies_ms.append((time.monotonic() - began) * 1000)

    def _handle(self, session: str, *, stream: bool = False) -> DeploymentHandle:
        return self._place.handle.options(session_id=session, stream=stream)

    async def _sent(self, request: Request, kind: type[Answered]) -> AsyncGenerator[Answered]:
        """Stream answers: each draft replaces the one before, so another engine may start over where one was lost."""
        sent, died = msgspec.msgpack.encode(prepared(request, self.roots)), 0
        most_lost = MOST_LOST_BY_CHAT if isinstance(request, ChatRequest) else MOST_LOST
        for tries_left in reversed(range(TRIES)):
            answers = cast(
                "DeploymentResponseGenerator[bytes]",
                self._handle(request.session, stream=True).answer.remote(self._name, sent),
            )
            try:
                async for payload in answers:
                    answer = msgspec.msgpack.decode(payload, type=kind | Failure)
                    if isinstance(answer, Failure):
                        raise failed(answer)
                    yield answer
                return
            except LOST as error:
                died += isinstance(error, RayActorError)
                if died == most_lost or not tries_left:
                    raise EngineUnavailable(f"the engine was lost while it answered: {_first_line(error)}") from error
                log.warning("an engine was lost, another is asked: %s", _first_line(error))
            except RayTaskError as error:
                raise EngineUnavailable(f"the engine failed: {_first_line(error)}") from error
            finally:
                with suppress(*LOST):
                    answers.cancel()
            await asyncio.sleep(BETWEEN_TRIES_SECONDS)


def _first_line(error: BaseException | None) -> str:
    return str(error).strip().partition("\n")[0]


def joined(config: TeamConfig) -> None:
    """Join the cluster, or start one that no other machine can reach. Ray logs errors only."""
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    logging.getLogger("ray.serve").setLevel(logging.ERROR)
    if not config.cluster:
        quiet |= {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    try:
        ray.init(config.cluster or "local", namespace=NAMESPACE, **quiet)
    except Exception as error:  # Ray does not say which ones
        raise TeamError(f"Ray cannot be {'reached' if config.cluster else 'started'}: {_first_line(error)}") from error


def deployed(config: TeamConfig, settings: Settings) -> DeploymentHandle:
    """Start the engines; running ones are replaced one after the other, while the rest answers. This does not wait for
    them: what a cluster has no room for may never start, and must remain replaceable. On a single machine that would
    cost running engines, so it is refused."""
    replicas = config.replicas
    if not config.cluster and (wrong := lacking(replicas, ray.cluster_resources())):
        raise ValueError(wrong)
    deployment = cast("serve.Deployment", serve.deployment(EngineReplica)).options(
        name="engine",
        ray_actor_options={"num_cpus": replicas.cpus, "num_gpus": replicas.gpus},
        max_ongoing_requests=1024,
        graceful_shutdown_timeout_s=GRACE_SECONDS,
        health_check_period_s=1.0,
        health_check_timeout_s=10.0,
        autoscaling_config=_scaled(replicas),
        request_router_config=RequestRouterConfig(request_router_class=cast("Any", ConsistentHashRouter)),
    )
    serve.start(http_options={"location": "NoServer"})
    engines = deployment.bind(settings, is_local=not config.cluster, generation=time.time_ns())
    target = serve.RunTarget(engines, name=NAME, route_prefix=None)
    return serve.run_many([target], wait_for_applications_running=False)[0]


def left(config: TeamConfig) -> None:
    """End the engines; in a shared cluster, only these."""
    serve.delete(NAME) if config.cluster else serve.shutdown()
    ray.shutdown()


def _scaled(replicas: Replicas) -> AutoscalingConfig:
    return AutoscalingConfig(
        min_replicas=replicas.minimum,
        initial_replicas=replicas.minimum,
        max_replicas=replicas.maximum,
        target_ongoing_requests=replicas.requests,
    )
