"""Several editors on one engine server: how latency grows, whether an editor starves, whether anything is lost.

    python -m bench.load SESSION… [--clients N…] [--client NAME] [--pause-cap SECONDS] [--model NAME]
    python -m bench.load SESSION… --clients 4 --minutes 30      soak test: memory must not grow over time

Every editor has its own language server and plays the sessions in its own order, at the speed at which they were
typed; with --minutes, again and again until the time is up. It fails if a request was lost, a text was wrong or an
editor starved, and in a soak test if the engine or a language server kept growing.
"""

import argparse
import asyncio
import json
import math
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from bench.harness.client import running
from bench.harness.measures import machine
from bench.harness.usage import Usage
from bench.replay.figures import Played, Spread, lost, share, spread
from bench.replay.habits import CLIENTS, Habits
from bench.replay.pace import ReplayPace
from bench.replay.play import CONFIGURED, MODELS, engine_pid, engine_server, is_ready, measured, outcome, project
from bench.replay.player import INLINE, Exchange, Player
from bench.replay.session import RecordedSession, read

IN_TIME_MS, LATEST_MS = 1000.0, 3000.0
BUSY = "busy: "
STARVED = 0.5
GROWTH_MB = 24.0
"""What an allocator may keep or release from one minute to the next."""


class Crowd(Struct):
    """The results of several editors at once, each with its sessions and its server, and the engine they shared."""

    editors: list[list[Played]]
    servers: list[Usage]
    engine: Usage

    def asked(self, editor: int | None = None) -> list[Exchange]:
        """By one editor, or by all."""
        chosen = self.editors if editor is None else [self.editors[editor]]
        return [each for sessions in chosen for played in sessions for each in played.asked]

    def answers(self, editor: int | None = None) -> Spread:
        """All answers of the model, shown or silent: those that are shown are few."""
        return spread(each.final_ms for each in self.asked(editor) if each.by_model)

    def shown_ms(self) -> list[float]:
        """When what the model wrote was shown, in milliseconds after it was asked for."""
        return [exchange.final_ms for exchange in self.asked() if exchange.by_model and exchange.is_shown]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sessions", type=Path, nargs="+")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--client", choices=sorted(CLIENTS), default="vscode")
    parser.add_argument("--pause-cap", type=float, default=1.0, help="no pause is longer, in seconds")
    parser.add_argument("--model", default=CONFIGURED, help=MODELS)
    parser.add_argument("--minutes", type=float, default=0.0, help="a soak: go on for so long")
    given = parser.parse_args()
    sessions, habits = [read(path) for path in given.sessions], CLIENTS[given.client]
    crowds = []
    for number in given.clients:
        crowds.append(crowded(number, sessions, habits, given.pause_cap * 1000, given.minutes, given.model))
        print(_table(crowds[-1]), flush=True)
    print(json.dumps({"client": habits.name, "model": Path(given.model).name, "machine": machine(), **summary(crowds)}))
    growth_mb = GROWTH_MB if given.minutes else math.inf
    complaints = [each for crowd in crowds for each in wrong(crowd, growth_mb)]
    sys.exit("\n".join(complaints) or 0)


def crowded(
    number: int,
    sessions: Sequence[RecordedSession],
    habits: Habits,
    cap_ms: float,
    minutes: float,
    model: str,
) -> Crowd:
    """Each crowd has its own engine server, so that none profits from another's caches."""
    with engine_server(model) as (runtime, environment):
        return asyncio.run(_together(number, sessions, habits, cap_ms, minutes, runtime, environment))


async def _together(
    number: int,
    sessions: Sequence[RecordedSession],
    habits: Habits,
    cap_ms: float,
    minutes: float,
    runtime: Path,
    environment: dict[str, str],
) -> Crowd:
    until = time.monotonic() + minutes * 60
    with TemporaryDirectory() as folder:
        async with running(Path(folder).resolve(), **environment) as first:
            await is_ready(first)
            async with measured(engine_pid(runtime)) as engine, asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(editor(turned(sessions, n), habits, cap_ms, until, environment))
                    for n in range(number)
                ]
    editors, servers = zip(*(task.result() for task in tasks), strict=True)
    return Crowd(list(editors), list(servers), engine)


def turned(sessions: Sequence[RecordedSession], by: int) -> list[RecordedSession]:
    by %= len(sessions)
    return [*sessions[by:], *sessions[:by]]


async def editor(
    sessions: Sequence[RecordedSession], habits: Habits, cap_ms: float, until: float, environment: dict[str, str]
) -> tuple[list[Played], Usage]:
    """One session after the other, each in a project of its own name; all of them again while there is time."""
    played = []
    with TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        async with running(root, **environment) as client:
            await is_ready(client)
            async with measured(client.process.pid) as server:
                for number, session in enumerate(cycle(sessions)):
                    if number >= len(sessions) and time.monotonic() >= until:
                        return played, server
                    player = Player(client, habits, session, project(session, root / session.name), ReplayPace())
                    await player.play(cap_ms)
                    played.append(await outcome(player, client, session, server))
                    player.close()
    raise ValueError("there is no session to play; name one")


def wrong(crowd: Crowd, growth_mb: float) -> Iterator[str]:
    """What must not happen on any machine, however slow."""
    number = len(crowd.editors)
    if missing := lost(crowd.asked()):
        yield f"{number} editors: {missing} requests were not answered"
    yield from (f"{number} editors: another text than the editor's: {uri}" for uri in _wrong_texts(crowd))
    yield from (f"{number} editors: editor {each + 1} starved" for each in starved(crowd))
    for name, usage in [("the engine", crowd.engine), *((f"server {n}", u) for n, u in enumerate(crowd.servers, 1))]:
        if usage.growth_mb > growth_mb:
            yield f"{number} editors: {name} grew by {usage.growth_mb:.0f} MB after its caches were full"


def _wrong_texts(crowd: Crowd) -> list[str]:
    return [uri for editor in crowd.editors for played in editor for uri in played.wrong_texts]


def starved(crowd: Crowd) -> list[int]:
    """Editors that were answered less than half as often as the most successful one."""
    shares = _answered_shares(crowd)
    return [number for number, share in enumerate(shares) if share < max(shares) * STARVED]


def _table(crowd: Crowd) -> str:
    lines = [
        f"{len(crowd.editors)} editors",
        f"  {'answered by the model, ms':28}{'n':>6}{'p50':>9}{'p90':>9}{'p99':>9}{'max':>9}",
    ]
    for number in range(len(crowd.editors)):
        lines.append(_line(f"editor {number + 1}", crowd.answers(number)))
    lines.append(_line("all", crowd.answers()))
    lines.append(f"  engine MB over time: {crowd.engine.course()}")
    most = max((server.most_mb for server in crowd.servers), default=0.0)
    shown = crowd.shown_ms()
    lines.append(f"  shown {len(shown)}, of these {_in_time(shown):.0%} within a second; busy {_busy(crowd.asked())}")
    lines.append(f"  language servers at most {most:.0f} MB each, lost {lost(crowd.asked())}")
    return "\n".join([*lines, *(f"  wrong text: {uri}" for uri in _wrong_texts(crowd)), ""])


def _line(name: str, answers: Spread) -> str:
    levels = (answers.p50, answers.p90, answers.p99, answers.most)
    return f"  {name:28}{answers.n:6}" + "".join(f"{milliseconds:9.1f}" for milliseconds in levels)


def summary(crowds: Sequence[Crowd]) -> dict[str, object]:
    """Figures by the number of editors; ratios are relative to the smallest crowd."""
    alone = crowds[0].answers()
    return {"crowds": {str(len(crowd.editors)): _figures(crowd, alone) for crowd in crowds}}


def _figures(crowd: Crowd, alone: Spread) -> dict[str, object]:
    asked, answered = crowd.asked(), crowd.answers()
    slower = answered.p90 / alone.p90 if answered.n and alone.n else None
    shown = crowd.shown_ms()
    return {
        "requests": len(asked),
        "p50_ms": round(answered.p50, 2) if answered.n else None,
        "p90_ms": round(answered.p90, 2) if answered.n else None,
        "p99_ms": round(answered.p99, 2) if answered.n else None,
        "answered_by_model": answered.n,
        "shown": len(shown),
        "shown_in_time_share": round(_in_time(shown), 3),
        "shown_too_late": sum(milliseconds > LATEST_MS for milliseconds in shown),
        "told_busy": _busy(asked),
        "p90_ratio": slower and round(slower, 2),
        "fewest_answered_share": min(_answered_shares(crowd)),
        "starved": len(starved(crowd)),
        "lost": lost(asked),
        "texts_compared": sum(played.texts for editor in crowd.editors for played in editor),
        "texts_wrong": len(_wrong_texts(crowd)),
        "engine_memory_mb": crowd.engine.line(),
        "engine_growth_mb": round(crowd.engine.growth_mb, 1),
        "server_growth_mb": round(max((server.growth_mb for server in crowd.servers), default=0.0), 1),
    }


def _in_time(shown: Sequence[float]) -> float:
    return share(sum(milliseconds <= IN_TIME_MS for milliseconds in shown), len(shown)) or 0.0


def _busy(asked: Sequence[Exchange]) -> int:
    """How often an editor was told that others ask as well."""
    return sum(BUSY in exchange.silence for exchange in asked)


def _answered_shares(crowd: Crowd) -> list[float]:
    return [answered_share(crowd.asked(number)) for number in range(len(crowd.editors))]


def answered_share(asked: Sequence[Exchange]) -> float:
    """The share of answered requests among those that the editor did not cancel."""
    inline = [a for a in asked if a.method == INLINE and a.silence != "cancelled"]
    return share(sum(bool(a.source) for a in inline), len(inline)) or 0.0


if __name__ == "__main__":
    main()
