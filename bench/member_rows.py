"""Rows that end behind a dot, `response.|`, in files of the repositories in a folder of mirrors.

    python -m bench.member_rows --mirrors MIRRORS --repositories OWNER/NAME … --out members.jsonl [--each 72]

The middle is the rest of the line. Lines that occur elsewhere in the file are left out: they are copies, which need no
knowledge of names. The same commits give the same rows.
"""

import argparse
import hashlib
import random
from collections.abc import Iterator
from pathlib import Path

from mercury_training import jsonl
from mercury_training.corpus.sources import git, language_of
from mercury_training.corpus.syntax import parser
from mercury_training.rows.cuts import Cut, row_of
from mercury_training.rows.fim_rows import FimRow

__all__ = ["member_rows"]

MEMBERS = {
    "python": {"attribute": "attribute"},
    "typescript": {"member_expression": "property"},
    "tsx": {"member_expression": "property"},
    "go": {"selector_expression": "field"},
    "rust": {"field_expression": "field"},
}
"""For each language the node of a member, and the field that is its name: with it begins the middle."""

LARGEST_FILE = 60_000
LONGEST_LINE = 120
PER_FILE = 8


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--mirrors", type=Path, required=True, help="bare clones, owner+name/repo")
    options.add_argument("--repositories", nargs="+", required=True, metavar="OWNER/NAME")
    options.add_argument("--each", type=int, default=72, help="rows of each repository")
    options.add_argument("--out", type=Path, required=True)
    given = options.parse_args()
    rows = [row for name in given.repositories for row in member_rows(given.mirrors, name, given.each)]
    jsonl.write(given.out, rows)
    print(f"{given.out}: {len(rows)} rows")


def member_rows(mirrors: Path, repository: str, count: int) -> list[FimRow]:
    clone = str(mirrors / repository.replace("/", "+") / "repo")
    commit = git(clone, "rev-parse", "HEAD").decode().strip()
    paths = git(clone, "ls-tree", "-r", "--name-only", commit).decode().splitlines()
    known = [path for path in paths if language_of(path) in MEMBERS]
    found: list[FimRow] = []
    for path in random.Random(0).sample(known, len(known)):
        text = git(clone, "show", f"{commit}:{path}").decode("utf-8", "replace")
        if len(text) <= LARGEST_FILE and "\r" not in text:
            origin = {"repo": repository, "commit": commit, "licence": "", "path": path}
            found += rows_of(text, str(language_of(path)), origin)
        if len(found) >= count:
            break
    return found[:count]


def rows_of(text: str, language: str, origin: dict[str, str]) -> list[FimRow]:
    draw = random.Random(origin["path"])
    places = list(cuts(text, language))
    chosen = draw.sample(places, min(PER_FILE, len(places)))
    return [row_of(text, cut, id=identity(origin, cut), language=language, **origin) for cut in chosen]


def cuts(text: str, language: str) -> Iterator[Cut]:
    data = text.encode()
    nodes = [parser(language).parse(data).root_node]
    while nodes:
        node = nodes.pop()
        nodes += node.named_children
        field = MEMBERS[language].get(node.type)
        name = node.child_by_field_name(field) if field else None
        if name is None or node.has_error or not data[: name.start_byte].endswith(b"."):
            continue
        start = len(data[: name.start_byte].decode())
        line = text[start:].partition("\n")[0].rstrip()
        cut = Cut(start, start + len(line), "single_line", "member")
        begin = text.rfind("\n", 0, start) + 1
        if line and cut.stop - begin <= LONGEST_LINE and text.count(text[begin : cut.stop].strip()) == 1:
            yield cut


def identity(origin: dict[str, str], cut: Cut) -> str:
    key = f"{origin['repo']} {origin['path']} {cut.start}".encode()
    return f"{cut.sub}-{hashlib.sha256(key).hexdigest()[:12]}"


if __name__ == "__main__":
    main()
