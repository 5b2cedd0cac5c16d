"""A process that compiles grammars and reports that it is still alive: `python -m mercury_engine.chat.schema_trial`."""

import json
import sys
import threading

from mercury_engine.chat.grammar import byte_matcher
from mercury_engine.chat.schemas import TRIAL_STACK


def _compile_all() -> None:
    for line in sys.stdin:
        grammar, most_symbols = json.loads(line)
        matcher = byte_matcher(grammar, most_symbols)
        if not matcher.is_error():
            matcher.compute_bitmask()
        sys.stdout.write("lived\n")
        sys.stdout.flush()


def _main() -> None:
    threading.stack_size(TRIAL_STACK)
    thread = threading.Thread(target=_compile_all)
    thread.start()
    thread.join()


if __name__ == "__main__":
    _main()
