"""How messages name things: paths relative to the workspace or with `~`, counts with their noun."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["abbreviated", "counted", "decoded", "readable"]


def counted(number: int, noun: str) -> str:
    """
    >>> counted(1, "file"), counted(2, "day"), counted(2, "reply")
    ('1 file', '2 days', '2 replies')
    """
    if number != 1:
        noun = f"{noun[:-1]}ies" if re.search("[^aeiou]y$", noun) else f"{noun}s"
    return f"{number:,} {noun}"


def readable(place: str | Path, roots: Iterable[str] = ()) -> str:
    """A path, or a URI of any scheme, as short as it can be.

    >>> readable("file:///home/me/my%20project/a.py", ["/home/me/my project"])
    'a.py'
    """
    path = decoded(str(place))
    if not os.path.isabs(path):
        return path
    for root in sorted(roots, key=len, reverse=True):
        if path.startswith(os.path.join(root, "")):
            return os.path.relpath(path, root)
    return abbreviated(path)


def abbreviated(text: str) -> str:
    """The text with `~` for the home folder wherever a path begins with it."""
    home = os.path.expanduser("~").rstrip(os.sep)
    if not os.path.isabs(home):
        return text
    return re.sub(rf"(?<![\w/.~-]){re.escape(home)}(?![^\s/\\,;:'\"`)])", "~", text)


def decoded(place: str) -> str:
    """The path of a URI; anything else is returned as it is."""
    scheme, separator, _ = place.partition(":")
    if not separator or len(scheme) < 2 or not scheme.replace("-", "").isalnum():  # a lone letter is a Windows drive
        return place
    try:
        parts = urlsplit(place)
    except ValueError:
        return place
    path = unquote(parts.path)
    if parts.scheme == "file" and os.path.splitdrive(path.lstrip("/"))[0]:  # never outside Windows
        return os.path.normpath(path.lstrip("/"))
    return path + (f"#{parts.fragment}" if parts.fragment else "")
