"""What people install: it holds what belongs in it, the licences of all that it is made of, and nothing else."""

import json
import re
import zipfile

import pytest

from mercury_ls import __version__
from tests.editors.tools import UnreachableError
from tests.editors.vscode.package import EXTENSION, made

pytestmark = [pytest.mark.editor, pytest.mark.slow]

HOLDS = {
    "[Content_Types].xml",
    "extension.vsixmanifest",
    "extension/LICENSE.txt",
    "extension/changelog.md",
    "extension/dist/ThirdPartyNotices.txt",
    "extension/dist/extension.cjs",
    "extension/media/icon.png",
    "extension/media/keys.md",
    "extension/media/menu.md",
    "extension/media/server.md",
    "extension/package.json",
    "extension/readme.md",
}


@pytest.fixture(scope="module")
def package():
    try:
        path = made()
    except UnreachableError as reason:
        pytest.skip(f"Node is not here: {reason}")
    with zipfile.ZipFile(path) as archive:
        yield {name: archive.read(name) for name in archive.namelist()}


def test_package_holds_only_what_belongs_in_it(package):
    assert set(package) == HOLDS


def test_its_manifest_is_the_one_of_this_version(package):
    manifest = json.loads(package["extension/package.json"])
    assert manifest == json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))
    assert manifest["version"] == __version__
    assert f"extension/{manifest['main'].removeprefix('./')}" in package
    assert package["extension/LICENSE.txt"] == (EXTENSION / "LICENSE").read_bytes()


def test_program_loads_nothing_from_outside(package):
    program = package["extension/dist/extension.cjs"].decode()
    builtin = "assert|child_process|crypto|fs|net|os|path|process|readline|timers|url|util|worker_threads"
    assert {
        name
        for name in re.findall(r"\brequire\(\"([^\"]+)\"\)", program)
        if not re.fullmatch(rf"vscode|(node:)?({builtin})(/promises)?", name)
    } == set()


def test_bundled_packages_are_named_with_their_licences(package):
    notices = package["extension/dist/ThirdPartyNotices.txt"].decode()
    inputs = json.loads((EXTENSION / "dist/bundle.json").read_text(encoding="utf-8"))["inputs"]
    names = {found[1] for path in inputs if (found := re.search(r".*node_modules/((?:@[^/]+/)?[^/]+)/", path))}
    titles = re.findall(r"^-{80}\n\n(\S+) [\d.]+ \((.+)\)$", notices, re.MULTILINE)
    assert {name for name, _ in titles} == names
    assert "vscode-languageclient" in names
    assert {licence for _, licence in titles} <= {"MIT", "ISC", "BlueOak-1.0.0"}
    assert notices.count("ermission") >= len(names)
