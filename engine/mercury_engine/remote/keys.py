"""Where the key of a server is: in the environment or in the system's keyring, never in a file of ours."""

import os
from collections.abc import Mapping

from mercury_engine.api import EngineError

__all__ = ["key_at"]


def key_at(place: str, environ: Mapping[str, str] = os.environ) -> str:
    """The key at `env:NAME` or `keyring:SERVICE/NAME`; "" for no place. Errors name the place, never the key."""
    if not place:
        return ""
    kind, _, name = place.partition(":")
    if kind == "env" and name:
        found = environ.get(name, "")
        remedy = f"set {name} where your editor starts, then `mercury-ls serve --stop`"
    elif kind == "keyring" and "/" in name:
        found = _from_keyring(place, *name.split("/", 1))
        remedy = f"store it: `keyring set {name.replace('/', ' ', 1)}`"
    else:
        raise EngineError("key: write where the key is, env:NAME or keyring:SERVICE/NAME, never the key itself")
    found = found.strip()
    if not found:
        raise EngineError(f"key: there is none at {place}: {remedy}")
    if not (found.isascii() and found.isprintable()) or " " in found:
        raise EngineError(f"key: what is at {place} contains characters that no key has: {remedy}")
    return found


def _from_keyring(place: str, service: str, name: str) -> str:
    try:
        import keyring
    except ImportError as error:
        raise EngineError(f"key: {place} needs the package keyring: `pip install keyring`, or use env:NAME") from error
    try:
        return keyring.get_password(service, name) or ""
    except Exception as error:  # whatever the system's keyring raises when it is locked or missing
        raise EngineError(f"key: the keyring does not open ({type(error).__name__}): unlock it") from None
