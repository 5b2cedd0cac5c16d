"""An analyser's process is started again after a failure; packages are found, not run."""

import asyncio
import os
import sys

import pytest

from mercury_ls.names.analyser import AnalyserProcess, installed_packages
from mercury_ls.names.known import NameList, NamesProject, NamesRequest

ASK = NamesRequest("/a.py", "x.", 1, 2)
ANSWERS = 'import sys\nnext(sys.stdin)\nfor line in sys.stdin: print(\'{"names": ["real"]}\', flush=True)'
HANGS = "import sys\nfor line in sys.stdin: pass"
DIES = "raise SystemExit(3)"
NONSENSE = "import sys\nfor line in sys.stdin: print('nonsense', flush=True)"


def process(script):
    return AnalyserProcess(NamesProject(()), (sys.executable, "-I", "-c", script))


async def test_analyser_is_asked_again_and_again():
    analyser = process(ANSWERS)
    assert [await analyser.ask(ASK) for _ in range(3)] == [NameList(("real",))] * 3
    await analyser.close()


@pytest.mark.parametrize(
    ("script", "error"), [(HANGS, TimeoutError), (DIES, (EOFError, OSError)), (NONSENSE, ValueError)]
)
async def test_after_a_failure_it_is_started_again(script, error):
    analyser = process(script)
    with pytest.raises(error):
        async with asyncio.timeout(0.05 if script == HANGS else 30.0):
            await analyser.ask(ASK)
    analyser._command = (sys.executable, "-I", "-c", ANSWERS)
    assert await analyser.ask(ASK) == NameList(("real",))
    await analyser.close()


def test_packages_of_project_come_before_those_of_shell(tmp_path):
    own, other = tmp_path / "project/.venv", tmp_path / "shell"
    for environment in (own, other):
        (environment / "lib/python3.12/site-packages").mkdir(parents=True)
    roots, environ = [str(tmp_path / "project")], {"VIRTUAL_ENV": str(other)}
    assert installed_packages(roots, environ) == (str(other / "lib/python3.12/site-packages"),)
    (own / "pyvenv.cfg").write_text("home = /usr/bin\n")
    assert installed_packages(roots, environ) == (str(own / "lib/python3.12/site-packages"),)
    assert installed_packages([], {}) == ()
    (own / "pyvenv.cfg").unlink()
    (own / "conda-meta").mkdir()
    assert installed_packages(roots, environ) == (str(own / "lib/python3.12/site-packages"),)


@pytest.mark.skipif(os.name == "nt", reason="links need a right that most users lack")
@pytest.mark.parametrize("link", ["lib", "lib/python3.12", "lib/python3.12/site-packages"])
def test_link_out_of_environment_leads_to_no_packages(tmp_path, link):
    packages, environment = "lib/python3.12/site-packages", tmp_path / "project/.venv"
    (tmp_path / "elsewhere" / packages).mkdir(parents=True)
    (environment / link).parent.mkdir(parents=True)
    (environment / "pyvenv.cfg").touch()
    (environment / link).symlink_to(tmp_path / "elsewhere" / link)
    assert installed_packages([str(tmp_path / "project")], {}) == ()


@pytest.mark.skipif(os.name == "nt", reason="links need a right that most users lack")
def test_environment_may_be_a_link(tmp_path):
    packages = "lib/python3.12/site-packages"
    (tmp_path / "elsewhere" / packages).mkdir(parents=True)
    (tmp_path / "elsewhere/pyvenv.cfg").touch()
    (tmp_path / ".venv").symlink_to(tmp_path / "elsewhere")
    assert installed_packages([str(tmp_path)], {}) == (str(tmp_path / ".venv" / packages),)
