"""What is built from a small repository, by real git and by stand-ins for everything that takes minutes."""

import hashlib
import json
import tarfile
import zipfile
from pathlib import Path

import pytest

from mercury_ls import __version__
from release.__main__ import PAGE, released, table, with_table
from release.artefacts import BUILDERS, NOTES, SUMS
from release.proof import PROOFS, Room
from release.shell import CommandError, run
from tests.repositories import committed

SDIST = f"mercury_ls-{__version__}.tar.gz"
WHEEL = f"mercury_ls-{__version__}-py3-none-any.whl"
MODEL = "mercury_ls_quicksilver-1.2.3-py3-none-any.whl"
DEMO = "def weight▏(items)\nthe class is renamed\nrename `Item` → `Product`: 2 here, 2 in invoice.py\n"
REPOSITORY = {
    "CHANGELOG.md": f"# Changelog\n\n## {__version__}\n\n* It exists.\n",
    "bench/demo.py": "",
    "release/Containerfile": "FROM scratch\n",
    "editors/nvim/lua/mercury/version.lua": f'M.plugin = "{__version__}"\n',
    "editors/zed/extension.toml": f'version = "{__version__}"\n',
    "editors/vim/package.json": f'{{"version": "{__version__}"}}\n',
    "editors/jetbrains/template.json": "{}\n",
    "editors/zed/Cargo.toml": f'[package]\nversion = "{__version__}"\n',
}


class Machine:
    """Runs git; builders write files without a content, and installed programs answer as they should."""

    def __init__(self, failing: str = "", version: str = __version__, demo: str = DEMO):
        self.failing, self.version, self.demo = failing, version, demo
        self.commands: list[str] = []

    def __call__(self, command, folder, more=None):
        words = list(map(str, command))
        told = " ".join([Path(words[0]).name.split(".")[0], *words[1:]])
        self.commands.append(told)
        if self.failing and self.failing in told:
            raise CommandError(f"{told} ended with 1")
        if words[0] == "git":
            return run(command, folder)
        if "hatchling" in words:
            (Path(words[-1]) / SDIST).write_bytes(b"sdist")
        if "wheel" in words:
            (Path(words[-2]) / (MODEL if "quicksilver" in words[-1] else WHEEL)).write_bytes(b"wheel")
        if "tests.editors.vscode.package" in words:
            return f"{self.extension(Path(folder) / 'x.vsix')}\n"
        if "bench.demo" in words:
            return self.demo
        if "tests.editors.tried" in words:
            return f"\n{words[3]}: a completion, a rename\n"
        return f"mercury-ls {self.version}\n" if "--version" in words else ""

    def extension(self, path: Path) -> Path:
        with zipfile.ZipFile(path, "w") as package:
            manifest = {"version": self.version, "main": "dist/extension.cjs"}
            package.writestr("extension/package.json", json.dumps(manifest))
            package.writestr("extension/dist/extension.cjs", "")
        return path

    def asked(self, program: str) -> list[str]:
        return [told.removeprefix(f"{program} ") for told in self.commands if told.startswith(f"{program} ")]


@pytest.fixture
def source(tmp_path):
    committed(tmp_path / "source", REPOSITORY)
    return tmp_path / "source"


def test_artefacts_are_all_built_and_tried(source, tmp_path):
    rows = released(Machine(failing="docker"), source, tmp_path / "out")
    assert [row.kind for row in rows] == list(BUILDERS) == list(PROOFS)
    assert [row.path.parent for row in rows] == [tmp_path / "out"] * len(rows)
    for row in rows:
        assert f"| {row.kind} | {row.path.name} |" in table(rows)


def test_page_gets_table_of_the_last_release_and_keeps_its_text():
    page = PAGE.read_text(encoding="utf-8")
    renewed = with_table(with_table(page, "old"), "| new |")
    assert renewed.endswith("## As last built\n\n| new |\n")
    assert renewed.partition("## As last")[0] == page.partition("## As last")[0]
    assert "old" not in renewed.rpartition("##")[2]
    with pytest.raises(ValueError, match="has no heading"):
        with_table("", "")


def test_sums_and_notes_lie_beside_them(source, tmp_path):
    rows = released(Machine(failing="docker"), source, tmp_path / "out")
    sums = dict(reversed(line.split("  ")) for line in (tmp_path / "out" / SUMS).read_text().splitlines())
    assert sums == {row.path.name: hashlib.sha256(row.path.read_bytes()).hexdigest() for row in rows}
    assert (tmp_path / "out" / NOTES).read_text() == "* It exists.\n"
    assert {path.name for path in (tmp_path / "out").iterdir()} == {*sums, SUMS, NOTES}


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("Neovim", {"mercury.nvim/lua/mercury/version.lua"}),
        ("Vim", {"coc-mercury/package.json"}),
        ("JetBrains", {"mercury-ls-lsp4ij/template.json"}),
        ("Zed", {"mercury-ls-zed/extension.toml", "mercury-ls-zed/Cargo.toml"}),
        ("container", {f"mercury-ls-container/{name}" for name in ("Containerfile", WHEEL, MODEL)}),
    ],
)
def test_archive_holds_one_folder(source, tmp_path, kind, names):
    rows = released(Machine(failing="docker"), source, tmp_path / "out")
    with tarfile.open(next(row.path for row in rows if row.kind == kind)) as archive:
        assert {member.name for member in archive if member.isfile()} == names


def test_uncommitted_files_are_refused(source, tmp_path):
    (source / "new.py").write_text("")
    with pytest.raises(ValueError, match=r"commit or stash these first.*\n\?\? new\.py"):
        released(Machine(), source, tmp_path / "out")


def room(machine, tmp_path) -> Room:
    return Room(machine, tmp_path, tmp_path / "tools", tmp_path / "clone", tmp_path / "programs", __version__)


def test_plugins_are_tried_with_the_server_of_the_wheel(source, tmp_path):
    machine = Machine(failing="docker")
    rows = {row.kind: row.seen for row in released(machine, source, tmp_path / "out")}
    assert rows["Neovim"] == "neovim: a completion, a rename"
    tried = [told.split() for told in machine.commands if "tests.editors.tried" in told]
    assert [words[3] for words in tried] == ["vscode", "neovim", "vim", "jetbrains"]
    (programs,) = {words[5] for words in tried}
    assert any(told.endswith(f"-m pip install --quiet {tmp_path / 'out' / WHEEL}") for told in machine.commands)
    assert Path(programs).name == "bin"


def test_installed_package_is_asked_for_all_that_it_promises(tmp_path):
    machine = Machine()
    PROOFS["wheel"](room(machine, tmp_path), tmp_path / WHEEL)
    place = f"{tmp_path / 'sample.py'}:16:5"
    asked = ["--version", "doctor", f"complete {place}", "editor nvim", "editor vscode", "serve --stop"]
    assert machine.asked("mercury-ls") == asked
    assert machine.asked("python")[-1] == "-m bench.demo"


def test_model_is_asked_for_by_name_in_the_environment_of_the_server(tmp_path):
    machine = Machine()
    PROOFS["model"](room(machine, tmp_path), tmp_path / MODEL)
    place, chosen = f"{tmp_path / 'sample.py'}:16:5", "--set engine.model=quicksilver"
    assert machine.asked("python") == [f"-m pip install --quiet --no-deps {tmp_path / MODEL}"]
    assert machine.asked("mercury-ls") == [f"doctor {chosen}", f"complete {place} {chosen}"]


def test_server_is_stopped_also_where_a_problem_is_found(tmp_path):
    machine = Machine(failing="doctor")
    with pytest.raises(CommandError, match="doctor"):
        PROOFS["wheel"](room(machine, tmp_path), tmp_path / WHEEL)
    assert machine.asked("mercury-ls")[-1] == "serve --stop"


@pytest.mark.parametrize(
    "demo",
    [DEMO.replace("▏", ""), DEMO.replace("Product", "?"), "Nothing was offered."],
    ids=["no ghost", "no rename", "nothing"],
)
def test_demo_that_shows_nothing_is_no_proof(tmp_path, demo):
    with pytest.raises(CommandError, match="the demo showed no completion, or no rename"):
        PROOFS["wheel"](room(Machine(demo=demo), tmp_path), tmp_path / WHEEL)


def test_artefact_of_another_version_is_refused(tmp_path):
    machine = Machine(version="0.0.9")
    with pytest.raises(CommandError, match=r"calls itself mercury-ls 0\.0\.9"):
        PROOFS["wheel"](room(machine, tmp_path), tmp_path / WHEEL)
    with pytest.raises(CommandError, match=r"calls itself 0\.0\.9"):
        PROOFS["VS Code"](room(machine, tmp_path), machine.extension(tmp_path / "x.vsix"))
