"""One privacy style: what a module shares is in its `__all__`, every other function and class has an underscore."""

import ast
from pathlib import Path

import mercury_engine


def test_functions_and_classes_are_shared_or_private():
    for file in Path(mercury_engine.__file__).parent.rglob("*.py"):
        body = ast.parse(file.read_text(encoding="utf-8")).body
        defined = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        lists = (node for node in body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
        shared = {name for found in lists for name in ast.literal_eval(found.value)}
        assert {name for name in defined if not name.startswith("_")} == defined & shared, file
