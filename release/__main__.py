"""`python -m release` builds what a tag publishes into dist/release, and shows that each artefact works alone."""

import argparse
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from mercury_ls import __version__
from release.artefacts import BUILDERS, Site, cloned, write_texts
from release.proof import PROOFS, Room
from release.shell import CommandError, Run, run

ROOT = Path(__file__).parent.parent
OUT = ROOT / "dist/release"
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


def proved(run: Run, kind: str, path: Path, site: Site, neovim: Path | None) -> tuple[str, float]:
    start = time.perf_counter()
    with TemporaryDirectory(prefix="mercury-") as folder:
        bench = Path(folder) / "tools"
        shutil.copytree(
            site.clone / "bench", bench / "bench", ignore=shutil.ignore_patterns("sets", "sessions", "wire")
        )
        room = Path(folder) / "room"
        room.mkdir()
        seen = PROOFS[kind](Room(run, room, bench, site.version, neovim), path)
    return seen, time.perf_counter() - start


def released(run: Run, source: Path, out: Path, neovim: Path | None) -> list[Row]:
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    with TemporaryDirectory(prefix="mercury-release-") as folder:
        site = Site(run, cloned(run, source, Path(folder) / "clone"), out, __version__)
        artefacts = list(built(site))
        write_texts(site, [path for _, path, _ in artefacts])
        rows = []
        for kind, path, seconds in artefacts:
            seen, proving = proved(run, kind, path, site, neovim)
            rows.append(Row(kind, path, seconds, proving, seen))
    return rows


def table(rows: Iterable[Row]) -> str:
    lines = ["| artefact | file | KiB | built, s | tried, s | seen |", "|---|---|---|---|---|---|"]
    for row in rows:
        size = f"{row.path.stat().st_size / KIB:,.0f}"
        lines.append(f"| {row.kind} | {row.path.name} | {size} | {row.built:.1f} | {row.proved:.1f} | {row.seen} |")
    return "\n".join(lines)


def main() -> str | None:
    options = argparse.ArgumentParser(prog="python -m release", description=__doc__)
    options.add_argument("--out", type=Path, default=OUT, help="where the artefacts go; emptied first")
    options.add_argument("--neovim", default="nvim", help="the program that tries the plugin; default: nvim")
    chosen = options.parse_args()
    neovim = shutil.which(chosen.neovim)
    try:
        rows = released(run, ROOT, chosen.out.resolve(), Path(neovim) if neovim else None)
    except (CommandError, ValueError) as error:
        return str(error)
    sys.stdout.write(f"{table(rows)}\n")
    return None


if __name__ == "__main__":
    sys.exit(main())
