"""Finds a repository's files without running git."""

import os
import re
from pathlib import Path

from mercury_ls.code.files import read_small


def top_of(folder: str) -> str | None:
    """The top of the working tree around `folder`."""
    above = (str(place) for place in (Path(folder), *Path(folder).parents))
    return next((place for place in above if os.path.lexists(os.path.join(place, ".git"))), None)


def git_directory(folder: str) -> str | None:
    """The git directory of the working tree whose top is `folder`; a linked worktree has its own."""
    dot_git = os.path.join(folder, ".git")
    if os.path.isdir(dot_git):
        return dot_git
    text = _read_text(dot_git)
    if text is None or not text.startswith("gitdir:") or "\0" in text:
        return None
    return os.path.normpath(os.path.join(folder, text.removeprefix("gitdir:").strip()))


def exclude_file(directory: str) -> str:
    """`info/exclude` of a git directory. Linked worktrees share that of their repository."""
    common = _read_text(os.path.join(directory, "commondir"))
    return os.path.join(os.path.normpath(os.path.join(directory, common or "")), "info", "exclude")


def personal_exclude_file() -> str:
    """The user's own ignore file: `core.excludesFile`, or git's default."""
    folder = os.path.join(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"), "git")
    for config in (os.path.expanduser("~/.gitconfig"), os.path.join(folder, "config")):
        named = re.search(
            r'^[^\S\n]*+excludesfile\s*+=\s*+"?+([^"\n]+)',
            _read_text(config, 1 << 18) or "",
            re.MULTILINE | re.IGNORECASE,
        )
        if named:
            return os.path.expanduser(named[1].strip())
    return os.path.join(folder, "ignore")


def head(folder: str) -> str | None:
    """The branch or commit that is checked out; None outside a repository."""
    directory = git_directory(folder)
    return directory and _read_text(os.path.join(directory, "HEAD"))


def _read_text(path: str, limit: int = 4096) -> str | None:
    try:
        return read_small(path, limit).decode("utf-8", "surrogateescape").strip()
    except OSError:
        return None
