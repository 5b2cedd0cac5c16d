"""Imports run one way, and the language server starts without anything heavy."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = {
    "mercury_ls": ROOT / "mercury_ls",
    "mercury_engine": ROOT / "engine/mercury_engine",
    "mercury_kernels": ROOT / "kernels/mercury_kernels",
    "mercury_training": ROOT / "training/mercury_training",
    "bench": ROOT / "bench",
}
ALLOWED = {
    "mercury_ls": {"mercury_ls", "mercury_engine"},
    "mercury_engine": {"mercury_engine", "mercury_kernels"},
    "mercury_kernels": {"mercury_kernels"},
    "mercury_training": {"mercury_training", "mercury_engine", "mercury_kernels"},
    "bench": {"bench", "mercury_ls", "mercury_engine", "mercury_training"},
}
HEAVY = {
    "numpy",
    "openvino",
    "torch",
    "transformers",
    "uvicorn",
    "tokenizers",
    "pathspec",
    "hypothesis",
    "pytest",
}
BOUNDARY = {"api", "redaction", "tuning_data"}


def imported(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_what_lies_below_it(room):
    for file in ROOMS[room].rglob("*.py"):
        ours = {name.split(".")[0] for name in imported(file)} & ROOMS.keys()
        assert ours <= ALLOWED[room], file


def test_only_the_engine_server_reaches_past_the_engines_boundary():
    for file in ROOMS["mercury_ls"].rglob("*.py"):
        deep = {n for n in imported(file) if n.startswith("mercury_engine.") and n.split(".")[1] not in BOUNDARY}
        assert not deep or file.parent.name == "serve", (file, deep)


def test_only_lsp_knows_lsp():
    for file in ROOMS["mercury_ls"].rglob("*.py"):
        speaks = {n for n in imported(file) if n.split(".")[0] in ("pygls", "lsprotocol")}
        assert not speaks or file.parent.name == "lsp", file


def test_the_language_server_starts_light():
    code = f"import sys, mercury_ls.lsp.server; print(*({HEAVY!r} & sys.modules.keys()))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.split() == []
