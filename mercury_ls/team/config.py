"""What a team's server is told: where it listens, who may ask, how many engines there are."""

import hashlib
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

__all__ = ["Replicas", "TeamConfig", "TeamError", "lacking", "misnamed", "new_token", "read_config"]

DIGEST = re.compile(r"[0-9a-f]{64}")
NAME = re.compile(r"[\w.@+-]{1,64}", re.ASCII)


class TeamError(Exception):
    """The configuration cannot be used. The message says where, what is wrong, and what to write instead."""


class Replicas(Struct, frozen=True, forbid_unknown_fields=True):
    """Between `minimum` and `maximum` engines, so many that each works on about `requests` at a time. Each reserves
    `cpus` cores, and `gpus` devices, of its machine."""

    minimum: Annotated[int, Meta(ge=1, le=1024)] = 1
    maximum: Annotated[int, Meta(ge=1, le=1024)] = 1
    requests: Annotated[float, Meta(gt=0)] = 4.0
    cpus: Annotated[float, Meta(ge=0)] = 1.0
    gpus: Annotated[float, Meta(ge=0)] = 0.0


class TeamConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """`users`: the SHA-256 of each user's token, by name. A user has at most `requests_per_user` answered at a time.
    `cluster`: the address of a Ray cluster; one of this machine's own where it is empty."""

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
        raise TeamError("a team's server needs the extra `serve`: pip install 'mercury-ls[serve]'") from error
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:  # of dates and numbers that cannot be, too
        message = " ".join(str(error).split()).replace('in "<byte string>", ', "at ")
        raise TeamError(f"{path}: {message}; docs/TEAM.md has an example") from error
    if not config.users:
        raise TeamError(f"{path}: users is empty, so that nobody could ask: {ADD}")
    for name, digest in config.users.items():
        if wrong := misnamed(name):
            raise TeamError(f"{path}: users: {wrong}")
        if not DIGEST.fullmatch(digest):
            raise TeamError(f"{path}: users.{name} is not the SHA-256 of a token: {ADD}")
    if len(set(config.users.values())) < len(config.users):
        raise TeamError(f"{path}: users: two have the same token: {ADD} for each")
    minimum, maximum = config.replicas.minimum, config.replicas.maximum
    if maximum < minimum:
        raise TeamError(
            f"{path}: replicas.maximum is {config.replicas.maximum}, less than minimum, {config.replicas.minimum}"
        )
    return config


def lacking(replicas: Replicas, available: Mapping[str, float]) -> str:
    """What there is too little of for the engines that are to run at all times, by Ray's names, if anything."""
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
