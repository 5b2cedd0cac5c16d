"""Imports run one way, and the language server starts without anything heavy."""

import ast
import re
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
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
    "bench": {"bench", "mercury_ls", "mercury_engine", "mercury_kernels", "mercury_training"},
}
HEAVY = {
    "numpy",
    "openvino",
    "torch",
    "transformers",
    "uvicorn",
    "tokenizers",
    "pathspec",
    "huggingface_hub",
    "hypothesis",
    "pytest",
}
BOUNDARY = {
    "addresses",
    "api",
    "bounds",
    "installation",
    "mentions",
    "model_folders",
    "private_keys",
    "prompts",
    "redaction",
    "record",
}
ORDER = {
    "mercury_ls": (
        *("wording", "code", "settings", "project", "names", "link", "serve", "models", "completion"),
        *("next_edit", "session", "lsp", "web", "team"),
        *("complete", "doctor", "editor", "cli", "__main__"),
    ),
    "mercury_engine": (
        *(
            "api",
            "addresses",
            "bounds",
            "installation",
            "private_keys",
            "redaction",
            "record",
            "model_folders",
            "mentions",
            "fake_chat",
            "fake",
            "prompts",
        ),
        *("tokens", "model", "decode", "chat", "autoregressive", "families", "remote", "engine", "opening", "export"),
    ),
    "mercury_training": (
        *("errors", "jsonl", "models", "plot", "progress", "corpus", "rows", "train", "edits"),
        *("evaluate", "fit", "vocabulary", "adapt", "merge", "quantize", "calibrate"),
    ),
    "bench": (
        *("harness", "next_edit", "replay", "kernels", "quality", "oracle", "report"),
        *(
            "abuse",
            "demo",
            "directly",
            "edits",
            "edit_candidates",
            "index",
            "judged",
            "broken",
            "keys",
            "latency",
            "load",
            "opinions",
            "pace",
            "ratchet",
            "server",
        ),
    ),
}
"""Modules and sub-packages of a package: each imports only from itself and from those to its left."""


@cache
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
def test_room_imports_only_what_lies_below_it(room):
    for file in ROOMS[room].rglob("*.py"):
        ours = {name.split(".")[0] for name in imported(file)} & ROOMS.keys()
        assert ours <= ALLOWED[room], file


def modules(room: str) -> dict[str, Path]:
    names = {file: ".".join((room, *file.relative_to(ROOMS[room]).with_suffix("").parts)) for file in files(room)}
    return {name.removesuffix(".__init__"): file for file, name in names.items()}


def files(room: str) -> list[Path]:
    return sorted(ROOMS[room].rglob("*.py"))


@pytest.mark.parametrize("room", ORDER)
def test_imports_within_a_room_point_left(room):
    parts = {name.split(".")[1] for name in modules(room) if name != room}
    assert parts == set(ORDER[room]), "every part has its place in the order"
    for name, file in modules(room).items():
        left = ORDER[room][: ORDER[room].index(name.split(".")[1]) + 1] if name != room else ()
        ours = {wanted.split(".")[1] for wanted in imported(file) if wanted.startswith(f"{room}.")} & parts
        assert ours <= {*left}, file


@pytest.mark.parametrize("room", ORDER)
def test_modules_do_not_import_each_other_in_a_circle(room):
    found = modules(room)
    graph = {name: imported(file) & found.keys() - {name} for name, file in found.items()}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


def test_engine_internals_are_imported_only_by_the_engine_server():
    for file in ROOMS["mercury_ls"].rglob("*.py"):
        deep = {n for n in imported(file) if n.startswith("mercury_engine.") and n.split(".")[1] not in BOUNDARY}
        assert not deep or file.parent.name == "serve", (file, deep)


def test_lsp_is_known_only_to_the_lsp_package():
    for file in ROOMS["mercury_ls"].rglob("*.py"):
        speaks = {n for n in imported(file) if n.split(".")[0] in ("pygls", "lsprotocol")}
        assert not speaks or file.parent.name == "lsp", file


def test_platform_is_asked_for_only_in_link_local():
    for file in ROOMS["mercury_ls"].rglob("*.py"):
        asked = re.search(r"\b(?:sys\.platform|os\.name|platform\.system)\b", file.read_text(encoding="utf-8"))
        assert not asked or file == ROOMS["mercury_ls"] / "link/local.py", file


def test_language_server_starts_light():
    code = f"import sys, mercury_ls.lsp.app; print(*({HEAVY!r} & sys.modules.keys()))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.split() == []
