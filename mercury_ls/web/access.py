"""Access control: programs with the token, under one of this server's names, and no foreign web pages."""

import hashlib
import secrets
from collections.abc import Mapping

from msgspec import Struct
from starlette.types import ASGIApp, Receive, Scope, Send

from mercury_ls.serve.app import RefusedError, check_host, check_origin, check_token, header
from mercury_ls.web.errors import ApiError, problem

PUBLIC = frozenset({"/", "/health", "/openapi.json"})
"""What anyone who can connect may read, besides the files of the page."""


class Access(Struct, frozen=True):
    """`token` is the bearer token that clients must send; `users` are names by the SHA-256 of their own tokens. Without
    either, anyone who can connect has access. `hosts` are the names by which clients reach the server, `origins` the
    foreign pages that have access."""

    token: str = ""
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    users: Mapping[str, str] = {}


class Guard:
    """Checks every request before reading anything of it. A refused connection is closed: none is occupied without the
    token."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app = app
        self.access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            scope["user"] = self.admitted(scope)
        except RefusedError as refused:
            error = ApiError(refused.status, f"{refused}: {refused.body['remedy']}", code=CODES.get(refused.status))
            await problem(error, {"connection": "close"})(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def admitted(self, scope: Scope) -> str:
        """The name of the user, "" if the token is shared."""
        access, host, origin = self.access, header(scope, "host"), header(scope, "origin")
        check_host(host, access.hosts)
        if origin != f"{scope['scheme']}://{host}":  # the server's own page; its name was checked above
            check_origin(origin, access.origins)
        if _is_public(scope["path"]) or not (access.token or access.users):
            return ""
        authorization = header(scope, "authorization")
        if user := access.users.get(_digest(authorization)):
            return user
        check_token(authorization, access.token or UNGUESSABLE)
        return ""


def _is_public(path: str) -> bool:
    return path in PUBLIC or path.startswith("/static/")


CODES = {401: "invalid_api_key", 403: "forbidden"}
UNGUESSABLE = secrets.token_hex()
"""Where users have their own tokens, there is no shared one."""


def _digest(authorization: str) -> str:
    """The digest of the token. Looking one up takes no time that reveals anything about a token."""
    scheme, _, token = authorization.partition(" ")
    return hashlib.sha256(token.strip().encode()).hexdigest() if scheme.lower() == "bearer" else ""


def user_of(scope: Scope) -> str:
    return scope.get("user", "")
