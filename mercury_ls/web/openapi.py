"""The OpenAPI document, generated from the endpoints and the types that they take and return."""

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from mercury_ls import __version__
from mercury_ls.serve.access import PUBLIC
from mercury_ls.web.endpoints import Endpoint
from mercury_ls.web.errors import Problem

ABOUT = "Code completion and next edits from a small diffusion model, over HTTP."
WORD, PARAMETER = re.compile(r"\w+"), re.compile(r"{(\w+)}")
TEMPLATE = "#/components/schemas/{name}"
ERRORS = {
    "400": "The body is not valid, or cannot be answered.",
    "401": "The token is missing or wrong.",
    "403": "The Host header or the origin is not accepted.",
    "404": "There is no such model, or it cannot do this.",
    "413": "The body is too large.",
    "429": "Too many requests at once.",
    "503": "The engine is not available.",
}
USUAL = ("400", "401", "403", "413", "429", "503")


def document(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    endpoints = list(endpoints)
    types = [kind for endpoint in endpoints for kind in (endpoint.takes, endpoint.gives)]
    schemas, components = msgspec.json.schema_components([*types, Problem], ref_template=TEMPLATE)
    schema_of = dict(zip(map(str, [*types, Problem]), schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        for path in (endpoint.path, *endpoint.also):
            paths.setdefault(path, {})[endpoint.method.lower()] = _operation(endpoint, path, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {"title": "mercury-ls", "version": __version__, "description": ABOUT},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(endpoint: Endpoint, path: str, schema_of: dict[str, Any]) -> dict[str, Any]:
    content = {"application/json": {"schema": schema_of[str(endpoint.gives)]}}
    if endpoint.gives is None:
        content = {"text/plain": {"schema": {"type": "string"}}}
    problem = {"application/json": {"schema": schema_of[str(Problem)]}}
    statuses = [*(USUAL if endpoint.takes is not None else ("401", "403")), *endpoint.refuses]
    if path in PUBLIC:
        statuses = ["403"]
    if endpoint.streams:
        content["text/event-stream"] = {}
    description: dict[str, Any] = {
        "summary": endpoint.about,
        "operationId": "_".join([endpoint.method.lower(), *WORD.findall(path)]),
        "responses": {
            "200": {"description": "The answer.", "content": content},
            **{status: {"description": ERRORS[status], "content": problem} for status in statuses},
        },
    }
    if names := PARAMETER.findall(path):
        place = {"in": "path", "required": True, "schema": {"type": "string"}}
        description["parameters"] = [{"name": name, **place} for name in names]
    if path in PUBLIC:
        description["security"] = []
    if endpoint.takes is not None:
        description["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": schema_of[str(endpoint.takes)]}},
        }
    return description
