"""The README, the public names and the house rules are what they say."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

from tests.house import BLOCK, FOLDERS, README, ROOT, modules, sentence, tree

PACKAGES = [folder for folder in FOLDERS if folder != "bench"]
SOURCES = [path for folder in FOLDERS for path in modules(ROOT / folder)]


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_the_readmes_tree_is_the_tree():
    (drawn,) = BLOCK.findall(README.read_text(encoding="utf-8"))
    assert drawn == tree(), "run `make fix`"


@pytest.mark.parametrize("path", SOURCES, ids=named)
def test_a_file_opens_with_a_sentence(path):
    assert len(sentence(path)) > 10


@pytest.mark.parametrize("path", [p for folder in PACKAGES for p in modules(ROOT / folder)], ids=named)
def test_public_names_exist(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            names = ast.literal_eval(node.value)
            assert len(set(names)) == len(names)
            assert set(names) <= defined(tree)


def defined(tree: ast.Module) -> set[str]:
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    names |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    imports = [n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
    return names | {alias.asname or alias.name for node in imports for alias in node.names}


def test_the_commands_of_the_readme_exist():
    readme = README.read_text(encoding="utf-8")
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make ([\w-]+)", readme, re.MULTILINE)) <= targets
    for module in re.findall(r"python -m ((?:bench|mercury_\w+)[\w.]*)", readme):
        assert list(ROOT.glob(f"**/{module.replace('.', '/')}.py")), module


def test_no_placeholder_is_left():
    for page in [README, *(ROOT / "docs").glob("*.md"), ROOT / "ARCHITECTURE.md"]:
        assert "@@" not in page.read_text(encoding="utf-8").replace("@@ ", ""), page


def test_nothing_large_or_private_is_tracked():
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    large = [f for f in files if f and (ROOT / f).exists() and (ROOT / f).stat().st_size > 17 << 20]
    assert large == []
