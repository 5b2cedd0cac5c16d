"""The quality of suggestions as users get them: rows answered through the language server's own sessions.

    python -m bench.quality --fim FILE … --next-edit FILE … [--engine local|fake|FOLDER|peer:NAME]
                            [--peers ar,copy,…] [--limit N] [--projects MIRRORS]

Each row is typed up to its place and asked for twice: as after a keystroke, under the default bar, and on explicit
request. Peers answer the same rows in turn (A B, then B A), so that times are compared in pairs. With bare clones of
the repositories that the rows come from, each row is asked in its project, else in a single file.
docs/benchmarks/README.md says what the figures mean; the last line is JSON.
"""

import argparse
import asyncio
import json
from pathlib import Path

from bench.quality.measure import QualityRun, measure
from bench.quality.tables import tables


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fim", type=Path, nargs="+", default=[], metavar="FILE", help="rows without their middle")
    parser.add_argument("--next-edit", type=Path, nargs="+", default=[], metavar="FILE", help="rows of git history")
    parser.add_argument("--engine", default="local", help="local, fake, a model's folder, or peer:NAME")
    parser.add_argument("--peers", default="", help="compared with it: " + PEERS)
    parser.add_argument("--limit", type=int, help="rows of each file, drawn at random, always the same")
    parser.add_argument(
        "--projects", type=Path, metavar="MIRRORS", help="bare clones, owner+name/repo: rows have their projects"
    )
    given = parser.parse_args()
    found = asyncio.run(measure(_work_of(given)))
    print("\n".join(tables(found)))
    print(json.dumps(found))


PEERS = "ar, ar+copy, copy, ngram, effort:LEVEL, or added models; separated by commas"


def _work_of(given: argparse.Namespace) -> QualityRun:
    peers = tuple(f"peer:{name}" for name in given.peers.split(",") if name)
    return QualityRun(
        engine=given.engine,
        peers=peers,
        fim=tuple(given.fim),
        next_edit=tuple(given.next_edit),
        limit=given.limit,
        projects=given.projects,
    )
