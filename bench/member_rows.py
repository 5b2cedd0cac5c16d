"""Rows that end at places of one kind, such as `response.|`, in files of the repositories in a folder of mirrors.

    python -m bench.member_rows --mirrors MIRRORS --repositories OWNER/NAME … --out members.jsonl
                                [--kind member|argument|value|…] [--each 72]

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

KINDS = {
    "member": {
        "python": {"attribute": "attribute"},
        "typescript": {"member_expression": "property"},
        "tsx": {"member_expression": "property"},
        "go": {"selector_expression": "field"},
        "rust": {"field_expression": "field"},
    },
    "argument": {
        "python": {"call": "arguments"},
        "typescript": {"call_expression": "arguments", "new_expression": "arguments"},
        "tsx": {"call_expression": "arguments"},
        "go": {"call_expression": "arguments"},
        "rust": {"call_expression": "arguments"},
    },
    "value": {
        "python": {"assignment": "right", "return_statement": "", "keyword_argument": "value"},
        "typescript": {"variable_declarator": "value", "assignment_expression": "right", "pair": "value"},
        "tsx": {"variable_declarator": "value", "assignment_expression": "right", "pair": "value"},
        "go": {"short_var_declaration": "right", "assignment_statement": "right"},
        "rust": {"let_declaration": "value", "assignment_expression": "right"},
    },
    "statement": {
        "python": {"expression_statement": "", "return_statement": "", "if_statement": "", "for_statement": ""},
        "typescript": {"expression_statement": "", "lexical_declaration": "", "return_statement": ""},
        "tsx": {"expression_statement": "", "lexical_declaration": "", "return_statement": ""},
        "go": {"short_var_declaration": "", "expression_statement": "", "return_statement": ""},
        "rust": {"let_declaration": "", "expression_statement": ""},
    },
    "definition": {
        "python": {"function_definition": "name", "import_from_statement": "name", "for_statement": "left"},
        "typescript": {"method_definition": "name", "function_declaration": "name", "import_clause": ""},
        "tsx": {"function_declaration": "name", "import_clause": ""},
        "go": {"function_declaration": "name", "method_declaration": "name"},
        "rust": {"function_item": "name"},
    },
    "signature": {
        "python": {"function_definition": "parameters"},
        "typescript": {"method_definition": "parameters"},
        "tsx": {"method_definition": "parameters"},
        "go": {"method_declaration": "parameters"},
        "rust": {"function_item": "parameters"},
    },
}
"""For each kind of place and each language the nodes that a row ends in, and the part of them, "" for all, with which
its middle begins."""

OPENING = {"member": b".", "argument": b"(", "signature": b"("}
"""What stands right before the middle."""

LARGEST_FILE = 60_000
LONGEST_LINE = 120
PER_FILE = 8


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--mirrors", type=Path, required=True, help="bare clones, owner+name/repo")
    options.add_argument("--repositories", nargs="+", required=True, metavar="OWNER/NAME")
    options.add_argument("--kind", choices=KINDS, default="member", help="where the rows end")
    options.add_argument("--each", type=int, default=72, help="rows of each repository")
    options.add_argument("--out", type=Path, required=True)
    given = options.parse_args()
    rows = [row for name in given.repositories for row in member_rows(given.mirrors, name, given.each, given.kind)]
    jsonl.write(given.out, rows)
    print(f"{given.out}: {len(rows)} rows")


def member_rows(mirrors: Path, repository: str, count: int, kind: str = "member") -> list[FimRow]:
    clone = str(mirrors / repository.replace("/", "+") / "repo")
    commit = git(clone, "rev-parse", "HEAD").decode().strip()
    paths = git(clone, "ls-tree", "-r", "--name-only", commit).decode().splitlines()
    known = [path for path in paths if language_of(path) in KINDS[kind]]
    found: list[FimRow] = []
    for path in random.Random(0).sample(known, len(known)):
        text = git(clone, "show", f"{commit}:{path}").decode("utf-8", "replace")
        if len(text) <= LARGEST_FILE and "\r" not in text:
            origin = {"repo": repository, "commit": commit, "licence": "", "path": path}
            found += rows_of(text, str(language_of(path)), origin, kind)
        if len(found) >= count:
            break
    return found[:count]


def rows_of(text: str, language: str, origin: dict[str, str], kind: str) -> list[FimRow]:
    draw = random.Random(origin["path"])
    places = list(cuts(text, language, kind))
    chosen = draw.sample(places, min(PER_FILE, len(places)))
    return [row_of(text, cut, id=identity(origin, cut), language=language, **origin) for cut in chosen]


def cuts(text: str, language: str, kind: str) -> Iterator[Cut]:
    data = text.encode()
    nodes, opening = [parser(language).parse(data).root_node], OPENING.get(kind, b"")
    while nodes:
        node = nodes.pop()
        nodes += node.named_children
        field = KINDS[kind][language].get(node.type)
        part = node if field == "" else node.child_by_field_name(field) if field else None
        if part is None or node.has_error:
            continue
        first = part.start_byte + (1 if opening == b"(" else 0)
        if not data[:first].endswith(opening):
            continue
        start = len(data[:first].decode())
        line = text[start:].partition("\n")[0].rstrip()
        cut = Cut(start, start + len(line), "single_line", kind)
        begin = text.rfind("\n", 0, start) + 1
        if line and cut.stop - begin <= LONGEST_LINE and text.count(text[begin : cut.stop].strip()) == 1:
            yield cut


def identity(origin: dict[str, str], cut: Cut) -> str:
    key = f"{origin['repo']} {origin['path']} {cut.start}".encode()
    return f"{cut.sub}-{hashlib.sha256(key).hexdigest()[:12]}"


if __name__ == "__main__":
    main()
