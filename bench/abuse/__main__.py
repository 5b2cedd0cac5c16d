"""Hostile clients, models and servers against the real processes, bounded and seeded.

python -m bench.abuse                                          the fuzzer: 20,000 messages, a fake engine
python -m bench.abuse --messages 1000000 --minutes 90
python -m bench.abuse --session 1-17                           one session again
python -m bench.abuse --replay build/abuse/abuse-fuzz-1-17.jsonl     its very bytes
python -m bench.abuse --campaign all --minutes 60              every other campaign, in an hour
python -m bench.abuse --campaign schemas --seed 1 --case 17    one case again

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

import msgspec

from bench.abuse.campaigns import CAMPAIGNS, campaign
from bench.abuse.fuzz import Fuzzed, FuzzResult, fuzz, replay
from bench.abuse.ground import Campaigned
from bench.abuse.report import complaints, summary, table
from bench.abuse.steps import load
from bench.harness.measures import machine

FAILURES = Path("build/abuse")
SESSION_MESSAGES, QUICK_MESSAGES, QUICK_SECONDS = 1600, 160, 1.0


def main() -> None:
    given = parse(sys.argv[1:])
    sys.exit(asyncio.run(to_the_end(run(given))))


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.abuse", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--campaign", choices=("fuzz", *CAMPAIGNS, "all"), default="fuzz")
    parser.add_argument("--case", type=int, help="the number of one case of a campaign")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--minutes", type=float, default=15.0, help="at most")
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=2, help="sessions at once")
    parser.add_argument("--session", default="", help="the seed of one session")
    parser.add_argument("--replay", type=Path, help="a session that was kept")
    parser.add_argument("--failures", type=Path, default=FAILURES, help="where failing sessions are kept")
    parser.add_argument("--quick", action="store_true", help="a few seconds")
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
    if given.campaign != "fuzz":
        return await run_campaigns(given)
    if given.replay:
        return tell(given.seed, await replay(*load(given.replay), given.failures))
    until = time.monotonic() + given.minutes * 60
    messages, size, workers = given.messages, SESSION_MESSAGES, given.workers
    if given.quick:
        messages, size, workers = QUICK_MESSAGES, QUICK_MESSAGES, 1
    return tell(
        given.seed,
        await fuzz(given.seed, messages, until, size, workers, given.failures, given.session, tell_session),
    )


async def run_campaigns(given: argparse.Namespace) -> int:
    """One after the other, in equal parts of the time."""
    names = [*CAMPAIGNS] if given.campaign == "all" else [given.campaign]
    seconds = QUICK_SECONDS if given.quick else given.minutes * 60 / len(names)
    wrong = 0
    for name in names:
        wrong += tell_campaign(await campaign(name, given.seed, seconds, given.case))
    return 1 if wrong else 0


def tell_campaign(found: Campaigned) -> int:
    """How many things did not hold."""
    print(
        f"{found.name:12}{found.cases:6} cases in {found.seconds:.0f} s; /health {found.health_s * 1000:.0f} ms at "
        f"worst of {found.probes}; {found.peak_mb:.0f} MB at most; {dict(sorted(found.outcomes.items()))}"
    )
    again = f"python -m bench.abuse --campaign {found.name} --seed {found.seed} --case N"
    print("\n".join([*found.wrong, f"again: {again}"] if found.wrong else ["everything held"]))
    print(json.dumps({**msgspec.to_builtins(found), "wrong": len(found.wrong), "machine": machine()}), flush=True)
    return len(found.wrong)


def tell_session(outcome: FuzzResult) -> None:
    if outcome.wrong:
        print(f"session {outcome.plan.seed} failed: {outcome.wrong[0][:200]}", file=sys.stderr, flush=True)


def tell(seed: str, fuzzed: Fuzzed) -> int:
    print(table(fuzzed))
    wrong = list(complaints(fuzzed))
    print("\n".join(wrong) or "everything held")
    print(json.dumps({"seed": seed, **summary(fuzzed), "machine": machine()}))
    return 1 if wrong else 0


if __name__ == "__main__":
    main()
