"""Builds what a tag publishes, from a clone of what is committed."""

import hashlib
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from release.notes import notes
from release.shell import Run

SUMS, NOTES = "SHA256SUMS", "NOTES.md"


class Site(NamedTuple):
    """Where a release is built: a clone, the folder for its artefacts, and its version."""

    run: Run
    clone: Path
    out: Path
    version: str


def cloned(run: Run, source: Path, folder: Path) -> Path:
    """A clone of what is committed there; what is not is refused, since a tag would not have it."""
    if changed := run(["git", "status", "--porcelain"], source).strip():
        raise ValueError(f"commit or stash these first, a tag would not have them:\n{changed}")
    run(["git", "clone", "--quiet", "--no-hardlinks", source, folder], source)
    return folder


def sdist(site: Site) -> Path:
    """With the extension of VS Code, which was built before, so that `mercury-ls editor vscode` has it."""
    site.run([sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", site.out], site.clone)
    return site.out / f"mercury_ls-{site.version}.tar.gz"


def wheel(site: Site) -> Path:
    """Built from the sdist, so that it holds all that a build needs."""
    source = site.out / f"mercury_ls-{site.version}.tar.gz"
    site.run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", site.out, source], site.out)
    return site.out / f"mercury_ls-{site.version}-py3-none-any.whl"


def model(site: Site) -> Path:
    """The weights of quicksilver, in their own version."""
    source = site.clone / "models/quicksilver"
    site.run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", site.out, source], site.out)
    return next(site.out.glob("mercury_ls_quicksilver-*.whl"))


def vsix(site: Site) -> Path:
    built = site.run([sys.executable, "-m", "tests.editors.vscode.package"], site.clone)
    return Path(shutil.copy(built.split()[-1], site.out / f"mercury-ls-{site.version}.vsix"))


def neovim(site: Site) -> Path:
    """The plugin as the tree of its own that plugin managers expect, with its history."""
    tree = site.run(["git", "subtree", "-q", "split", "--prefix", "editors/nvim"], site.clone).split()[-1]
    return _archived(site, tree, "mercury.nvim")


def vim(site: Site) -> Path:
    return _archived(site, "HEAD:editors/vim", "coc-mercury")


def jetbrains(site: Site) -> Path:
    return _archived(site, "HEAD:editors/jetbrains", "mercury-ls-lsp4ij")


def zed(site: Site) -> Path:
    return _archived(site, "HEAD:editors/zed", "mercury-ls-zed")


def _archived(site: Site, tree: str, name: str) -> Path:
    path = site.out / f"{name}-{site.version}.tar.gz"
    site.run(["git", "archive", "--format=tar.gz", f"--prefix={name}/", "-o", path, tree], site.clone)
    return path


def container(site: Site) -> Path:
    """All that `docker build` needs: the wheels, and how they are installed."""
    name = "mercury-ls-container"
    context = site.out / name
    context.mkdir()
    shutil.copy(site.clone / "release/Containerfile", context)
    for path in site.out.glob("*.whl"):
        shutil.copy(path, context)
    path = Path(shutil.make_archive(f"{context}-{site.version}", "gztar", site.out, name))
    shutil.rmtree(context)
    return path


BUILDERS: dict[str, Callable[[Site], Path]] = {
    "VS Code": vsix,
    "sdist": sdist,
    "wheel": wheel,
    "Neovim": neovim,
    "Vim": vim,
    "JetBrains": jetbrains,
    "Zed": zed,
    "model": model,
    "container": container,
}
"""In the order in which they need one another."""


def write_texts(site: Site, artefacts: Iterable[Path]) -> None:
    """The notes for the release's page, and the sums in the form that `sha256sum --check` reads."""
    changelog = (site.clone / "CHANGELOG.md").read_text(encoding="utf-8")
    (site.out / NOTES).write_text(notes(changelog, site.version), encoding="utf-8")
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in artefacts]
    (site.out / SUMS).write_text("".join(lines), encoding="utf-8")
