"""Git repositories for tests."""

import subprocess
from pathlib import Path

__all__ = ["committed", "git"]

IDENTITY = ("user.name=a", "user.email=a@b.c", "commit.gpgsign=false", "init.defaultBranch=main")


def git(folder: Path, *arguments: str) -> str:
    """What git says, as somebody whose own settings do not matter."""
    known = [part for setting in IDENTITY for part in ("-c", setting)]
    return subprocess.run(["git", *known, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def committed(folder: Path, contents: dict[str, str]) -> str:
    """The commit in which these files are so, of the repository that is made if there is none."""
    if not (folder / ".git").exists():
        folder.mkdir(parents=True, exist_ok=True)
        git(folder, "init", "--quiet")
    for path, text in contents.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "--message", "state")
    return git(folder, "rev-parse", "HEAD").strip()
