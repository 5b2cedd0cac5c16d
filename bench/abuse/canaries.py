"""Requests as programs send them, with what hidden files hold in every field that can have it."""

import json
from pathlib import Path
from typing import Any

REQUESTS = sorted((Path(__file__).parent / "requests").glob("*.json"))
CANARY = "canary_4711"
HIDDEN = (".env", "shop/../.env", "keys/id_rsa", "/home/user/.ssh/config", "ignored/notes.py")
"""The last one by a rule of the settings, `ignored/`."""
CHANGE = f"@@ -1,2 +1,2 @@\n-{CANARY}_old = 1\n+{CANARY}_new = 2\n {CANARY}_below = 3\n"


def hostile(body: Any, hidden: str) -> Any:
    """The same request with a canary in another file and in an edit of a file that is hidden."""
    changed = json.loads(json.dumps(body).replace("shop/prices.py", hidden).replace('{\\"tea\\": 3}', CANARY))
    for holder, name in [(changed, "prompt"), *((message, "content") for message in changed.get("messages", ()))]:
        if isinstance(text := holder.get(name), str):
            for a, b in (("a/", "b/"), ("", "")):
                header = f"--- {a}shop/total.py\n+++ {b}shop/total.py\n"
                text = text.replace(header, f"{_diffs(a + hidden, b + hidden)}{header}")
            event = 'User edited "shop/total.py":\n'
            holder[name] = text.replace(event, f'User edited "{hidden}":\n```diff\n{CHANGE}```\n\n{event}')
    for extra in changed.get("input_extra", ()):
        extra |= {"filename": hidden, "text": f"{CANARY} = 1\n" + extra["text"]}
    return changed


def _diffs(old: str, new: str) -> str:
    """An edit of the file, and what is said when it is deleted, made or given another name."""
    names = [(old, new), (old, "/dev/null"), ("/dev/null", new), (old, "b/shop/plain.py"), ("a/shop/plain.py", new)]
    return "".join(f"--- {before}\n+++ {after}\n{CHANGE}\n" for before, after in names)
