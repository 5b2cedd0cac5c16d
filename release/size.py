"""What an installation takes, by package: `python -m release.size` installs into an empty folder, and measures."""

import importlib.metadata
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from release.shell import Run, run

ROOT = Path(__file__).parent.parent
MB = 1_000_000
LEAST = 5 * MB
"""Smaller packages share a line."""


def installed(run: Run, folder: Path, *options: str) -> dict[str, int]:
    """The bytes of each package's files."""
    run([sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, *options, ROOT], folder.parent)
    return {
        distribution.name: sum(
            path.stat().st_size for path in map(Path, map(distribution.locate_file, files(distribution)))
        )
        for distribution in importlib.metadata.distributions(path=[str(folder)])
    }


def files(distribution: importlib.metadata.Distribution) -> list[importlib.metadata.PackagePath]:
    return [file for file in distribution.files or () if Path(str(distribution.locate_file(file))).is_file()]


def table(sizes: Mapping[str, int], compiled: int) -> str:
    large = {name: size for name, size in sizes.items() if size >= LEAST}
    rows = sorted(large.items(), key=lambda row: -row[1])
    rest = sum(sizes.values()) - sum(large.values())
    rows += [(f"{len(sizes) - len(large)} others", rest), ("all, as uv installs it", sum(sizes.values()))]
    rows += [("all, as pip installs it, with bytecode", compiled)]
    return "\n".join(["| package | MB |", "|---|---|", *(f"| {name} | {size / MB:.0f} |" for name, size in rows)])


def main() -> None:
    with TemporaryDirectory() as folder:
        sizes = installed(run, Path(folder, "plain"), "--no-compile")
        compiled = installed(run, Path(folder, "compiled"), "--compile")
    sys.stdout.write(f"{table(sizes, sum(compiled.values()))}\n")


if __name__ == "__main__":
    main()
