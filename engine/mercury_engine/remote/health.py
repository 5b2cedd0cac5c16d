"""Whether a server answers: what is wrong with it in a sentence with the remedy, and when it is asked again."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from email.utils import parsedate_to_datetime

from msgspec import Struct

from mercury_engine.api import EngineError
from mercury_engine.record import ModelRecord
from mercury_engine.redaction import ForeignText, Secrets
from mercury_engine.remote.http import LinkError
from mercury_engine.remote.protocols import WrongAnswerError, decoded, text_at

INSTEAD = "`mercury-ls model use auto`"
FIRST_DELAY = 1.0
LONGEST_DELAY = 60.0
LONGEST_DELAY_HERE = 8.0
"""On this machine asking costs nothing, and a server that was started again should be noticed."""
LONGEST_ASKED_FOR = 3600.0
LISTED = 6


class Trouble(Struct, frozen=True):
    """`rests`: whether the server is left alone for a while; `seconds`: for how long, if it said so."""

    sentence: str
    rests: bool = True
    seconds: float = 0.0


class ServerHealth:
    """Doubles the pause with every failure in a row, up to a limit; an answer ends it."""

    def __init__(self, *, is_loopback: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self.note = ""
        self.checked = False
        """Whether the server was seen to have the right model since it last failed."""
        self._longest = LONGEST_DELAY_HERE if is_loopback else LONGEST_DELAY
        self._clock = clock
        self._delay = 0.0
        self._until = 0.0

    @property
    def rests(self) -> bool:
        return self._clock() < self._until

    def ensure(self) -> None:
        """Raises while the server is left alone."""
        if self.rests:
            remaining = self._until - self._clock()
            raise EngineError(f"{self.note}; asked again in {max(1, round(remaining))} s")

    def failed(self, trouble: Trouble) -> EngineError:
        """Notes what is wrong. Failures of requests that were open together count as one."""
        if trouble.rests:
            self.checked = False
            self.note = trouble.sentence
            if not self.rests:
                self._delay = min(max(2 * self._delay, FIRST_DELAY), self._longest)
                self._until = self._clock() + (trouble.seconds or self._delay)
        return EngineError(trouble.sentence)

    def worked(self) -> None:
        self.note, self._delay, self._until = "", 0.0, 0.0


def link_trouble(address: str, error: LinkError) -> Trouble:
    match error.kind:
        case "unreachable":
            return Trouble(f"{address} does not answer ({error.detail}): start the server, or {INSTEAD}")
        case "certificate":
            return Trouble(
                f"{address} shows a certificate that is not trusted ({error.detail}): check the address, or name who "
                "signs it with `mercury-ls model add --ca FILE` or SSL_CERT_FILE"
            )
        case "tls":
            return Trouble(
                f"{address} makes no encrypted connection ({error.detail}): if it wants a certificate of yours, name "
                "it with `mercury-ls model add --cert FILE`"
            )
        case "proxy":
            return Trouble(f"{address} is not reached: {error.detail}; check HTTPS_PROXY, or name it in NO_PROXY")
        case "slow":
            return Trouble(f"{address} is too slow ({error.detail}): use a smaller model there, or {INSTEAD}")
        case "large":
            return Trouble(f"{address}: {error.detail}; is it a completion server?")
        case _:
            return Trouble(f"{address} broke off: {error.detail}; see the server's own log")


def wrong_answer(address: str, error: WrongAnswerError, secrets: Secrets) -> Trouble:
    detail = error.told(secrets)
    return Trouble(f"{address} answers, but not with a completion ({detail}): is it the server that {ADDED} names?")


ADDED = "`mercury-ls model list`"


def status_trouble(
    record: ModelRecord,
    path: str,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    secrets: Secrets,
    has: Sequence[str] = (),
) -> Trouble:
    """For an answer that is no success. What the server says is shown without keys and other headers."""
    address, message = record.address, secrets.shown(_message_of(body))
    why = f": {message}" if message else ""
    match status:
        case 301 | 302 | 303 | 307 | 308:
            where = secrets.shown(ForeignText(headers.get("location", "another address")))
            return Trouble(
                f"{address} redirects to {where}, where neither code nor keys are sent: add the model with its real "
                "address"
            )
        case 401 | 403:
            if record.key:
                return Trouble(f"{address} refuses the key in {record.key} ({status}){why}; renew it there")
            if record.headers:
                names = ", ".join(record.headers)
                return Trouble(f"{address} refuses what it gets as {names} ({status}){why}; add the model again")
            return Trouble(
                f"{address} wants a key ({status}){why}; name it: `mercury-ls model add {address} --key env:NAME`"
            )
        case 404 if has and record.model not in has:
            return unknown_model(record, has)
        case 404:
            return Trouble(f"{address} has no {path} for {record.model or 'its model'} (404){why}; {_listed(has)}")
        case 429:
            return Trouble(f"{address} gets too many requests (429){why}", seconds=_retry_after(headers))
        case 501:
            return Trouble(
                f"{address} cannot fill gaps with its model (501){why}; add it with --prompt, or another model"
            )
        case _ if status >= 500:
            return Trouble(f"{address} failed ({status}){why}; see the server's log", seconds=_retry_after(headers))
        case _:
            return Trouble(f"{address} refuses the request ({status}){why}", rests=False)


def unknown_model(record: ModelRecord, has: Sequence[str]) -> Trouble:
    return Trouble(
        f"{record.address} has no model {record.model!r}; {_listed(has)}: `mercury-ls model add {record.address}`"
    )


def _listed(names: Sequence[str]) -> str:
    if not names:
        return "check the address and the model's name"
    unlisted = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f"it has {', '.join(names[:LISTED])}{unlisted}"


def _message_of(body: bytes) -> ForeignText:
    """What the server says in the body of a refusal, without JSON or HTML around it."""
    text = body.decode(errors="replace")
    try:
        message = decoded(body)
        error = message.get("error", message)
        text = error if isinstance(error, str) else text_at(error, "message", "detail") or text
    except WrongAnswerError:
        text = re.sub(r"<[^<>]*>", " ", text)
    return ForeignText(text)


def _retry_after(headers: Mapping[str, str]) -> float:
    """In whole seconds or as a date; 0 if the server does not say."""
    value = headers.get("retry-after", "").strip()
    if re.fullmatch("[0-9]{1,9}", value):
        seconds = float(value)
    else:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, TypeError, LookupError, ArithmeticError, OSError):
            return 0.0
    return min(max(seconds, 0.0), LONGEST_ASKED_FOR)
