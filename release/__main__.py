"""`python -m release` builds what a tag publishes into dist/release, and shows that each artefact works alone."""

import argparse
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from mercury_ls import __version__
from release.artefacts import BUILDERS, Site, cloned, write_texts
from release.proof import PROOFS, Room, installed
from release.shell import CommandError, Run, run

ROOT = Path(__file__).parent.parent
OUT = ROOT / "dist/release"
PAGE = ROOT / "docs/RELEASING.md"
HEADING = "## As last built"
KIB = 1 << 10


class Row(NamedTuple):
    """One artefact: what it is, how long building and proving took, and what was seen of it."""

    kind: str
    path: Path
    built: float
    proved: float
    seen: str


def built(site: Site) -> Iterator[tuple[str, Path, float]]:
    for kind, build in BUILDERS.items():
        start = time.perf_counter()
        yield kind, build(site), time.perf_counter() - start


def proved(kind: str, path: Path, site: Site, programs: Path) -> tuple[str, float]:
    start = time.perf_counter()
    with TemporaryDirectory(prefix="mercury-") as folder:
        bench = Path(folder) / "tools"
        shutil.copytree(
            site.clone / "bench", bench / "bench", ignore=shutil.ignore_patterns("sets", "sessions", "wire")
        )
        room = Path(folder) / "room"
        room.mkdir()
        seen = PROOFS[kind](Room(site.run, room, bench, site.clone, programs, site.version), path)
    return seen, time.perf_counter() - start


def released(run: Run, source: Path, out: Path) -> list[Row]:
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    with TemporaryDirectory(prefix="mercury-release-") as folder:
        site = Site(run, cloned(run, source, Path(folder) / "clone"), out, __version__)
        artefacts = list(built(site))
        write_texts(site, [path for _, path, _ in artefacts])
        programs = installed(run, Path(folder), next(path for kind, path, _ in artefacts if kind == "wheel"))
        rows = []
        for kind, path, seconds in artefacts:
            seen, proving = proved(kind, path, site, programs)
            rows.append(Row(kind, path, seconds, proving, seen))
    return rows


def table(rows: Iterable[Row]) -> str:
    lines = ["| artefact | file | KiB | built, s | tried, s | seen |", "|---|---|---|---|---|---|"]
    for row in rows:
        size = f"{row.path.stat().st_size / KIB:,.0f}"
        lines.append(f"| {row.kind} | {row.path.name} | {size} | {row.built:.1f} | {row.proved:.1f} | {row.seen} |")
    return "\n".join(lines)


def with_table(page: str, shown: str) -> str:
    """The page with the table of this release below its last heading."""
    kept, heading, _ = page.partition(f"\n{HEADING}\n")
    if not heading:
        raise ValueError(f"docs/RELEASING.md has no heading `{HEADING}`")
    return f"{kept}{heading}\n{shown}\n"


def main() -> str | None:
    options = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    options.add_argument("--out", type=Path, default=OUT, help="where the artefacts go; emptied first")
    options.add_argument("--write", action="store_true", help="put the table into docs/RELEASING.md")
    chosen = options.parse_args()
    start = time.perf_counter()
    try:
        rows = released(run, ROOT, chosen.out.resolve())
    except (CommandError, ValueError) as error:
        return str(error)
    machine = f"{os.cpu_count()} cores ({platform.system()}, {platform.machine()})"
    took = f"{time.perf_counter() - start:.0f} s in all, on {machine}"
    shown = f"{table(rows)}\n\n{datetime.now(UTC):%d %B %Y}: {took}."
    sys.stdout.write(f"{shown}\n")
    if chosen.write:
        PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), shown), encoding="utf-8")
    return None


if __name__ == "__main__":
    sys.exit(main())
