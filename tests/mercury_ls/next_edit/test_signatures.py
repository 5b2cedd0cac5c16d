"""Where the parameters of a function change, the arguments of its calls follow in all files, and of nothing else's.

`--- path` begins a file, `⟦old→new⟧` is what the user did, in the order of the text, and `«old→new»` what follows.
"""

import re

import pytest

from mercury_ls.code.documents import CLOSED, Document
from mercury_ls.code.edits import difference
from mercury_ls.code.history import History
from mercury_ls.code.modules import Project
from tests.mercury_ls.next_edit.test_pipeline import DUE, EDIT, asked_at, last_of, states_of

FILE = re.compile(r"^--- (\S+)\n", re.MULTILINE)


async def check(drawn: str, note: str = "", silence: str = "", opened: tuple[str, ...] = ()) -> None:
    """The `note` of the offer, or how the reason for `silence` begins. The file of the edits is open, and those that
    are `opened`."""
    pieces = FILE.split(drawn.lstrip("\n"))[1:]
    files = dict(zip((f"/p/{path}" for path in pieces[::2]), pieces[1::2], strict=True))
    home = next(path for path, text in files.items() if EDIT.search(text))
    *earlier, now = states = [state.replace("$0", "") for state in states_of(files[home])]
    history = History()
    for number, before in enumerate(earlier):
        history.record(home, before, difference(before, states[number + 1]), 60.0 * number)
    texts = {path: DUE.sub(r"\1", text) for path, text in files.items()} | {home: now}
    versions = {path: 1 if path in (home, *(f"/p/{each}" for each in opened)) else CLOSED for path in texts}
    snapshots = {
        path: Document(f"file://{path}", path, "", versions[path], text).snapshot() for path, text in texts.items()
    }
    question = asked_at(
        snapshots[home],
        0,
        history,
        neighbours=tuple(snapshot for path, snapshot in snapshots.items() if path != home),
        project=Project(read=texts.get, exists=texts.__contains__),
    )
    answer = await last_of(question)
    assert (answer.offer.note if answer.offer else "") == note
    assert answer.silence.startswith(silence)
    for made in sorted(answer.edits, key=lambda each: -each.start):
        path = made.uri.removeprefix("file://")
        texts[path] = texts[path][: made.start] + made.text + texts[path][made.end :]
    assert texts == {path: DUE.sub(r"\2", EDIT.sub(r"\2", text)) for path, text in files.items()}


PYTHON = {
    "a new order": """
--- rows.py
def check(⟦first, second→second, first⟧, size=0): ...
--- use.py
import rows
import rows as r
from rows import check
from rows import check as c
from other import check as d

check(«1, 2→2, 1»)
c(«1, 2→2, 1», 3)
d(1, 2)
rows.check(«1, 2→2, 1»)
r.check(«1, 2→2, 1»)
json.check(1, 2)
check(second=1, first=2)
--- far.py
from other import check

check(1, 2)
--- again.py
from rows import check as c

def f(check):
    check(1, 2)
    c(«1, 2→2, 1»)

def g(c):
    c(1, 2)
""",
    "a parameter that went": """
--- rows.py
def check(first⟦, second→⟧): ...
--- use.py
from rows import check as c

c(1«, 2→»)
c(1«, second=2→»)
""",
    "a parameter that came": """
--- rows.py
def check(first⟦→, limit⟧): ...
--- use.py
from rows import check as c

def f(limit):
    c(1«→, limit»)
    c(first=1«→, limit=limit»)
    c(1, limit=2)
""",
    "a method of an object whose type is stated": """
--- rows.py
class Rows:
    def read(self, ⟦path, mode→mode, path⟧): ...
class Other:
    def read(self, path, mode): ...
--- use.py
from rows import Other, Rows

def f(rows: Rows, other: Other):
    rows.read(«1, 2→2, 1»)
    other.read(1, 2)
    Rows.read(rows, «1, 2→2, 1»)
    Rows().read(«1, 2→2, 1»)
""",
    "a constructor": """
--- rows.py
class Rows:
    def __init__(self, ⟦path, mode→mode, path⟧): ...

    @classmethod
    def opened(cls, path):
        other.cls(1, 2)
        return cls(«path, "r"→"r", path»)

class Other:
    @classmethod
    def opened(cls):
        return cls(1, 2)
--- use.py
from rows import Rows as R
import rows

R(«1, 2→2, 1»)
rows.Rows(«1, 2→2, 1»)
""",
}
TYPESCRIPT = {
    "a new order": """
--- rows.ts
export function check(⟦first: number, second: number→second: number, first: number⟧) {}
--- use.ts
import { check } from "./rows";
import { check as c } from "./rows";
import * as rows from "./rows";
check(«1, 2→2, 1»);
c(«1, 2→2, 1»);
rows.check(«1, 2→2, 1»);
other.check(1, 2);
--- far.ts
import { check } from "./other";
check(1, 2);
""",
    "a parameter that came": """
--- rows.ts
export const check = (first: number⟦→, limit: number⟧) => first;
--- use.ts
import { check as c } from "./rows";
const f = (limit: number) => c(1«→, limit»);
function g(limit: number) {
  return c(2«→, limit»);
}
""",
}
DRAWN = {
    **{f"python: {name}": drawn for name, drawn in PYTHON.items()},
    **{f"ts: {n}": d for n, d in TYPESCRIPT.items()},
}


@pytest.mark.parametrize("name", DRAWN)
@pytest.mark.parametrize("opened", [(), ("use.py", "use.ts")], ids=["closed", "open"])
async def test_calls_in_other_files_follow(name, opened):
    await check(DRAWN[name], opened=opened)


async def test_places_that_cannot_be_judged_are_named():
    await check(
        """
--- rows.py
class Rows:
    def read(self, ⟦path, mode→mode, path⟧): ...
--- use.py
from rows import Rows

def f(rows: Rows, all, others, text: str):
    rows.read(«1, 2→2, 1»)
    rows.read(*all)
    others.read(1, 2)
    text.read(1, 2)
    open(1).read()
--- far.py
others.read(1, 2)
""",
        note="cannot be judged: use.py:5, use.py:6",
    )


async def test_calls_in_files_whose_imports_are_not_known_are_named():
    await check(
        """
--- rows.c
int load(⟦int first, int second→int second, int first⟧) { return first; }
--- use.c
int f(struct s *rows) {
    int n = load(1, 2);
    return n + rows->load(1, 2);
}
int g(int (*load)(int, int)) {
    return load(1, 2);
}
""",
        silence="cannot be judged: use.c:2",
    )


async def test_objects_of_a_class_that_overrides_it_elsewhere_keep_their_arguments():
    await check(
        """
--- pkg/rows.py
class Rows:
    def read(self, ⟦path, mode→mode, path⟧): ...
class Near(Rows): ...
--- pkg/far.py
from pkg.rows import Rows

class Far(Rows):
    def read(self, path, mode): ...
--- pkg/__init__.py
from pkg.far import Far
from pkg.rows import Near, Rows
--- use.py
from pkg import Far, Near

def made() -> list[Near]: ...

def f(near: Near, far: Far):
    near.read(«1, 2→2, 1»)
    far.read(1, 2)
    made()[0].read(«1, 2→2, 1»)
""",
        note="overridden with other parameters: far.py:4",
    )


async def test_methods_that_override_it_with_other_parameters_are_named():
    await check(
        """
--- rows.py
class Rows:
    def read(self, path⟦, mode→⟧): ...
class Near(Rows):
    def read(self, path, mode): return super().read(path«, mode→»)
--- use.py
from rows import Near, Rows

class Far(Near):
    def read(self, path, mode): ...
class Done(Rows):
    def read(self, path): ...
class Any(Rows):
    def read(self, *args, **kwargs): ...
class Other:
    def read(self, path, mode): ...
--- far.py
class Rows:
    def read(self, path, mode): ...
""",
        note="overridden with other parameters: rows.py:4, use.py:4",
    )


NEEDING = """
--- rows.py
def check(first⟦→, limit⟧): ...
--- use.py
from rows import check

check(1)
check(*all)
def f(limit):
    check(2«→, limit»)
"""


async def test_calls_that_need_an_argument_are_named():
    await check(NEEDING, note="needs an argument for `limit`: use.py:3; cannot be judged: use.py:4")
    without = NEEDING.partition("def f")[0]
    await check(without, silence="needs an argument for `limit`: use.py:3; cannot be judged: use.py:4")


async def test_argument_that_one_call_was_given_by_hand_is_given_to_calls_elsewhere():
    await check(
        """
--- rows.py
def check(first⟦→, limit⟧): ...

check(1⟦→, limit=20⟧)
check(2«→, limit=20»)
--- use.py
from rows import check as c

c(3«→, limit=20»)
"""
    )


async def test_what_one_call_was_given_is_not_given_where_its_names_mean_nothing():
    await check(
        """
--- rows.py
def check(first⟦→, limit⟧): ...

def f(most):
    check(1⟦→, most⟧)

def g(most):
    check(2«→, most»)
--- use.py
from rows import check

def g(least):
    check(3)
""",
        note="needs an argument for `limit`: use.py:4",
    )
