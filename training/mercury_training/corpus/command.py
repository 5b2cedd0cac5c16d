"""Builds, packs and describes a corpus: `python -m mercury_training.corpus build --out DIR SOURCES.toml`."""

import argparse
from collections.abc import Sequence
from pathlib import Path

import msgspec

from mercury_training.corpus.manifest import Manifest, report, with_tables
from mercury_training.corpus.pack import pack, unpack
from mercury_training.errors import reported


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    with reported("mercury_training.corpus"):
        _run(options)


def _run(options: argparse.Namespace) -> None:
    if options.command == "build":
        # Only a build parses code: a machine that unpacks a corpus may lack the grammars.
        from mercury_training.corpus.build import build

        print(report(build(options.sources, options.out, options.work or options.out / "work")))
    elif options.command == "pack":
        print(f"{pack(options.corpus, options.file, int(options.mebibytes * 2**20)):,} training tokens packed")
    elif options.command == "unpack":
        unpack(options.file, options.corpus)
    else:
        manifest = msgspec.json.decode(options.manifest.read_bytes(), type=Manifest)
        options.card.write_text(with_tables(options.card.read_text(), manifest))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mercury_training.corpus", description=(__doc__ or "").split(":")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("build", help="build or grow a corpus")
    command.add_argument("sources", type=Path, metavar="SOURCES.toml")
    command.add_argument("--out", type=Path, required=True, metavar="DIR")
    command.add_argument("--work", type=Path, metavar="DIR", help="what is kept between builds (default: OUT/work)")
    command = commands.add_parser("pack", help="as much of a corpus as fits a size, in one file")
    command.add_argument("corpus", type=Path)
    command.add_argument("file", type=Path)
    command.add_argument("--mebibytes", type=float, default=60)
    command = commands.add_parser("unpack", help="lay a packed corpus out again")
    command.add_argument("file", type=Path)
    command.add_argument("corpus", type=Path)
    command = commands.add_parser("card", help="write a manifest's figures into a data card")
    command.add_argument("manifest", type=Path)
    command.add_argument("card", type=Path)
    return parser
