"""How to add an extra to mercury-ls as it was installed: by no name on PyPI, which is not ours yet."""

import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import msgspec


class _Origin(msgspec.Struct):
    """`direct_url.json` of PEP 610: there is one unless the package came from an index."""

    url: str
    dir_info: dict[str, bool] | None = None
    vcs_info: dict[str, str] | None = None


def with_extra(extra: str) -> str:
    """
    >>> with_extra("chat").startswith("run `")
    True
    """
    return _command(extra, _direct_url(), _installer())


def _direct_url() -> str | None:
    try:
        return metadata.distribution("mercury-ls").read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return None


def _installer() -> str:
    if Path(sys.prefix, "uv-receipt.toml").is_file():
        return "uv tool install"
    return "pip install" if find_spec("pip") else "uv pip install"


def _command(extra: str, direct_url: str | None, installer: str) -> str:
    """No path of this machine is in it: whoever asks over HTTP may read it."""
    try:
        origin = msgspec.json.decode(direct_url or "", type=_Origin)
    except msgspec.DecodeError:
        origin = None
    if origin is not None and origin.vcs_info is not None:
        revision = origin.vcs_info.get("requested_revision", "")
        address = f"{origin.vcs_info['vcs']}+{origin.url}{'@' if revision else ''}{revision}"
        return f"run `{installer} 'mercury-ls[{extra}] @ {address}'`"
    if origin is not None and origin.url.endswith(".whl"):
        return f"run `{installer} './{origin.url.rpartition('/')[2]}[{extra}]'` beside the wheel"
    editable = "-e " if origin is not None and origin.dir_info and origin.dir_info.get("editable") else ""
    return f"run `{installer} {editable}'.[{extra}]'` in a clone of mercury-ls"
