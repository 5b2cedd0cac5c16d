"""Untrusted schemas: a limit on their depth, and a trial of the compiler in a process that may crash."""

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

from mercury_engine.api import RequestError
from mercury_engine.chat.fair_thread import settle
from mercury_engine.chat.kept import KeptProcess

MOST_DEPTH = 2000
"""The maximum recursion depth of the compiler: its stack held at 2,400 references, and overflowed at 5,000."""
LONGEST_PATTERN = 10_000
TRIAL_SECONDS = 10.0
STACK = 64 << 20
"""In bytes, of the threads that compile grammars: ten times what the deepest schema takes."""

Result = TypeVar("Result")


def check_depth(schema: Any, whose: str) -> None:
    """Raise `RequestError` for a schema that might overflow the compiler's stack.

    A compiler that follows references is in each referenced part at most once at a time, so the depths of these
    parts together bound its recursion.
    """
    parts = [schema, *(part for target in _references(schema) if (part := _referred(schema, target)) is not None)]
    depth = sum(map(_depth, parts))
    if depth > MOST_DEPTH:
        raise RequestError(
            f"{whose} is too deep: its parts and what they refer to are {depth:,} levels together, and the limit "
            f"is {MOST_DEPTH:,}; merge definitions, or nest them less"
        )
    longest = max((len(node["pattern"]) for node in _nodes(schema) if isinstance(node.get("pattern"), str)), default=0)
    if longest > LONGEST_PATTERN:
        raise RequestError(f"{whose} has a pattern of {longest:,} characters; the limit is {LONGEST_PATTERN:,}")


def _references(schema: Any) -> set[str]:
    kinds = ("$ref", "$dynamicRef", "$recursiveRef")
    return {node[kind] for node in _nodes(schema) for kind in kinds if isinstance(node.get(kind), str)}


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    pending = [schema]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            yield node
            pending += node.values()
        elif isinstance(node, list):
            pending += node


def _depth(schema: Any) -> int:
    """The depth of the schema itself, without what it defines for others."""
    deepest, pending = 0, [(schema, 1)]
    while pending:
        node, depth = pending.pop()
        if isinstance(node, dict | list):
            deepest = max(deepest, depth)
        if isinstance(node, dict):
            pending += [(part, depth + 1) for name, part in node.items() if name not in ("$defs", "definitions")]
        elif isinstance(node, list):
            pending += [(part, depth + 1) for part in node]
    return deepest


def _referred(schema: Any, reference: str) -> Any:
    """The part of the schema that a JSON pointer refers to, the whole schema for a name that is not a pointer; None
    if there is none."""
    if not reference.startswith("#/"):
        return schema if reference.startswith("#") else None
    node = schema
    for step in reference[2:].split("/"):
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and step in node:
            node = node[step]
        elif isinstance(node, list) and step.isdigit() and int(step) < len(node):
            node = node[int(step)]
        else:
            return None
    return node


def on_deep_stack(work: Callable[[], Result]) -> Result:
    """The result of the work on a thread of its own, whose stack is large enough for any schema on every system."""
    future: Future[Result] = Future()
    usual = threading.stack_size(STACK)
    try:
        threading.Thread(target=settle, args=(future, work), name="schema", daemon=True).start()
    finally:
        threading.stack_size(usual)
    return future.result()


class Trial:
    """A process in which grammars are compiled first."""

    def __init__(self) -> None:
        self._process = KeptProcess("mercury_engine.chat.schema_trial", TRIAL_SECONDS)

    def survives(self, grammar: str, most_symbols: int) -> str:
        """Why the compiler did not survive this grammar, "" if it did; its opinion of the grammar does not matter."""
        if self._process.answer(json.dumps([grammar, most_symbols]).encode()) == b"lived\n":
            return ""
        return f"the compiler took more than {TRIAL_SECONDS:.0f} s, or crashed"

    def close(self) -> None:
        self._process.close()
