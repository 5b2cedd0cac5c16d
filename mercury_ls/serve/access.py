"""Access over TCP: programs with the token, under one of this server's names, and no foreign web pages.

Web pages can reach loopback addresses, and DNS names can be rebound to them.
"""

import hashlib
import ipaddress
import secrets
from collections.abc import Mapping

from msgspec import Struct

from mercury_ls.serve.asgi import RefusedError, Scope, header

PUBLIC = frozenset({"/", "/health", "/openapi.json"})
"""What anyone who can connect may read, besides the files of the page."""


class Access(Struct, frozen=True):
    """`token` is the bearer token that clients must send; `users` are names by the SHA-256 of their own tokens. Without
    either, anyone who can connect has access. `hosts` are the names by which clients reach the server."""

    token: str = ""
    hosts: tuple[str, ...] = ()
    users: Mapping[str, str] = {}

    def admitted(self, scope: Scope) -> str:
        """The name of the user, "" if the token is shared. This comes before reading anything of the request."""
        host, origin = header(scope, "host"), header(scope, "origin")
        _check_host(host, self.hosts)
        if origin not in ("", f"{scope['scheme']}://{host}"):  # the server's own page; its name was checked above
            raise RefusedError(
                403,
                f"the request comes from a web page at {origin[:200]!r}",
                "only programs and the playground may ask",
            )
        path = scope["path"]
        if path in PUBLIC or path.startswith("/static/") or not (self.token or self.users):
            return ""
        scheme, _, sent = header(scope, "authorization").partition(" ")
        token = sent.strip().encode() if scheme.lower() == "bearer" else b""
        user = self.users.get(hashlib.sha256(token).hexdigest())  # the time it takes reveals nothing about a token
        if token and user:
            return user
        if not self.token or not secrets.compare_digest(token, self.token.encode()):
            raise RefusedError(
                401, "the bearer token is missing or wrong", "send the header `Authorization: Bearer <your token>`"
            )
        return ""


def _check_host(host: str, hosts: tuple[str, ...]) -> None:
    """Accept IP addresses, which cannot be rebound, and only the configured names."""
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    if name in ("localhost", *hosts) or _is_address(name):
        return
    raise RefusedError(
        403,
        f"the Host header is {name[:200]!r}",
        f"use the IP address, or start the server with --host-name {name[:200]}",
    )


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True
