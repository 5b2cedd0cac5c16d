"""VS Code as people have it: no extension gets proposed API, which code-server gives to all."""

import os
import re
import shutil
from pathlib import Path

from tests.editors.tools import found

__all__ = ["closed"]

LAUNCHER = """\
#!/bin/sh
here="$(dirname "$(readlink -f "$0")")"
exec "$here/../../node/node" "$here/out/server-main.js" "$@"
"""


def closed() -> Path:
    """Its program, beside the one that it is made of."""
    folder = found("code-server").parent
    target = folder / "closed"
    if not target.exists():
        part = folder / f"closed.{os.getpid()}"
        close(folder / "node_modules/code-server/lib/vscode", part)
        part.rename(target)
    return target / "code-server"


def close(opened: Path, target: Path) -> None:
    shutil.copytree(opened / "out", target / "out")
    for path in opened.iterdir():
        if path.name != "out":
            (target / path.name).symlink_to(path)
    host = target / "out/vs/workbench/api/node/extensionHostProcess.js"
    host.write_text(asking(host.read_text(encoding="utf-8")), encoding="utf-8")
    launcher = target / "code-server"
    launcher.write_text(LAUNCHER, encoding="utf-8")
    launcher.chmod(0o755)


def asking(host: str) -> str:
    """The extension host's program, in which code-server has answered for good whether an extension may."""
    name = re.escape(re.search(r"_isAdditionsProposedApiEnabled=([\w$]+)\(", host)[1])
    always = rf"(function {name}\((\w+),(\w+)\)\{{return)!0(?=\}})"
    closed, count = re.subn(always, r"\1 !!\2.enabledApiProposals?.includes(\3)", host)
    assert count == 1, "code-server gives proposed API in another way now; adapt `asking`"
    return closed
