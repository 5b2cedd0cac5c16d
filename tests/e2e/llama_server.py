"""llama.cpp's server of the Python package llama-cpp-python, in a process of its own, with weights of ours.

Its Python is named by MERCURY_PEERS_PYTHON; nothing of llama.cpp is loaded into the process of the tests.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.harness.servers import free_port
from mercury_engine.model.export import dequantized, read
from mercury_engine.model.published import gguf_name
from mercury_engine.remote.http import HttpClient, LinkError

PEERS_PYTHON = "MERCURY_PEERS_PYTHON"
SCRIPT = Path(__file__).with_name("llama_peer.py")
SPECIALS = {0: "<s>", 3: "</s>", 4: "[SUFFIX]", 5: "[PREFIX]"}
"""Our own tokens under the names that Codestral has for theirs: suffix first, then the text before the cursor."""

START_SECONDS = 90.0
MODEL = "codestral-of-ours"


def python() -> str:
    """The interpreter with llama-cpp-python, or the test is skipped with the reason."""
    chosen = os.environ.get(PEERS_PYTHON, "")
    if not chosen:
        pytest.skip(f"{PEERS_PYTHON} names no Python with llama-cpp-python[server] and gguf")
    found = subprocess.run([chosen, "-c", "import llama_cpp.server, gguf"], capture_output=True, text=True)
    if found.returncode < 0:
        pytest.skip(f"llama.cpp dies on this machine with {signal.Signals(-found.returncode).name}")
    if found.returncode:
        pytest.skip(f"{chosen} has no llama-cpp-python[server] and gguf: {found.stderr.strip().splitlines()[-1]}")
    return chosen


def run_peer(*arguments: str, stdin: str = "") -> str:
    found = subprocess.run([python(), str(SCRIPT), *arguments], input=stdin, capture_output=True, text=True)
    if found.returncode < 0:
        pytest.skip(f"llama.cpp died with {signal.Signals(-found.returncode).name} on this machine's processor")
    assert found.returncode == 0, found.stderr
    return found.stdout


def write_model(folder: Path, target: Path) -> Path:
    """The weights of a model of ours as a GGUF file in full precision, with its tokenizer."""
    config, weights = read(folder)
    stored = json.loads((folder / "tokenizer.json").read_bytes())
    tokens = {number: token for token, number in stored["model"]["vocab"].items()}
    tokens |= {each["id"]: each["content"] for each in stored["added_tokens"]} | SPECIALS
    merges = [each if isinstance(each, str) else " ".join(each) for each in stored["model"]["merges"]]
    shape = {name: getattr(config, name) for name in config.__struct_fields__}
    about = {
        **shape,
        "tokens": [tokens.get(number, f"<unused{number}>") for number in range(config.vocabulary)],
        "specials": len(stored["added_tokens"]),
        "merges": merges,
        "bos": 0,
        "eos": 3,
    }
    target.with_suffix(".json").write_text(json.dumps(about), encoding="utf-8")
    np.savez(target.with_suffix(".npz"), **{gguf_name(name): weight for name, weight in dequantized(weights).items()})
    run_peer("write", str(target.with_suffix(".npz")), str(target.with_suffix(".json")), str(target))
    return target


def completions(model: Path, prompts: Sequence[str], most: int) -> list[dict[str, Any]]:
    """What llama.cpp says greedily, without a server."""
    return json.loads(run_peer("complete", str(model), str(most), stdin=json.dumps(list(prompts))))


class LlamaServer:
    """Can be killed, started again at the same port, and stopped in time."""

    def __init__(self, model: Path, log: Path) -> None:
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self._model = model
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, alias: str = MODEL) -> None:
        options = {"model": self._model, "model_alias": alias, "port": self.port, "host": "127.0.0.1"}
        options |= {"n_ctx": 1024, "n_threads": 1}
        arguments = [part for name, value in options.items() for part in (f"--{name}", str(value))]
        with self._log.open("ab") as log:
            command = [python(), "-m", "llama_cpp.server", *arguments]
            variables = {**os.environ, "PYTHONUNBUFFERED": "1"}
            self._process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=variables)
        self._await()

    def _await(self) -> None:
        client, until = HttpClient(self.address), time.monotonic() + START_SECONDS
        try:
            while time.monotonic() < until:
                if (code := self._process.poll()) is not None:
                    self._report_death(code)
                try:
                    client.fetch("GET", "/v1/models", seconds=1.0)
                except LinkError:
                    time.sleep(0.1)  # another process: it tells nobody when it is ready
                else:
                    return
        finally:
            client.close()
        pytest.fail(f"llama.cpp's server did not listen within {START_SECONDS:.0f} s: {self._tail()}")

    def _report_death(self, code: int) -> None:
        if code < 0:
            pytest.skip(f"llama.cpp's server died with {signal.Signals(-code).name} on this machine's processor")
        pytest.fail(f"llama.cpp's server exited with code {code}: {self._tail()}")

    def says(self, text: str) -> bool:
        return text in self._log.read_text(errors="replace")

    def _tail(self) -> str:
        return self._log.read_text(errors="replace")[-500:]

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def suspend(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)
