"""Several editors on one engine server: how latency grows, whether anybody starves, whether anything is lost.

python -m bench.load SESSION… [--clients N…] [--client NAME] [--pause-cap SECONDS] [--model fake|FOLDER|config]
python -m bench.load SESSION… --clients 4 --minutes 30

Every editor plays the sessions in an order of its own, at the speed at which they were typed. With --minutes each goes
on for so long, and memory is told over time.
"""

import argparse
import asyncio
import json
import math
import time
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from bench.client import running
from bench.replay import engine_pid, engine_server, is_ready, machine, measured, outcome, project
from bench.replaying.figures import Played, Spread, latencies, share, spread
from bench.replaying.habits import CLIENTS, Habits
from bench.replaying.pace import Pace
from bench.replaying.player import INLINE, Asked, Player
from bench.replaying.session import Session, read
from bench.replaying.usage import Usage

__all__ = ["Crowd", "lost", "ratio"]


class Crowd(Struct):
    """What several editors at once have seen, each with its sessions, and the engine that they shared."""

    editors: list[list[Played]]
    engine: Usage

    def answers(self, editor: int) -> Spread:
        """Whatever the model answered, shown or silent: ghost text alone would be few."""
        return spread(a.final_ms for a in self.asked(editor) if a.by_model)

    def asked(self, editor: int) -> list[Asked]:
        return [each for played in self.editors[editor] for each in played.asked]

    @property
    def all_asked(self) -> list[Asked]:
        return [each for editor in range(len(self.editors)) for each in self.asked(editor)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sessions", type=Path, nargs="+")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--client", choices=sorted(CLIENTS), default="vscode")
    parser.add_argument("--pause-cap", type=float, default=1.0, help="no pause is longer, in seconds")
    parser.add_argument("--model", default="config", help="a folder, `fake`, or `config` for the one that is set up")
    parser.add_argument("--minutes", type=float, default=0.0, help="go on for so long")
    given = parser.parse_args()
    sessions, habits = [read(path) for path in given.sessions], CLIENTS[given.client]
    crowds = []
    for number in given.clients:
        crowds.append(crowded(number, sessions, habits, given.pause_cap * 1000, given.minutes, given.model))
        print(table(crowds[-1]), flush=True)
    print(json.dumps({"client": habits.name, "model": Path(given.model).name, "machine": machine(), **summary(crowds)}))


def crowded(
    number: int, sessions: Sequence[Session], habits: Habits, cap_ms: float, minutes: float, model: str
) -> Crowd:
    """Each crowd has an engine server of its own, so that none finds what another has warmed."""
    with engine_server(model) as (runtime, environment):
        return asyncio.run(together(number, sessions, habits, cap_ms, minutes, runtime, environment))


async def together(
    number: int,
    sessions: Sequence[Session],
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
    return Crowd([task.result() for task in tasks], engine)


def turned(sessions: Sequence[Session], by: int) -> list[Session]:
    by %= len(sessions)
    return [*sessions[by:], *sessions[:by]]


async def editor(
    sessions: Sequence[Session], habits: Habits, cap_ms: float, until: float, environment: dict[str, str]
) -> list[Played]:
    """One after the other, each in an editor that is started for it; all of them again while there is time."""
    played = []
    for again in count():
        if again and time.monotonic() >= until:
            return played
        for session in sessions:
            with TemporaryDirectory() as folder:
                root = project(session, Path(folder).resolve())
                async with running(root, **environment) as client:
                    await is_ready(client)
                    async with measured(client.process.pid) as server:
                        player = Player(client, habits, session, root, Pace())
                        await player.play(cap_ms)
                        played.append(await outcome(player, client, session, server))
    return played


def lost(asked: Sequence[Asked]) -> int:
    """Requests that were neither answered nor cancelled."""
    return sum(math.isnan(each.final_ms) or each.silence.startswith("error") for each in asked)


def ratio(slow: float, quick: float) -> float | None:
    return None if math.isnan(slow) or math.isnan(quick) or not quick else round(slow / quick, 2)


def table(crowd: Crowd) -> str:
    lines = [
        f"{len(crowd.editors)} editors",
        f"  {'answered by the model, ms':28}{'n':>6}{'p50':>9}{'p90':>9}{'max':>9}",
    ]
    for number in range(len(crowd.editors)):
        found = crowd.answers(number)
        lines.append(f"  {f'editor {number + 1}':28}{found.n:6}{found.p50:9.1f}{found.p90:9.1f}{found.most:9.1f}")
    lines.append(f"  engine MB over time: {crowd.engine.course()}")
    servers = [played.server.most_mb for editor in crowd.editors for played in editor]
    wrong = [uri for editor in crowd.editors for played in editor for uri in played.wrong_texts]
    lines.append(f"  language servers at most {max(servers, default=0.0):.0f} MB each, lost {lost(crowd.all_asked)}")
    return "\n".join([*lines, *(f"  wrong text: {uri}" for uri in wrong), ""])


def summary(crowds: Sequence[Crowd]) -> dict[str, object]:
    """By the number of editors; ratios are to the smallest crowd."""
    alone = spread(a.final_ms for a in crowds[0].all_asked if a.by_model)
    found: dict[str, object] = {}
    for crowd in crowds:
        n, all_asked = len(crowd.editors), crowd.all_asked
        answered = spread(a.final_ms for a in all_asked if a.by_model)
        each = [crowd.answers(number) for number in range(n)]
        ghost = latencies(all_asked)["ghost text by the model"]
        found[str(n)] = {
            "requests": len(all_asked),
            "p50_ms": rounded(answered.p50),
            "p90_ms": rounded(answered.p90),
            "ghost_p90_ms": rounded(ghost.p90),
            "p90_ratio": ratio(answered.p90, alone.p90),
            "fairness": ratio(min(s.p90 for s in each), max(s.p90 for s in each)),
            "fewest_answered_share": min(answered_share(crowd.asked(number)) for number in range(n)),
            "lost": lost(all_asked),
            "texts_compared": sum(played.texts for editor in crowd.editors for played in editor),
            "texts_wrong": sum(len(played.wrong_texts) for editor in crowd.editors for played in editor),
            "engine_rss_mb": round(crowd.engine.most_mb, 1),
            "engine_rss_growth_mb": round(crowd.engine.last_mb - crowd.engine.first_mb, 1),
            "engine_cpu_s": round(crowd.engine.processor_s, 1),
        }
    return {"crowds": found, "p90_ratio": found[str(len(crowds[-1].editors))]["p90_ratio"]}  # type: ignore[index]


def answered_share(asked: Sequence[Asked]) -> float | None:
    """Of what an editor did not cancel itself: 0 would be starving."""
    inline = [a for a in asked if a.method == INLINE and a.silence != "cancelled"]
    return share(sum(bool(a.source) for a in inline), len(inline)) or 0.0


def rounded(milliseconds: float) -> float | None:
    return None if math.isnan(milliseconds) else round(milliseconds, 2)


if __name__ == "__main__":
    main()
