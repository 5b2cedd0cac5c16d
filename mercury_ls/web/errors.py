"""Refused requests, answered in OpenAI's form: a status, what is wrong, where in the request, and what to do."""

import re
from collections.abc import Mapping

from msgspec import Struct

from mercury_ls.serve.asgi import CLOSE, RefusedError, Response, as_json

FIELD = re.compile(r" - at `\$\.?+((?:(?! - at `).)*)`\Z")
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


class _Refusal(Struct, frozen=True):
    """What is said of a status besides the reason."""

    kind: str = "invalid_request_error"
    code: str | None = None
    headers: Mapping[str, str] = {}


REFUSALS: Mapping[int, _Refusal] = {
    401: _Refusal("authentication_error", "invalid_api_key", CLOSE),
    403: _Refusal("permission_error", "forbidden", CLOSE),
    404: _Refusal("not_found_error", "unknown_url"),
    408: _Refusal(code="slow", headers=CLOSE),
    413: _Refusal(code="too_large", headers=CLOSE),
    429: _Refusal("rate_limit_error", "busy", {"retry-after": "1"}),
    500: _Refusal("server_error", "server_error"),
    503: _Refusal("server_error", headers={"retry-after": "3"}),
}
"""A refused connection is closed. OpenAI's packages ask twice again, and small models are loaded by then."""


class ApiError(RefusedError):
    """A refused request in OpenAI's terms."""

    def __init__(self, status: int, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(status, message, "")
        self.param = param
        self.code = code


def body_of(error: RefusedError) -> Problem:
    message = f"{error}: {error.remedy}" if error.remedy else str(error)
    refusal = REFUSALS.get(error.status, _Refusal())
    return Problem(ErrorBody(message, refusal.kind, error.param, error.code or refusal.code))


def problem(error: RefusedError) -> Response:
    return as_json(body_of(error), error.status, {**REFUSALS.get(error.status, _Refusal()).headers, **error.headers})


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
