"""What of a text goes to an engine: all but the private keys in it, which nobody completes. Offsets and lines stay."""

import re
from collections.abc import Iterable

from mercury_engine.private_keys import key_spans, mask_keys
from mercury_ls.code.documents import Snapshot, cached

QUOTED = re.compile(r"[A-Za-z0-9+/]{4,}=*|[A-Za-z0-9+/]+=+")


@cached
def shown(snapshot: Snapshot) -> str:
    """The text without its keys. All that an engine is told of it is cut from this: a piece of a key is not recognised
    as one."""
    return mask_keys(snapshot.text)


def hides(snapshot: Snapshot, start: int = 0, end: int | None = None) -> bool:
    """Whether something between these offsets is a part of a key."""
    return shown(snapshot) is not snapshot.text and shown(snapshot)[start:end] != snapshot.text[start:end]


def hide_any(snapshots: Iterable[Snapshot]) -> bool:
    return any(map(hides, snapshots))


def without_quotes(snapshot: Snapshot, text: str) -> str:
    """What somebody says about a file, without what it repeats of the keys in there."""
    if not hides(snapshot):
        return text
    keys = _keys(snapshot)
    return QUOTED.sub(lambda quote: "*" * len(quote[0]) if quote[0] in keys else quote[0], text)


@cached
def _keys(snapshot: Snapshot) -> str:
    return "\n".join(snapshot.text[start:end] for start, end in key_spans(snapshot.text))
