"""What the tests of prompts share: requests drawn as texts with a cursor, and a tokenizer that counts words."""

import re
from functools import cache
from pathlib import Path

from mercury_engine.api import Edit, InfillRequest, Snippet, Span, Window

GOLDEN = Path(__file__).parent.parent / "golden/prompts"
WORDS = re.compile(r" ?\w{1,6}| ?[^\w\s]|\n| +")


@cache
def count(text):
    return len(WORDS.findall(text))


def request(text, *, mode="line", path="src/cart.py", snippets=(), edits=(), budget=64, first_line=0):
    """`$0` is the cursor; `«` and `»` are around the lines of a span to rewrite."""
    cursor = text.find("$0")
    text = text.replace("$0", "")
    start, end = text.find("«"), text.find("»") - 1
    text = text.replace("«", "").replace("»", "")
    if mode == "region":
        start, end = 0, len(text)
    elif start < 0:
        start = end = cursor
    window = Window(path, "python", text, first_line)
    return InfillRequest(
        session="s",
        windows=(window,),
        spans=(Span(0, start, end, mode, budget),),
        snippets=tuple(Snippet(*snippet) for snippet in snippets),
        edits=tuple(Edit(*edit) for edit in edits),
        cursor=cursor,
    )
