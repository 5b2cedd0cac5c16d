"""A process that compiles grammars and reports that it is still alive: `python -m mercury_engine.chat.schema_trial`."""

import json
import os
import sys

from mercury_engine.chat.grammar import byte_matcher
from mercury_engine.chat.kept import requests
from mercury_engine.chat.schemas import on_deep_stack


def _compile(grammar: str, most_symbols: int) -> None:
    matcher = byte_matcher(grammar, most_symbols)
    if not matcher.is_error():
        matcher.compute_bitmask()


def _main() -> None:
    if hasattr(os, "nice"):
        os.nice(10)  # whoever completes code comes first
    for line in requests():
        grammar, most_symbols = json.loads(line)
        on_deep_stack(lambda: _compile(grammar, most_symbols))  # noqa: B023  it is called at once
        sys.stdout.write("lived\n")
        sys.stdout.flush()


if __name__ == "__main__":
    _main()
