"""The process of a team's server: the HTTP port here, the engines on Ray Serve."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from mercury_engine.api import EngineError
from mercury_engine.installation import with_extra
from mercury_engine.model_folders import resolve
from mercury_ls.serve import daemon
from mercury_ls.settings.schema import Settings
from mercury_ls.team.config import TeamConfig, TeamError, read_config
from mercury_ls.wording import counted

MOST_AT_ONCE = 1024
"""Requests of all users that this process answers at a time."""

OWN = "each user's own, in place of TOKEN: `mercury-ls serve --new-token NAME` makes one"
READ_ONCE = ("listen", "hosts", "certificate", "key", "requests_per_user", "cluster")

log = logging.getLogger(__name__)


def run(path: Path, settings: Settings) -> int:
    """Serve until stopped; return the exit code of the process."""
    try:
        config = read_config(path)
        listening = daemon.Options(
            http=config.listen, certificate=config.certificate, key=config.key, hosts=config.hosts
        )
        daemon.check_certificate(listening)
        _of_team(settings, config)
        _prepare(config)
        with daemon.bind_http(listening) as bound:
            endpoint = daemon.ListeningEndpoint(bound, "", config.certificate, config.key)
            return asyncio.run(serve(path, config, settings, endpoint, daemon.site(listening, bound)))
    except TeamError as error:
        return daemon.reported(error, daemon.FAILED)
    except (OSError, ValueError, EngineError) as error:
        return daemon.reported(TeamError(f"{path}: {error}"), daemon.FAILED)
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        return daemon.reported(TeamError(f"it needs the extra `serve`: {with_extra('serve')}"), daemon.FAILED)


def _prepare(config: TeamConfig) -> None:
    """Set what Ray reads on import: no usage reports, and no access for other machines where none is needed. The token
    that it writes is for this user only."""
    os.umask(0o077)
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    if not config.cluster:
        os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # anywhere else it listens on all addresses


async def serve(
    path: Path, config: TeamConfig, settings: Settings, endpoint: daemon.ListeningEndpoint, site: str
) -> int:
    from mercury_ls.serve.access import Access
    from mercury_ls.session.stats import Stats
    from mercury_ls.team.engines import EngineSeat, ReplicatedEngine, deployed, joined, left
    from mercury_ls.web.app import application
    from mercury_ls.web.endpoints import Crowd
    from mercury_ls.web.greeting import greeting
    from mercury_ls.web.service import Service

    stopped, changed = asyncio.Event(), asyncio.Event()
    sys.stderr.write(f"mercury-ls serve: starting Ray and {counted(config.replicas.minimum, 'engine')}\n")
    loop, ordered = asyncio.get_running_loop(), ThreadPoolExecutor(1)

    async def deploy(config: TeamConfig) -> Any:
        """One operation at a time: leaving Ray while it is asked for engines would start it anew."""
        return await loop.run_in_executor(ordered, deployed, config, _of_team(settings, config))

    await loop.run_in_executor(ordered, joined, config)
    place = EngineSeat(await deploy(config))
    service = Service(ReplicatedEngine(place), _of_team(settings, config), stats=Stats())
    users = by_digest(config)
    access = Access(hosts=config.hosts, users=users)
    server = daemon.web_server(endpoint, application(service, access, Crowd(MOST_AT_ONCE, config.requests_per_user)))
    with daemon.stopping_signals(stopped):
        loop.add_signal_handler(signal.SIGHUP, changed.set)  # pyright: ignore[reportAttributeAccessIssue]: no teams there
        async with asyncio.TaskGroup() as group:
            group.create_task(server.serve(sockets=[endpoint.socket]))
            following = group.create_task(place.follow())
            renewing = group.create_task(renew(path, config, users, changed, deploy))
            asking = counted(len(users), "user")
            pasted = greeting(site, OWN, shell="TOKEN", vim="'TOKEN'", plain="TOKEN")
            sys.stderr.write(f"mercury-ls serve: {asking}; SIGHUP reads {path} again\n{pasted}\n")
            await stopped.wait()
            following.cancel()
            renewing.cancel()
            server.should_exit = True
    service.close()
    await loop.run_in_executor(ordered, left, config)
    return 0


async def renew(
    path: Path,
    began_with: TeamConfig,
    users: dict[str, str],
    changed: asyncio.Event,
    deploy: Callable[[TeamConfig], Awaitable[Any]],
) -> None:
    """Read the configuration again on SIGHUP: users change at once, and engines are replaced one after the other, with
    the model now named. If engines cannot be started, users still change: a removed user must not keep access."""
    while True:
        await changed.wait()
        changed.clear()
        try:
            config = read_config(path)
        except TeamError as error:
            log.error("%s; until it can be read and SIGHUP is sent again, %s", error, _kept(users))
            continue
        users.clear()
        users.update(by_digest(config))
        asking = counted(len(users), "user")
        if late := unrenewed(began_with, config):
            log.warning("%s: %s: takes effect when the server is started again", path, ", ".join(late))
        try:
            await deploy(config)
            log.warning("%s was read again: %s; the engines are being replaced", path, asking)
        except Exception as error:
            log.error("%s was read again: %s; the engines stay as they are: %s", path, asking, error)


def _kept(users: Mapping[str, str]) -> str:
    """What an unusable file leaves unchanged, above all that it removes no one."""
    names = ", ".join(sorted(users.values()))
    return (
        f"NOBODY IS SHUT OUT, and nothing else was changed: {counted(len(users), 'user')} may still ask: {names[:500]}"
    )


def unrenewed(before: TeamConfig, after: TeamConfig) -> list[str]:
    """The changed settings that are read only at the start."""
    return [name for name in READ_ONCE if getattr(before, name) != getattr(after, name)]


def by_digest(config: TeamConfig) -> dict[str, str]:
    return {digest: name for name, digest in config.users.items()}


def _of_team(settings: Settings, config: TeamConfig) -> Settings:
    """Settings of a team: nothing adapts to what one user accepts. `EngineError` reports a model that this machine
    lacks; the machines of a cluster have their own."""
    engine = replace(settings.engine, model=config.model) if config.model else settings.engine
    if not config.cluster:
        resolve(engine.model)
    return replace(settings, engine=engine, suggest=replace(settings.suggest, adapt=False))
