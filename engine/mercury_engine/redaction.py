"""Finds keys, tokens and passwords in a text by their shape and by the names before them.

Both sides of the boundary need it: recording what the user types, and learning from a project's history.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator

NOT_WITHIN = r"(?<![A-Za-z0-9_])"
TOKENS = re.compile(
    NOT_WITHIN
    + r"(?:gh[opsur]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[\w-]{16,}|sk-(?=[\w-]{0,60}\d)[\w-]{16,}"
    r"|(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,}|(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,}|AIza[\w-]{30,}|ya29\.[\w.-]{20,}"
    r"|xox[a-z]-[\w-]{10,}|hf_[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{20,}|pypi-[\w-]{20,}|dop_v1_[a-f0-9]{20,}"
    r"|shp(?:at|ss|ca|pa)_[A-Za-z0-9]{20,}|SG\.[\w-]{16,}\.[\w-]{16,}|(?<!-)eyJ[\w-]{10,}\.[\w-]{10,}(?:\.[\w-]*)?)"
)
KEY_BLOCK = re.compile(r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----(.*?)(?:-----END|\Z)", re.DOTALL)
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
    spans = list(_secrets(text))
    if not spans:
        return text
    characters = list(text)
    for start, end in spans:
        for at in range(start, end):
            if characters[at] not in "\r\n":
                characters[at] = "*"
    return "".join(characters)


def tells_secrets(text: str) -> bool:
    return any(True for _ in _secrets(text))


def _secrets(text: str) -> Iterator[tuple[int, int]]:
    for match in TOKENS.finditer(text):
        yield match.span()
    for pattern in (KEY_BLOCK, URL_PASSWORD, BEARER):
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
        return bool(value) if match["sure"] else len(value) >= 12 and _looks_random(value)
    digit_and_letter = re.search(r"\d", value) and re.search(r"[^\W\d]", value)
    return bool(digit_and_letter) and (len(value) >= 6 if match["sure"] else _looks_random(value))


def _looks_random(value: str) -> bool:
    """True for at least three bits of entropy per character, which prose and identifiers of this length rarely have."""
    shares = [count / len(value) for count in Counter(value).values()]
    return len(value) >= 12 and -sum(share * math.log2(share) for share in shares) >= 3.0
