"""The README's tree, drawn from the files' own first sentences: `python -m tests.house` renews it."""

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
BLOCK = re.compile(r"(?<=```text\n).*?(?=```\n\Z)", re.DOTALL)

FILES = {
    "pyproject.toml": "the one distribution, its dependencies and extras",
    "ARCHITECTURE.md": "the path of a keystroke, the map, the invariants",
    "CONTRIBUTING.md": "five commands and the rules in short",
    "Makefile": "demo, check, fix, test, bench; CI calls the same targets",
}
FOLDERS = {
    "mercury_ls": "the editor side: LSP, text, syntax, policy",
    "mercury_ls/serve": "the engine server",
    "engine/mercury_engine": "the model side: tokens and tensors",
    "kernels/mercury_kernels": "pure functions on tensors",
    "training/mercury_training": "corpus, training and evaluation of the models that ship",
    "bench": "measurements of the real thing, and the demo",
    "bench/asking": "who can be asked for an answer: our server, our weights, peers",
    "bench/replaying": "recorded edit sessions, played back as real editors would",
}
NESTED = {"mercury_ls/serve", "bench/asking", "bench/replaying"}
OTHERS = {
    "editors": "what each editor needs: nvim, vscode, zed; documented for Helix, Emacs, Sublime and Kakoune",
    "tests": "mirrors the tree; tests/e2e drives the real server, tests/editors real editors",
    "docs": "settings, dependencies, the log of what was measured and tried",
}


def tree() -> str:
    lines = [line(0, name, text) for name, text in FILES.items()]
    for folder, text in FOLDERS.items():
        depth = int(folder in NESTED)
        lines.append(line(depth, folder.split("/")[-1] + "/" if depth else folder + "/", text))
        lines += [line(depth + 1, path.name, sentence(path)) for path in modules(ROOT / folder)]
    lines += [line(0, f"{name}/", text) for name, text in OTHERS.items()]
    return "\n".join(lines) + "\n"


def line(depth: int, name: str, text: str) -> str:
    return f"{'  ' * depth + name:28} {text}"


def modules(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.py") if not path.name.startswith("__"))


def sentence(path: Path) -> str:
    """A file's first sentence, on one line and without its full stop."""
    text = " ".join((ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split())
    return re.split(r"\.(?:\s|$)", text, maxsplit=1)[0]


def main() -> None:
    before = README.read_text(encoding="utf-8")
    README.write_text(BLOCK.sub(lambda _: tree(), before), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
