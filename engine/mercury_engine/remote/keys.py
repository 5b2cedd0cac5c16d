"""Where the key of a server is: in the environment or in the system's keyring, never in a file of ours. Other headers
may be in the model's record, which only the user can read."""

import os
from collections.abc import Mapping

from mercury_engine.api import EngineError
from mercury_engine.record import ModelRecord

PLACES = ("env:", "keyring:")


def headers_of(record: ModelRecord, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What every request to the server carries: the key, unless a header says otherwise, and the record's own headers.
    All values are secrets."""
    own = {name: _value_of(name, value, environ) for name, value in record.headers.items()}
    if not record.key or any(name.lower() == "authorization" for name in own):
        return own
    return {"Authorization": f"Bearer {key_at(record.key, environ)}", **own}


def key_at(place: str, environ: Mapping[str, str] = os.environ) -> str:
    """The key at `env:NAME` or `keyring:SERVICE/NAME`; "" for no place. Errors name the place, never the key."""
    if not place:
        return ""
    key, remedy = _secret_at("key", place, environ)
    if " " in key:
        raise EngineError(f"key: what is at {place} contains characters that no key has: {remedy}")
    return key


def _value_of(name: str, value: str, environ: Mapping[str, str]) -> str:
    if value.startswith(PLACES):
        return _secret_at(f"header {name}", value, environ)[0]
    if not (value and value.isascii() and value.isprintable()):
        raise EngineError(f"header {name}: its value is empty or has characters that headers cannot have: add it again")
    return value


def _secret_at(setting: str, place: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """The secret, and what to do if it is wrong."""
    kind, _, name = place.partition(":")
    if kind == "env" and name:
        secret = environ.get(name, "")
        remedy = f"set {name} where your editor starts, then `mercury-ls serve --stop`"
    elif kind == "keyring" and "/" in name:
        secret = _from_keyring(place, *name.split("/", 1))
        remedy = f"store it: `keyring set {name.replace('/', ' ', 1)}`"
    else:
        raise EngineError(f"{setting}: write where it is, env:NAME or keyring:SERVICE/NAME, never the key itself")
    secret = secret.strip()
    if not secret:
        raise EngineError(f"{setting}: there is none at {place}: {remedy}")
    if not (secret.isascii() and secret.isprintable()):
        raise EngineError(f"{setting}: what is at {place} contains characters that no key has: {remedy}")
    return secret, remedy


def _from_keyring(place: str, service: str, name: str) -> str:
    try:
        import keyring  # pyright: ignore[reportMissingImports]  asked for by name, never installed along
    except ImportError as error:
        raise EngineError(f"key: {place} needs the package keyring: `pip install keyring`, or use env:NAME") from error
    try:
        return keyring.get_password(service, name) or ""
    except Exception as error:  # whatever the system's keyring raises when it is locked or missing
        raise EngineError(f"key: the keyring does not open ({type(error).__name__}): unlock it") from None
