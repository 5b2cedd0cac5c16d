"""The configuration of a team's server: its address, its users and its number of engines."""

import hashlib
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from mercury_engine.installation import with_extra

DIGEST = re.compile(r"[0-9a-f]{64}")
NAME = re.compile(r"[\w.@+-]{1,64}", re.ASCII)


class TeamError(Exception):
    """The configuration cannot be used. The message says where, what is wrong, and what to write instead."""


class Replicas(Struct, frozen=True, forbid_unknown_fields=True):
    """Between `minimum` and `maximum` engines, enough for each to work on about `requests` at a time. Each reserves
    `cpus` cores and `gpus` devices of its machine."""

    minimum: Annotated[int, Meta(ge=1, le=1024)] = 1
    maximum: Annotated[int, Meta(ge=1, le=1024)] = 1
    requests: Annotated[float, Meta(gt=0)] = 4.0
    cpus: Annotated[float, Meta(ge=0)] = 1.0
    gpus: Annotated[float, Meta(ge=0)] = 0.0


class TeamConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """`users`: the SHA-256 of each user's token, by name. `requests_per_user`: how many requests of one user are
    answered at a time. `cluster`: the address of a Ray cluster; if empty, one is started on this machine."""

    users: dict[str, str]
    listen: str = "127.0.0.1:8391"
    hosts: tuple[str, ...] = ()
    certificate: str = ""
    key: str = ""
    model: str = ""
    replicas: Replicas = Replicas()
    requests_per_user: Annotated[int, Meta(ge=1, le=1024)] = 4
    cluster: str = ""


def read_config(path: Path) -> TeamConfig:
    try:
        config = msgspec.yaml.decode(path.read_bytes(), type=TeamConfig)
    except OSError as error:
        raise TeamError(f"{path}: cannot be read ({error.strerror or error})") from error
    except ImportError as error:
        raise TeamError(f"a team's server needs the extra `serve`: {with_extra('serve')}") from error
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:  # also raised for impossible dates and numbers
        message = " ".join(str(error).split()).replace('in "<byte string>", ', "at ")
        raise TeamError(f"{path}: {message}; docs/TEAM.md has an example") from error
    if not config.users:
        raise TeamError(f"{path}: users is empty, so no one could use the server: {ADD}")
    for name, digest in config.users.items():
        if wrong := misnamed(name):
            raise TeamError(f"{path}: users: {wrong}")
        if not DIGEST.fullmatch(digest):
            raise TeamError(f"{path}: users.{name} is not the SHA-256 of a token: {ADD}")
    if len(set(config.users.values())) < len(config.users):
        raise TeamError(f"{path}: users: two users have the same token: {ADD} for each")
    minimum, maximum = config.replicas.minimum, config.replicas.maximum
    if maximum < minimum:
        raise TeamError(f"{path}: replicas.maximum is {maximum}, less than minimum, {minimum}")
    return config


def lacking(replicas: Replicas, available: Mapping[str, float]) -> str:
    """The resource, by Ray's name, of which there is too little for the minimum number of engines, if any."""
    for name, amount in (("CPU", replicas.cpus), ("GPU", replicas.gpus)):
        if replicas.minimum * amount > available.get(name, 0):
            needed = f"{replicas.minimum} engines that reserve {amount:g} {name}s each"
            return f"replicas: {needed} do not fit on {available.get(name, 0):g}: lower minimum or {name.lower()}s"
    return ""


def misnamed(name: str) -> str:
    return "" if NAME.fullmatch(name) else f"{name[:80]!r} is not a valid name: use letters, digits and . _ @ + -"


ADD = "`mercury-ls serve --new-token NAME` makes one"


def new_token() -> tuple[str, str]:
    """A token, and its digest."""
    token = secrets.token_urlsafe(32)
    return token, hashlib.sha256(token.encode()).hexdigest()
