"""A private key that nobody uses, and what is shown of it."""

from random import Random
from string import ascii_letters, digits

BEGIN, END = "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"
BODY = ["".join(Random(number).choices(ascii_letters + digits + "+/", k=64)) for number in range(2)]
LAST = "Ab3="
KEY = "\n".join((BEGIN, *BODY, LAST, END)) + "\n"
SHOWN = "\n".join((BEGIN, "*" * 64, "*" * 64, "****", END)) + "\n"


def is_told(anything: object) -> bool:
    """Whether a line of the key is in what an engine is told."""
    told = repr(anything)
    return any(line in told for line in (*BODY, LAST))
