"""Plays recorded sessions to the real server as real editors would, and measures what comes back and when.

python -m bench.replay SESSION… [--client neovim-0.12|neovim-plugin|sidekick|vscode] [--speed 1|max|N]
                       [--pause-cap SECONDS] [--busy CORES] [--model fake|shipped|config|FOLDER]

While an answer is awaited, time passes as recorded, otherwise --speed times as fast. `max` skips every pause without
an open request, and thus the encoding ahead that the server would have done; `--speed 1 --pause-cap 2` keeps it, which
is slower and more faithful.
"""

import argparse
import asyncio
import json
import math
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.harness.client import running
from bench.harness.measures import machine
from bench.harness.usage import Usage, busy
from bench.replay.figures import Played, figures, latencies, table
from bench.replay.habits import CLIENTS, Habits
from bench.replay.pace import ReplayPace
from bench.replay.play import CONFIGURED, MODELS, engine_pid, engine_server, is_ready, measured, outcome, project
from bench.replay.player import Player
from bench.replay.session import RecordedSession, capped, read

__all__ = ["main", "speed"]

REDRAW_SECONDS = 0.5


class ProgressBar:
    """A few lines on standard error: progress, time left, and the figures so far."""

    def __init__(self, total_ms: float) -> None:
        self._total = max(total_ms, 1.0)
        self._began = time.monotonic()
        self._drawn = self._began - REDRAW_SECONDS
        self._is_terminal = sys.stderr.isatty()
        self._tenth = 0

    def show(self, done_ms: float, player: Player, name: str) -> None:
        now, part = time.monotonic(), min(done_ms / self._total, 1.0)
        due = now - self._drawn >= REDRAW_SECONDS if self._is_terminal else int(part * 10) > self._tenth
        if not due:
            return
        self._drawn, self._tenth = now, int(part * 10)
        left = (now - self._began) * (1 - part) / part if part else math.inf
        answered = latencies(player.asked)["ghost text by the model"]
        told = f"{len(player.asked)} asked, {len(player.shown)} shown, p50 {answered.p50:.0f} ms"
        bar = "█" * round(part * 24) + "·" * (24 - round(part * 24))
        start, end = ("\r\x1b[2K", "") if self._is_terminal else ("", "\n")
        sys.stderr.write(f"{start}{bar} {part:4.0%}, {left:.0f} s left  {name}: {told}{end}")
        sys.stderr.flush()

    def close(self) -> None:
        if self._is_terminal:
            sys.stderr.write("\r\x1b[2K")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sessions", type=Path, nargs="+")
    parser.add_argument("--client", choices=sorted(CLIENTS), default="neovim-0.12")
    parser.add_argument("--speed", type=speed, default=1.0)
    parser.add_argument("--pause-cap", type=float, default=5.0, help="no pause is longer, in seconds; 0 for no cap")
    parser.add_argument("--model", default=CONFIGURED, help=MODELS)
    parser.add_argument("--busy", type=int, default=0, help="so many cores have something else to do meanwhile")
    given = parser.parse_args()
    sessions = [read(path) for path in given.sessions]
    cap = given.pause_cap * 1000 or None
    habits = CLIENTS[given.client]
    with engine_server(given.model) as (runtime, environment), busy(given.busy):
        played, engine = asyncio.run(everything(sessions, habits, given.speed, cap, runtime, environment))
    found = figures(played, engine)
    print(f"{len(sessions)} sessions as {habits.name} plays them ({habits.source}), model {given.model}\n")
    print(table(played, found))
    print(f"{'engine MB over time':30}  {engine.course()}")
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
    lengths = [length(session, cap_ms) for session in sessions]
    progress, engine, played = ProgressBar(sum(lengths)), Usage(), []
    for number, session in enumerate(sessions):
        before = sum(lengths[:number])

        def tick(moment: float, player: Player, before: float = before, name: str = session.name) -> None:
            progress.show(before + moment, player, name)

        pace = ReplayPace(speed)
        with TemporaryDirectory() as folder:
            root = project(session, Path(folder).resolve())
            async with running(root, **environment) as client:
                await is_ready(client)
                async with measured(client.process.pid) as server, measured(engine_pid(runtime), engine):
                    player = Player(client, habits, session, root, pace)
                    await player.play(cap_ms, partial(tick, player=player))
                    played.append(await outcome(player, client, session, server))
    progress.close()
    return played, engine


def length(session: RecordedSession, cap_ms: float | None) -> float:
    return max((moment for moment, _ in capped(session.events, cap_ms)), default=0.0)
