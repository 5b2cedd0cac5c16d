"""Schemas that strangers send: how deep they may be, and a trial of the compiler in a process that may die of them."""

import json
from collections.abc import Iterator
from typing import Any

from mercury_engine.api import RequestError
from mercury_engine.chat.kept import KeptProcess

__all__ = ["TRIAL_STACK", "Trial", "check_depth"]

MOST_DEPTH = 2000
"""How deep the compiler may have to recurse: it kept its stack at 2,400 references, and lost it at 5,000."""
LONGEST_PATTERN = 10_000
TRIAL_SECONDS = 10.0
TRIAL_STACK = 2_000_000
"""No more than threads have on any system: what survives here survives in the engine."""


def check_depth(schema: Any, whose: str) -> None:
    """Raises `RequestError` for a schema that the compiler might lose its stack on.

    A compiler that follows references is at most once in each part that is referred to at a time, so that the depths of
    these parts together bound its recursion.
    """
    parts = [schema, *(part for target in _references(schema) if (part := _referred(schema, target)) is not None)]
    depth = sum(map(_depth, parts))
    if depth > MOST_DEPTH:
        raise RequestError(
            f"{whose} is too deep: its parts and what they refer to are {depth:,} levels together, and {MOST_DEPTH:,} "
            "are allowed; merge definitions, or nest them less"
        )
    longest = max((len(node["pattern"]) for node in _nodes(schema) if isinstance(node.get("pattern"), str)), default=0)
    if longest > LONGEST_PATTERN:
        raise RequestError(f"{whose} has a pattern of {longest:,} characters: {LONGEST_PATTERN:,} are allowed")


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
    """Of the schema itself, without what it defines for others."""
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
    """The part of the schema that a JSON pointer refers to, the whole schema for a name that is no pointer; None if
    there is none."""
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


class Trial:
    """A process in which grammars are compiled first."""

    def __init__(self) -> None:
        self._process = KeptProcess("mercury_engine.chat.schema_trial", TRIAL_SECONDS)

    def survives(self, grammar: str, most_symbols: int) -> str:
        """Why the compiler did not live through this grammar, "" if it did; what it says of the grammar is its own
        business."""
        if self._process.answer(json.dumps([grammar, most_symbols]).encode()) == b"lived\n":
            return ""
        return f"the compiler took more than {TRIAL_SECONDS:.0f} s, or crashed"

    def close(self) -> None:
        self._process.close()
