"""The fuzzer, the killer and the scarcity runs: real processes, a fake engine, bounded and seeded.

python -m bench.abuse                                          20,000 messages, 20 faults, every scarcity
python -m bench.abuse --messages 1000000 --kills 300 --groups 4 --minutes 90
python -m bench.abuse fuzz --session 1-17                      one session of the fuzzer again
python -m bench.abuse --replay build/abuse/abuse-fuzz-1-17.jsonl     its very bytes

It ends what it started, and nothing else; what did not hold is printed with a command that shows it again. Linux only.
"""

import argparse
import asyncio
import json
import signal
import sys
import time
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

from bench.abuse.fuzz import Fuzzed, FuzzResult, fuzz, replay
from bench.abuse.kill import FAULTS, Killed, kill
from bench.abuse.report import complaints, summary, table
from bench.abuse.scarce import CASES, QUICK, Observed, scarce
from bench.abuse.steps import load
from bench.harness.measures import machine

PARTS = ("fuzz", "kill", "scarcity")
FAILURES = Path("build/abuse")
SESSION_MESSAGES, QUICK_MESSAGES = 1600, 160


def main() -> None:
    given = parse(sys.argv[1:])
    sys.exit(asyncio.run(to_the_end(run(given))))


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.abuse", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", nargs="*", choices=[*PARTS, []], help="all of them unless named")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--minutes", type=float, default=15.0, help="for everything, at most")
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2, help="sessions of the fuzzer at once")
    parser.add_argument("--groups", type=int, default=3, help="of editors with an engine server, hit at once")
    parser.add_argument("--fault", choices=sorted(FAULTS), action="append", default=[], help="this one, not one of any")
    parser.add_argument("--case", action="append", default=[], help="scarcity: those with this in their name")
    parser.add_argument("--session", default="", help="the seed of one session of the fuzzer")
    parser.add_argument("--replay", type=Path, help="a session that was kept")
    parser.add_argument("--failures", type=Path, default=FAILURES, help="where failing sessions are kept")
    parser.add_argument("--quick", action="store_true", help="a few seconds of each")
    return parser.parse_args(arguments)


async def to_the_end(work: Coroutine[Any, Any, int]) -> int:
    """Told to end, it cleans up first: signals become a cancellation."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        return 130


async def run(given: argparse.Namespace) -> int:
    parts = given.part or PARTS
    until = time.monotonic() + given.minutes * 60
    fuzzed, killed, found = Fuzzed(), Killed(), []
    if given.replay:
        fuzzed = await replay(*load(given.replay), given.failures)
    elif given.quick:
        fuzzed, killed, found = await quick(given.seed, until, given.failures)
    else:
        if "scarcity" in parts:
            cases = [case for case in CASES if not given.case or any(word in case.name for word in given.case)]
            found = await scarce(cases, until, tell_case)
        if "kill" in parts:
            killed = await kill(given.seed, given.kills, until, given.groups, faults=tuple(given.fault))
        if "fuzz" in parts:
            fuzzed = await fuzz(
                given.seed,
                given.messages,
                until,
                SESSION_MESSAGES,
                given.workers,
                given.failures,
                given.session,
                tell_session,
            )
    return tell(given, fuzzed, killed, found)


async def quick(seed: str, until: float, failures: Path) -> tuple[Fuzzed, Killed, list[Observed]]:
    """A little of each at the same time, which would measure nothing."""
    async with asyncio.TaskGroup() as group:
        fuzzed = group.create_task(fuzz(seed, QUICK_MESSAGES, until, QUICK_MESSAGES, 1, failures))
        killed = group.create_task(kill(seed, 1, until, 1, editors=1, idle=False, faults=("killed",)))
        found = group.create_task(scarce([case for case in CASES if case.name in QUICK], until))
    return fuzzed.result(), killed.result(), found.result()


def tell_case(found: Observed) -> None:
    print(f"{found.name}: {found.outcome}", file=sys.stderr, flush=True)


def tell_session(outcome: FuzzResult) -> None:
    if outcome.wrong:
        print(f"session {outcome.plan.seed} failed: {outcome.wrong[0][:200]}", file=sys.stderr, flush=True)


def tell(given: argparse.Namespace, fuzzed: Fuzzed, killed: Killed, found: Sequence[Observed]) -> int:
    print(table(fuzzed, killed, found))
    wrong = list(complaints(fuzzed, killed, found))
    print("\n".join(wrong) or "everything held")
    print(json.dumps({"seed": given.seed, **summary(fuzzed, killed, found), "machine": machine()}))
    return 1 if wrong else 0


if __name__ == "__main__":
    main()
