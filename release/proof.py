"""Installs each artefact, not the clone, into an empty environment, and has it do what it is for."""

import json
import shutil
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from release.shell import CommandError, Run

SAMPLE = """\
from dataclasses import dataclass


@dataclass
class Item:
    price: float
    weight: float
    quantity: int


def total(items: list[Item]) -> float:
    return sum(item.price * item.quantity for item in items)


def weight(items: list[Item]) -> float:
"""
GHOST = "▏"
RENAME = "rename `Item` → `Product`"
"""How the demo draws a suggestion, and what it says of the next edit."""


class Room(NamedTuple):
    """An empty folder for one artefact. `bench` is the demo's code, which no artefact has; `clone` has the drivers of
    editors, and `programs` those of an environment with the wheel."""

    run: Run
    folder: Path
    bench: Path
    clone: Path
    programs: Path
    version: str


def _source_package(room: Room, artefact: Path) -> str:
    return installation(room, artefact, installed(room.run, room.folder, artefact))


def _binary_package(room: Room, artefact: Path) -> str:
    return installation(room, artefact, room.programs)


def installation(room: Room, artefact: Path, programs: Path) -> str:
    """`doctor` finds no problem, `complete` answers, the plugins lie in it, and the demo shows its moment."""
    alone = isolated(room.folder)
    command = programs / "mercury-ls"
    if (told := room.run([command, "--version"], room.folder, alone).strip()) != f"mercury-ls {room.version}":
        raise CommandError(f"{artefact.name} calls itself {told}: expected {room.version}")
    sample = room.folder / "sample.py"
    sample.write_text(f"{SAMPLE}    ", encoding="utf-8")
    try:
        room.run([command, "doctor"], room.folder, alone)
        room.run([command, "complete", f"{sample}:{SAMPLE.count(chr(10)) + 1}:5"], room.folder, alone)
        for editor in ("nvim", "vscode"):
            _check_complete(artefact, room.run([command, "editor", editor], room.folder, alone))
        patient = {**alone, "PYTHONPATH": str(room.bench), "MERCURY_ENGINE_DEADLINE_MS": "60000"}
        _check_demo(artefact, room.run([programs / "python", "-m", "bench.demo"], room.folder, patient))
    finally:
        room.run([command, "serve", "--stop"], room.folder, alone)
    return "doctor, complete, editor, demo"


def _check_complete(artefact: Path, instructions: str) -> None:
    if "is not there" in instructions:
        raise CommandError(f"{artefact.name} lacks what an editor installs:\n{instructions}")


def _check_demo(artefact: Path, shown: str) -> None:
    """It ends well also where a model is silent: what counts is a completion that was taken, and the rename."""
    written, _, offered = shown.partition("is renamed")
    if GHOST not in written or RENAME not in offered:
        raise CommandError(f"{artefact.name}: the demo showed no completion, or no rename:\n{shown}")


def installed(run: Run, folder: Path, artefact: Path) -> Path:
    """The folder of programs of a new environment that has the artefact and what it needs."""
    environment = folder / "environment"
    run([sys.executable, "-m", "venv", environment], folder)
    programs = environment / ("Scripts" if sys.platform == "win32" else "bin")
    run([programs / "python", "-m", "pip", "install", "--quiet", artefact], folder)
    return programs


def isolated(folder: Path) -> dict[str, str]:
    """A home and runtime folder of its own: nothing of the user's settings or running servers takes part."""
    home, runtime = folder / "home", folder / "run"
    home.mkdir()
    runtime.mkdir(mode=0o700)
    names = ("HOME", "USERPROFILE", "APPDATA", "LOCALAPPDATA")
    return {**dict.fromkeys(names, str(home)), "XDG_RUNTIME_DIR": str(runtime), "PYTHONPATH": ""}


def _extension_package(room: Room, artefact: Path) -> str:
    with zipfile.ZipFile(artefact) as package:
        manifest = json.loads(package.read("extension/package.json"))
    checked(artefact, manifest["version"], room.version)
    return _in_editor(room, "vscode", artefact)


def _neovim_plugin(room: Room, artefact: Path) -> str:
    plugin = unpacked(room, artefact)
    told = (plugin / "lua/mercury/version.lua").read_text(encoding="utf-8")
    checked(artefact, told.split('"')[1], room.version)
    return _in_editor(room, "neovim", plugin)


def _vim_extension(room: Room, artefact: Path) -> str:
    extension = unpacked(room, artefact)
    manifest = json.loads((extension / "package.json").read_text(encoding="utf-8"))
    checked(artefact, manifest["version"], room.version)
    return _in_editor(room, "vim", extension)


def _jetbrains_template(room: Room, artefact: Path) -> str:
    return _in_editor(room, "jetbrains", unpacked(room, artefact))


def _in_editor(room: Room, editor: str, artefact: Path) -> str:
    """What is seen of it there, with the server of the wheel."""
    command = [sys.executable, "-m", "tests.editors.tried", editor, artefact, room.programs]
    return room.run(command, room.clone).splitlines()[-1]


def _zed_extension(room: Room, artefact: Path) -> str:
    extension = unpacked(room, artefact)
    for name, path in (("extension.toml", ()), ("Cargo.toml", ("package",))):
        table = tomllib.loads((extension / name).read_text(encoding="utf-8"))
        for key in path:
            table = table[key]
        checked(artefact, table["version"], room.version)
    return "unpacked: its versions; Zed compiles it itself"


def _model_package(room: Room, artefact: Path) -> str:
    """The server of the wheel finds it and completes with it."""
    alone = isolated(room.folder)
    room.run([room.programs / "python", "-m", "pip", "install", "--quiet", "--no-deps", artefact], room.folder)
    sample = room.folder / "sample.py"
    sample.write_text(f"{SAMPLE}    ", encoding="utf-8")
    command, chosen = room.programs / "mercury-ls", ("--set", "engine.model=quicksilver")
    room.run([command, "doctor", *chosen], room.folder, alone)
    room.run([command, "complete", f"{sample}:{SAMPLE.count(chr(10)) + 1}:5", *chosen], room.folder, alone)
    return "doctor, complete"


def _container_context(room: Room, artefact: Path) -> str:
    context = unpacked(room, artefact)
    if shutil.which("docker") is None or not answers(room):
        return "unpacked; docker is not running here, so no image was built"
    name = f"mercury-ls-release:{room.version}"
    room.run(["docker", "build", "--quiet", "-t", name, "-f", context / "Containerfile", context], room.folder)
    room.run(["docker", "run", "--rm", name, "doctor"], room.folder)
    return "image: doctor"


def answers(room: Room) -> bool:
    try:
        room.run(["docker", "info"], room.folder)
    except CommandError:
        return False
    return True


def unpacked(room: Room, artefact: Path) -> Path:
    """The one folder that the archive holds."""
    with tarfile.open(artefact) as archive:
        archive.extractall(room.folder, filter="data")
    return room.folder / artefact.name.removesuffix(".tar.gz").removesuffix(f"-{room.version}")


def checked(artefact: Path, told: str, version: str) -> None:
    if told != version:
        raise CommandError(f"{artefact.name} calls itself {told}: expected {version}; run `make fix`")


PROOFS: dict[str, Callable[[Room, Path], str]] = {
    "VS Code": _extension_package,
    "sdist": _source_package,
    "wheel": _binary_package,
    "Neovim": _neovim_plugin,
    "Vim": _vim_extension,
    "JetBrains": _jetbrains_template,
    "Zed": _zed_extension,
    "model": _model_package,
    "container": _container_context,
}
"""The same names as the builders have; each returns what was seen."""
