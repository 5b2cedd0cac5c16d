"""What the tests of prompts share: requests drawn as texts with a cursor, and a tokenizer that counts words."""

import re
from functools import cache
from pathlib import Path

from mercury_engine.api import Edit, Gap, Region, Regions, Snippet

GOLDEN = Path(__file__).parent.parent / "golden/prompts"
WORDS = re.compile(r" ?\w{1,6}| ?[^\w\s]|\n| +")


@cache
def count(text):
    return len(WORDS.findall(text))


def gap(text, *, path="src/cart.py", snippets=(), edits=(), **fields):
    """`$0` is the cursor."""
    before, _, after = text.partition("$0")
    context = _context(snippets, edits)
    return Gap(session="s", path=path, language="python", before=before, after=after, **context, **fields)


def window(text, *, path="src/cart.py", snippets=(), edits=(), first_line=0):
    """A window to rewrite; `$0` is the cursor."""
    cursor, old = max(text.find("$0"), 0), text.replace("$0", "")
    region = Region(path, "python", old, first_line=first_line)
    return Regions(session="s", regions=(region,), cursor=cursor, **_context(snippets, edits))


def _context(snippets, edits):
    return {
        "snippets": tuple(Snippet(*snippet) for snippet in snippets),
        "edits": tuple(Edit(*edit) for edit in edits),
    }
