"""Jedi knows what a project defines, and does nothing but read what it may."""

import os
import subprocess
import sys

import msgspec
import pytest

from mercury_ls.names.jedi_process import Jedi, refusal
from mercury_ls.names.known import NameList, NamesProject, NamesRequest

pytest.importorskip("jedi")

FILES = {
    "src/shop/__init__.py": "",
    "src/shop/cart.py": "import sys\nsys.stdout.write('run')\nclass Cart:\n    total = 0\n    def add(self): ...\n",
    "src/shop/secret_things.py": "class Hidden:\n    password = 1\n",
    ".gitignore": "secret_things.py\n",
    "src/shop/pay.py": "def pay(by: str, *, late=False): ...\ndef other(**more): ...\n",
    "packages/dynamic.py": "def __getattr__(name): ...\n",
}
ASKED = {
    "from shop.cart import Cart\nCart().": {"total", "add"},
    "from shop.secret_things import Hidden\nHidden.": set(),
    "import dynamic\ndynamic.": {"__getattr__"},
    "import os\nos.path.": {"join"},
    "nobody.": set(),
}


def answers(folder, texts):
    """Of a new process, asked at the end of each text."""
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    project = NamesProject((str(folder),), (str(folder / "packages"),))
    asks = [NamesRequest(str(folder / "a.py"), text, 1 + text.count("\n"), len(text.split("\n")[-1])) for text in texts]
    command = [sys.executable, "-P", "-m", "mercury_ls.names.jedi_process"]
    lines = b"".join(msgspec.json.encode(each) + b"\n" for each in (project, *asks))
    home = {**os.environ, "HOME": str(folder / "home"), "XDG_CACHE_HOME": str(folder / "home")}
    found = subprocess.run(command, input=lines, capture_output=True, env=home, check=True, cwd=folder).stdout
    return [msgspec.json.decode(line, type=NameList) for line in found.splitlines()]


@pytest.mark.slow
def test_existing_names_of_a_project_are_known(tmp_path):
    for answer, expected in zip(answers(tmp_path, [*ASKED]), ASKED.values(), strict=True):
        names = set(answer.names)
        assert expected <= names if expected else not names
    assert not (tmp_path / "home").exists()


LINKS = pytest.mark.skipif(os.name == "nt", reason="links need a right that most users lack")


@LINKS
def test_links_of_an_installed_package_are_judged_where_they_lie(tmp_path):
    for folder in ("packages", "home/.ssh"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "own.py").touch()
    (tmp_path / "packages/linked").symlink_to(tmp_path / "home/.ssh")
    jedi = Jedi(NamesProject((str(tmp_path),), (str(tmp_path / "packages"),)))
    assert jedi.why_hidden(str(tmp_path / "packages/own.py")) is None
    assert jedi.why_hidden(str(tmp_path / "packages/linked/own.py"))


@pytest.mark.parametrize(
    ("event", "arguments"),
    [
        ("open", ("/a", "w", os.O_WRONLY | os.O_CREAT)),
        ("open", ("/hidden", "r", os.O_RDONLY)),
        ("subprocess.Popen", ("sh", [], None, None)),
        ("socket.connect", (None, "")),
        ("os.remove", ("/a", -1)),
        ("pickle.find_class", ("os", "system")),
    ],
)
def test_analyser_may_only_read_files_that_are_not_hidden(event, arguments):
    refuse = refusal(lambda path: "a rule" if path == "/hidden" else None)
    refuse("open", ("/a", "r", os.O_RDONLY))
    with pytest.raises(PermissionError):
        refuse(event, arguments)
