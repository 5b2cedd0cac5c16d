"""Plays recorded sessions to the real server as real editors would, and measures the answers and their times.

python -m bench.replay SESSION… [--client neovim-0.12|neovim-plugin|sidekick|vscode] [--speed 1|max|N]
                       [--pause-cap SECONDS] [--busy CORES] [--model fake|shipped|config|FOLDER] [--profile]

While an answer is pending, time passes as recorded, otherwise --speed times as fast. `max` skips every pause without
an open request, and thus the encoding ahead that the server would have done; `--speed 1 --pause-cap 2` keeps it, which
is slower and more faithful. `--profile` adds what the engine did for which questions.
"""

import argparse
import asyncio
import json
import math
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.harness.client import running
from bench.harness.measures import machine
from bench.harness.usage import Usage, busy
from bench.replay import profile
from bench.replay.figures import Played, figures, table
from bench.replay.habits import CLIENTS, Habits
from bench.replay.pace import ReplayPace
from bench.replay.play import CONFIGURED, MODELS, engine_pid, engine_server, is_ready, measured, outcome, project
from bench.replay.player import Player
from bench.replay.session import RecordedSession, read
from mercury_training.progress import shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sessions", type=Path, nargs="+")
    parser.add_argument("--client", choices=sorted(CLIENTS), default="neovim-0.12")
    parser.add_argument("--speed", type=speed, default=1.0)
    parser.add_argument("--pause-cap", type=float, default=5.0, help="no pause is longer, in seconds; 0 for no cap")
    parser.add_argument("--model", default=CONFIGURED, help=MODELS)
    parser.add_argument("--busy", type=int, default=0, help="keep this many cores busy meanwhile")
    parser.add_argument("--profile", action="store_true", help="tell what tokens the engine read, in which passes")
    given = parser.parse_args()
    sessions = [read(path) for path in given.sessions]
    cap = given.pause_cap * 1000 or None
    habits = CLIENTS[given.client]
    with engine_server(given.model) as (runtime, environment), busy(given.busy):
        log = runtime.parent / "work.log"
        logged = profile.environment(log) if given.profile else {}
        played, engine = asyncio.run(everything(sessions, habits, given.speed, cap, runtime, environment | logged))
        works = profile.read_log(log) if given.profile else []
    found = figures(played, engine)
    print(f"{len(sessions)} sessions as {habits.name} plays them ({habits.source}), model {given.model}\n")
    print(table(played, found))
    print(f"{'engine MB over time':30}  {engine.course()}")
    if works:
        exchanges = [exchange for session in played for exchange in session.asked]
        print("", profile.profile_table(profile.shares(works, exchanges)), "", sep="\n")
    pace = {"speed": "max" if math.isinf(given.speed) else given.speed, "pause_cap_s": given.pause_cap}
    about = {"client": habits.name, "model": Path(given.model).name, **pace, "busy": given.busy, "machine": machine()}
    print(json.dumps({**about, **found}))


def speed(text: str) -> float:
    return math.inf if text == "max" else float(text)


async def everything(
    sessions: Sequence[RecordedSession],
    habits: Habits,
    speed: float,
    cap_ms: float | None,
    runtime: Path,
    environment: dict[str, str],
) -> tuple[list[Played], Usage]:
    engine, played = Usage(), []
    for session in shown("sessions", sessions):
        with TemporaryDirectory() as folder:
            root = project(session, Path(folder).resolve())
            async with running(root, grows=habits.grows, **environment) as client:
                await is_ready(client)
                async with measured(client.process.pid) as server, measured(engine_pid(runtime), engine):
                    player = Player(client, habits, session, root, ReplayPace(speed))
                    await player.play(cap_ms)
                    played.append(await outcome(player, client, session, server))
    return played, engine
