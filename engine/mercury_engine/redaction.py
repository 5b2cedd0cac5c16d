"""Finds keys, tokens and passwords in a text by their shape, by the names before them, or because they are known.

Both sides of the boundary need it: recording what the user types, learning from a project's history, and showing what
somebody else's server says.
"""

import math
import re
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Set
from contextlib import suppress

from msgspec import Struct

from mercury_engine.private_keys import key_spans, starred

NOT_WITHIN = r"(?<![A-Za-z0-9_])"
TOKENS = re.compile(
    NOT_WITHIN
    + r"(?:gh[opsur]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[\w-]{16,}|sk-(?=[\w-]{0,60}\d)[\w-]{16,}"
    r"|(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,}|(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,}|AIza[\w-]{30,}|ya29\.[\w.-]{20,}"
    r"|xox[a-z]-[\w-]{10,}|hf_[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{20,}|pypi-[\w-]{20,}|dop_v1_[a-f0-9]{20,}"
    r"|gsk_[A-Za-z0-9]{20,}|xai-[A-Za-z0-9]{20,}|whsec_[A-Za-z0-9+/=]{20,}|dckr_pat_[\w-]{20,}|lin_api_[A-Za-z0-9]{20,}"
    r"|sbp_[a-f0-9]{20,}|[0-9]{8,10}:AA[\w-]{32,34}(?![\w-])|(?<=hooks\.slack\.com/services/)[\w/]{20,}"
    r"|LS0tLS1CRUdJTi(?!BDRVJU|BQVUJM)[\w+/=]{20,}"
    r"|shp(?:at|ss|ca|pa)_[A-Za-z0-9]{20,}|SG\.[\w-]{16,}\.[\w-]{16,}|(?<!-)eyJ[\w-]{10,}\.[\w-]{10,}(?:\.[\w-]*)?)"
)
URL_PASSWORD = re.compile(r"(?<=://)[^\s/:@\"']{0,128}:([^\s/@\"']{1,256})@")
BEARER = re.compile(r"\b(?:Bearer|Basic)[ \t]+([\w+/=.~-]{16,})", re.IGNORECASE)
ASSIGNMENT = re.compile(
    r"(?:(?P<sure>password|passwd|passphrase|pwd|secret)|token|api[_-]?key|access[_-]?key|private[_-]?key|auth[_-]?key"
    r"|signing[_-]?key|encryption[_-]?key|account[_-]?key|credential)[\w-]{0,40}[\"']?[ \t]{0,8}"
    r"(?::[ \t]{0,8}\w{1,20}[ \t]{0,8}=|[:=]=?>?|,)[ \t]{0,8}"
    r"(?:\"(?P<double>[^\"\n]*)\"|'(?P<single>[^'\n]*)'|(?P<bare>[^\s\"'`#,;()\[\]{}<>]{1,512})(?=[\s,;]|$))",
    re.IGNORECASE,
)
TEMPLATE = re.compile(r"\s|\$\{|\{\w*\}|^<.*>$|^%\w$")


def mask_secrets(text: str) -> str:
    """Replace keys, tokens and passwords by stars. All offsets stay."""
    return starred(text, _secrets(text))


def tells_secrets(text: str) -> bool:
    return any(True for _ in _secrets(text))


def _secrets(text: str) -> Iterator[tuple[int, int]]:
    for match in TOKENS.finditer(text):
        yield match.span()
    yield from key_spans(text)
    for pattern in (URL_PASSWORD, BEARER):
        for match in pattern.finditer(text):
            yield match.span(1)
    for match in ASSIGNMENT.finditer(text):
        if _is_secret(match):
            yield match.span(match.lastgroup or 0)


def _is_secret(match: re.Match[str]) -> bool:
    """True if a literal is a secret: after a name like password always; after other names, or without quotes, if it
    looks random."""
    value = match[match.lastgroup or 0]
    if TEMPLATE.search(value):
        return False
    if match["bare"] is None:
        return bool(value) if match["sure"] else _looks_random(value)
    if not re.search(r"\d", value) or not re.search(r"[^\W\d]", value):
        return False
    return len(value) >= 6 if match["sure"] else _looks_random(value)


def _looks_random(value: str) -> bool:
    """True for at least three bits of entropy per character, which prose and identifiers of this length rarely have."""
    shares = [count / len(value) for count in Counter(value).values()]
    return len(value) >= 12 and -sum(share * math.log2(share) for share in shares) >= 3.0


class ForeignText(Struct, frozen=True):
    """What a server, a gateway or a hub wrote. Only `Secrets.shown` makes words for people of it."""

    _text: str = ""

    @classmethod
    def of(cls, data: bytes) -> "ForeignText":
        return cls(data.decode(errors="replace"))

    def __bool__(self) -> bool:
        return bool(self._text)

    def __repr__(self) -> str:
        return f"ForeignText({len(self._text)} characters)"

    __str__ = __repr__


SHOWN = 160
PART = 8
"""So many characters of a secret in a row are not shown either: whoever repeats it may have cut it."""
PART_OF_CODE = 12
LEAST_SECRET = 3
LONGEST_ENCODED = 6
"""Characters for one, as in JSON."""
MOST_ENCODINGS = 3
FORMED = 4096
"""Within so many characters whatever has the form of a secret ends."""
BLANK = re.compile(r"[^!-~]+")
SAME = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ-_", "abcdefghijklmnopqrstuvwxyz+/")
ENCODED = re.compile(
    BLANK.pattern + r"|\\+(?:u00|x)(?P<json>[0-9a-f]{2})|\\+(?P<quoted>.)|%(?:25)*(?P<url>[0-9a-f]{2})"
    r"|&(?:amp;)*(?P<html>\#[0-9]{1,7}|\#x[0-9a-f]{1,6}|[a-z]{1,10});",
    re.IGNORECASE,
)
BLANK_END = re.compile(r"[^!-~]+\Z")
SHORT_KEY = re.compile(NOT_WITHIN + r"sk-[\w-]{8,}")
STARS = re.compile(r"\*{4,}")


class Secrets:
    """The keys, logins and headers with which somebody is asked, who must not show them to the user's company.

    They are recognised as they are and in the encodings of base64, URLs, JSON and HTML, whole or in parts.
    """

    def __init__(self, headers: Iterable[str] = ()) -> None:
        secrets = {secret for header in headers for secret in _secrets_in(header) if len(secret) >= LEAST_SECRET}
        self._parts = {part for secret in secrets for form in _forms(secret) for part in _parts(form, PART)}
        self._passwords = {part for secret in secrets for part in _telling_parts(secret)}
        self._reach = max((len(secret) for secret in secrets), default=0) * LONGEST_ENCODED + FORMED

    def shown(self, foreign: ForeignText, most: int = SHOWN) -> str:
        """The beginning on one line, with what is secret or looks like it left out. It is cut last: a secret that is
        cut is not recognised."""
        limit = most + self._reach
        text = " ".join(foreign._text.split(None, limit))[:limit]
        return STARS.sub("…", self._masked(text)[:most])

    def is_harmless(self, foreign: ForeignText) -> bool:
        """Whether all of it may be shown, such as the name of a model."""
        return self._masked(foreign._text) == foreign._text

    def are_in(self, foreign: ForeignText) -> bool:
        """Whether code repeats one."""
        readings = _readings(foreign._text) if self._passwords else ()
        return any(True for plain, _ in readings for _ in _found(plain, self._passwords))

    def _masked(self, text: str) -> str:
        characters = list(SHORT_KEY.sub(lambda key: "*" * len(key[0]), mask_secrets(text)))
        for plain, places in _readings(text):
            for start, end in _found(plain, self._parts):
                secret = BLANK_END.sub("", text[places[start] : places[end]])
                characters[places[start] : places[start] + len(secret)] = "*" * len(secret)
        return "".join(characters)


def _secrets_in(header: str) -> Iterator[str]:
    """The value of a header, what follows a word such as Bearer, and the login that this may encode."""
    yield header
    yield (credential := header.rpartition(" ")[2])
    with suppress(ValueError):
        login = b64decode(credential, validate=True).decode("ascii")
        if login.isprintable():
            yield from (login, login.partition(":")[2])


def _forms(secret: str) -> set[str]:
    """The secret as a reading has it: itself, and the base64 of a text that it is in, wherever it begins."""
    forms = {plain for plain, _ in _readings(secret)}
    for before in range(3):
        encoded = b64encode(bytes(before) + secret.encode()).decode()
        own = encoded[-(-8 * before // 6) : 8 * (before + len(secret)) // 6]
        forms |= {own.translate(SAME)} if len(own) > LEAST_SECRET else set()
    return forms - {""}


def _parts(form: str, length: int) -> Iterator[str]:
    """All of that length, or the whole if it is no longer."""
    return (form[at : at + length] for at in range(max(len(form) - length, 0) + 1))


def _telling_parts(secret: str) -> Iterator[str]:
    """By which it is recognised in code; none of what servers without keys are given as a key, which may be a word of
    any code."""
    is_token = tells_secrets(secret)
    if is_token or _is_password(secret):
        parts = (part for form in _forms(secret) for part in _parts(form, PART_OF_CODE))
        yield from (part for part in parts if is_token or _is_password(part))


def _found(plain: str, parts: Set[str]) -> Iterator[tuple[int, int]]:
    for length in {len(part) for part in parts}:
        for at in range(len(plain) - length + 1):
            if plain[at : at + length] in parts:
                yield at, at + length


def _readings(text: str) -> Iterator[tuple[str, list[int]]]:
    """The text without blanks, and with characters instead of their encodings, which may be encoded themselves; and
    where each character of that begins in the text, and where the last one ends. Encodings are read across blanks, and
    then as they stand: a percent sign may only seem to belong to what follows a blank."""
    encodings = [ENCODED] * MOST_ENCODINGS
    yield from _decoded(text, [BLANK, *encodings])
    if any(mark in text for mark in "%&\\"):
        yield from _decoded(text, encodings)


def _decoded(text: str, patterns: Iterable[re.Pattern[str]]) -> Iterator[tuple[str, list[int]]]:
    places = list(range(len(text) + 1))
    for pattern in patterns:
        pieces, kept, last = [], [], 0
        for match in pattern.finditer(text):
            piece = _character(match)
            pieces += (text[last : match.start()], piece)
            kept += places[last : match.start()]
            kept += places[match.start() : match.start() + len(piece)]
            last = match.end()
        text, places = "".join((*pieces, text[last:])), kept + places[last:]
        yield text.translate(SAME), places
        if not ENCODED.search(text):
            return


def _character(match: re.Match[str]) -> str:
    kind = match.lastgroup
    if kind == "html":
        from html import unescape

        character = unescape(f"&{match[kind]};")
        return character if len(character) == 1 else ""
    if kind == "quoted":
        return match[kind]
    return chr(int(match[kind], 16)) if kind else ""


def _is_password(secret: str) -> bool:
    return len(secret) >= 6 and bool(re.search(r"\d", secret) and re.search(r"[^\W\d]", secret))
