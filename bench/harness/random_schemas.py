"""Random JSON schemas of what the grammar supports."""

import random
from typing import Any

NAMES = ("id", "name", "path", "Größe", "a b", 'quo"te', "items", "x", "kind", "next")
PATTERNS = ("^[a-z]{2,5}$", "^[A-Z][a-z]+( [A-Z][a-z]+)*$", r"^\d{3}-\d{4}$", "^(ab|cd)+e?$", "^#[0-9a-f]{6}$")
FORMATS = ("date", "date-time", "time", "email", "uuid", "ipv4", "hostname")


def random_schema(seed: int) -> dict[str, Any]:
    """A schema that uses what the grammar supports."""
    draw = random.Random(seed)
    schema = _value(draw, 3)
    if draw.random() < 0.15:
        tree = {"type": "object", "properties": {"value": _value(draw, 1), "children": {"type": "array"}}}
        tree["properties"]["children"]["items"] = {"$ref": "#/$defs/tree"}
        tree |= {"required": ["value", "children"], "additionalProperties": False}
        schema = {"$defs": {"tree": tree}, "$ref": "#/$defs/tree"}
    return schema


def _value(draw: random.Random, depth: int) -> dict[str, Any]:
    kinds = [text, _whole, number, choice, _truth] + ([_record, _record, _row, _either, _open_record] if depth else [])
    return draw.choice(kinds)(draw, depth)


def text(draw: random.Random, depth: int) -> dict[str, Any]:
    shortest = draw.randrange(4)
    bounds = {"minLength": shortest, "maxLength": shortest + draw.randrange(1, 30)}
    return {"type": "string"} | draw.choice(
        [{}, bounds, {"pattern": draw.choice(PATTERNS)}, {"format": draw.choice(FORMATS)}, {"minLength": shortest}]
    )


def _whole(draw: random.Random, depth: int) -> dict[str, Any]:
    least = draw.randrange(-1000, 1000)
    bounds = {"minimum": least, "maximum": least + draw.randrange(500)}
    return {"type": "integer"} | draw.choice(
        [{}, bounds, {"multipleOf": draw.choice([2, 5, 7])}, {"exclusiveMinimum": 0}]
    )


def number(draw: random.Random, depth: int) -> dict[str, Any]:
    return {"type": "number"} | draw.choice([{}, {"minimum": -1.5, "maximum": 2.25}, {"exclusiveMaximum": 0}])


def choice(draw: random.Random, depth: int) -> dict[str, Any]:
    options = draw.sample(["red", "dark blue", 3, None, True, 2.5, "ünï", {"a": 1}, [1, 2]], draw.randrange(1, 5))
    return draw.choice([{"enum": options}, {"const": options[0]}])


def _truth(draw: random.Random, depth: int) -> dict[str, Any]:
    return {"type": draw.choice(["boolean", "null", ["boolean", "null"], ["string", "integer"]])}


def _record(draw: random.Random, depth: int) -> dict[str, Any]:
    names = draw.sample(NAMES, draw.randrange(1, 6))
    required = draw.sample(names, draw.randrange(len(names) + 1))
    properties = {name: _value(draw, depth - 1) for name in names}
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _open_record(draw: random.Random, depth: int) -> dict[str, Any]:
    return {"type": "object"} | draw.choice(
        [
            {"additionalProperties": _value(draw, 0)},
            {"patternProperties": {"^x_": _value(draw, 0)}, "additionalProperties": False},
            {"properties": {"id": _whole(draw, 0)}, "required": ["id"]},
            {},
        ]
    )


def _row(draw: random.Random, depth: int) -> dict[str, Any]:
    fewest = draw.randrange(3)
    bounds = draw.choice([{}, {"minItems": fewest}, {"minItems": fewest, "maxItems": fewest + draw.randrange(4)}])
    if draw.random() < 0.2:
        return {"type": "array", "prefixItems": [_value(draw, 0), _value(draw, 0)], "items": False, "minItems": 2}
    return {"type": "array", "items": _value(draw, depth - 1)} | bounds


def _either(draw: random.Random, depth: int) -> dict[str, Any]:
    return {"anyOf": [_value(draw, depth - 1), _value(draw, depth - 1)]}
