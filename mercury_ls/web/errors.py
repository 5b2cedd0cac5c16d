"""Refused requests, answered in OpenAI's form: a status, what is wrong, where in the request, and what to do."""

import re
from collections.abc import Mapping

import msgspec
from msgspec import Struct
from starlette.responses import Response

FIELD = re.compile(r" - at `\$\.?(.*)`\Z")
FRACTION = "`float` that's a multiple of 1.0"
KIND = re.compile(r"`([a-z]+(?: \| [a-z]+)*)`")
KINDS_OF_JSON = {
    "float": "a number",
    "int": "a number",
    "str": "a string",
    "bool": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}


class ErrorBody(Struct, frozen=True):
    """What is wrong, in words; `param` names the part of the request, `code` is for programs."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class Problem(Struct, frozen=True):
    """The body of every answer that is not a success."""

    error: ErrorBody


KINDS: Mapping[int, str] = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    500: "server_error",
    503: "server_error",
}


class ApiError(Exception):
    """A refused request."""

    def __init__(self, status: int, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body = ErrorBody(message, KINDS.get(status, "invalid_request_error"), param, code)


def problem(error: ApiError, headers: Mapping[str, str] | None = None) -> Response:
    body = msgspec.json.encode(Problem(error.body))
    return Response(body, error.status, headers, media_type="application/json")


def refusal_of(error: Exception) -> ApiError:
    """The error for a body that does not have its type."""
    text = str(error).replace("Input data was truncated", "it is empty, or JSON that ends too early")
    match = FIELD.search(text)
    where = match[1] if match else ""
    reason = KIND.sub(_in_json, FIELD.sub("", text).replace(FRACTION, "a whole number"))
    message = f"{where}: {reason}" if where else reason
    return ApiError(400, f"invalid body: {message}; /openapi.json describes every field", where or None, "invalid_body")


def _in_json(match: re.Match[str]) -> str:
    """A type in JSON's terms; the name of a field stays as it is."""
    names = match[1].split(" | ")
    return " or ".join(KINDS_OF_JSON[name] for name in names) if KINDS_OF_JSON.keys() >= set(names) else match[0]
