"""What is renamed where it is declared is renamed where it certainly is used, in all files, and nowhere else.

`--- path` begins a file, `⟦old→new⟧` is what the user did, and each «name» has to follow; all others stay.
"""

import re

import pytest

from mercury_ls.context import Budget, Related
from mercury_ls.documents import Document, difference
from mercury_ls.history import History
from mercury_ls.modules import Project
from mercury_ls.next_edit import NextQuestion
from mercury_ls.pending import CLOSED
from mercury_ls.settings import SuggestSettings
from tests.mercury_ls.test_next_edit import last_of

EDIT = re.compile(r"⟦(.*?)→(.*?)⟧")
FILE = re.compile(r"^--- (\S+)\n", re.MULTILINE)


async def check(drawn: str) -> None:
    pieces = FILE.split(drawn.lstrip("\n"))[1:]
    files = dict(zip((f"/p/{path}" for path in pieces[::2]), pieces[1::2], strict=True))
    plain = {path: text.replace("«", "").replace("»", "") for path, text in files.items()}
    home = next(path for path, text in files.items() if EDIT.search(text))
    edit = EDIT.search(plain[home])
    assert edit is not None
    before, now = EDIT.sub(edit[1], plain[home]), EDIT.sub(edit[2], plain[home])
    history = History()
    history.record(home, before, difference(before, now), 0.0)
    texts = {**plain, home: now}
    opened = {path: Document(f"file://{path}", path, "", CLOSED, text).snapshot() for path, text in texts.items()}
    opened[home] = Document(f"file://{home}", home, "", 1, now).snapshot()
    others = [each for path, each in opened.items() if path != home and edit[1] in texts[path]]
    question = NextQuestion(
        snapshot=opened[home],
        offset=edit.start() + len(edit[2]),
        history=history,
        related=Related(f"file://{home}", 0, 0.0),
        settings=SuggestSettings(),
        budget=Budget(),
        session="test",
        bar=0.25,
        others=tuple(others),
        project=Project(read=texts.get, exists=texts.__contains__),
    )
    answer = await last_of(question)
    for made in sorted(answer.edits, key=lambda each: -each.start):
        path = made.uri.removeprefix("file://")
        texts[path] = texts[path][: made.start] + made.text + texts[path][made.end :]
    assert texts == {path: re.sub("«.*?»", edit[2], EDIT.sub(edit[2], text)) for path, text in files.items()}


PYTHON = """
--- pkg/__init__.py
from .rows import «load»
--- pkg/rows.py
import os

def ⟦load→fetch⟧(name):
    return os.path.load(name) or json.load(name)

class Rows:
    def load(self):
        return self.load() or «load»(1)
--- pkg/beside.py
from . import rows
from .rows import «load» as read
rows.«load»(2)
self.rows.load(3)
--- pkg/deep/inner.py
from ..rows import (
    other,
    «load»,
)

def f(load):
    return load(1)

def g():
    return «load»(1)
--- main.py
import pkg
import pkg.rows
import pkg.rows as r
pkg.«load»(1)
pkg.rows.«load»(1)
r.«load»(1)
os.path.load(1)
pkg.other.load(1)
--- again.py
from pkg import «load»
«load»("load")  # load
--- rows.py
def load():
    pass
--- other.py
from rows import load
from json import load
load(1)
--- star.py
from pkg.rows import *
«load»(1)
--- twice.py
from pkg.rows import «load»
try:
    from quick import load
except ImportError:
    pass
load(1)
"""

EXPORTED = """
--- pkg/__init__.py
from .rows import «load» as «load»
from .rows import «load» as read
--- pkg/rows.py
def ⟦load→fetch⟧():
    pass
--- use.py
import pkg
pkg.«load»(pkg.read)
--- deep.py
import pkg.other
pkg.«load»(pkg.rows.«load», pkg.strange.load)
"""

BUILT_IN = """
--- compat.py
print(bytes)
⟦bytes→octets⟧ = bytes
text = «bytes»

def f():
    return «bytes»
"""

TAKEN = """
--- rows.py
def ⟦load→fetch⟧():
    pass
--- use.py
import rows
from rows import load

def f(fetch):
    return load(fetch) + rows.«load»()
--- again.py
from rows import «load» as read
from web import fetch
fetch(read())
--- fine.py
from rows import «load»
web.fetch(«load»(), fetch=1)
"""

CLASS = """
--- m3u.py
class ⟦Empty→Blank⟧(Exception):
    pass

def f():
    raise «Empty»
--- use.py
from m3u import «Empty», other

class More(«Empty»):
    Empty = 1

    def g(self, x: «Empty») -> "Empty":
        return self.Empty or x.Empty
"""

METHOD = """
--- base.py
class Base:
    def ⟦run→start⟧(self):
        return self.«run»() + subprocess.run() + self.other.run()

    def go(self, other):
        return other.run()

class Other:
    def run(self):
        return self.run()

class More(Base):
    def go(self):
        return super().«run»()
--- use.py
from base import Base, Other
import base
import subprocess

def f(b: Base, o: Other, x):
    made = Base()
    twice = Base()
    twice = x
    return b.«run»(), o.run(), x.run(), made.«run»(), twice.run(), Base.«run»(b), Base().«run»(), subprocess.run()

def g(c: base.Base):
    made = base.Base()
    return c.«run»() + made.«run»() + base.Base.«run»(c) + base.Other().run()

class Own(Base):
    def f(self):
        return self.«run»()

class Strange(Mixin, Base):
    def f(self):
        return self.run()
"""

CONSTANT = """
--- conf/values.py
⟦LIMIT→MOST⟧ = 3
def f(x=«LIMIT»):
    return «LIMIT»

class A:
    LIMIT = 4
    x = LIMIT
--- use.py
from conf import values
from conf.values import «LIMIT»
print(values.«LIMIT», «LIMIT», other.LIMIT, f(LIMIT=2))
"""

PARAMETER = """
--- a.py
def load(⟦path→folder⟧, mode):
    return open(«path», mode)

load(«path»=1)
save(path=2)
--- b.py
from a import load
from c import save

def f(path):
    load(«path»=path)
    save(path=path)
    thing.load(path=path)
"""

TYPESCRIPT = """
--- src/rows.ts
export function ⟦load→fetch⟧(name: string) {
  return «load»(name) || fs.load(name) || this.load(name);
}
--- src/index.ts
export { «load» } from "./rows";
export * from "./other";
--- src/use.ts
import { «load», other } from "./rows";
import * as rows from "./rows.js";
«load»(1); rows.«load»(2); fs.load(3);
function f(load) { return load(1); }
--- app.ts
import { «load» as read } from "./src";
read(1);
--- strange.ts
import { load } from "rows";
load(1);
--- common.js
const { «load» } = require("./src/rows");
const all = require("./src/rows");
«load»(all.«load», lib.load);
"""

METHOD_OF_TYPESCRIPT = """
--- cart.ts
export class Cart {
  ⟦total→sum⟧() { return this.«total»() + other.total(); }
}
--- use.ts
import { Cart } from "./cart";
function f(c: Cart, o: Order) {
  const made = new Cart();
  return c.«total»() + o.total() + made.«total»() + new Cart().«total»();
}
"""

GO = """
--- go.mod
module example.com/shop
--- rows/rows.go
package rows

func ⟦Load→Fetch⟧(name string) {}

func f() { «Load»("a"); json.Load("b") }
--- rows/more.go
package rows

func g() { «Load»("a") }
--- main.go
package main

import (
	"example.com/shop/rows"
	other "example.com/other/rows"
)

func main() { rows.«Load»("a"); other.Load("b") }
--- aliased.go
package main

import r "example.com/shop/rows"

func h(x T) { r.«Load»("a"); x.Load("b") }
--- other/rows.go
package rows

func Load() {}
"""

RUST = """
--- src/lib.rs
pub mod rows;
pub mod other;
use crate::rows::«load»;
fn f() { «load»(1); rows::«load»(2); other::load(3); }
--- src/rows.rs
pub fn ⟦load→fetch⟧(n: u8) { «load»(n); std::fs::load(n); n.load(); }
--- src/other.rs
use super::rows;
use crate::rows::{self, «load» as read};
pub fn load(n: u8) { rows::«load»(n); crate::rows::«load»(n); load(n); }
"""

JAVA = """
--- src/main/java/shop/Cart.java
package shop;
public class ⟦Cart→Basket⟧ {
    public «Cart»() {}
    static «Cart» make() { return new «Cart»(); }
}
--- src/main/java/shop/Beside.java
package shop;
class Beside { «Cart» cart = new «Cart»(); other.Cart x; }
--- src/main/java/app/Main.java
package app;
import shop.«Cart»;
class Main { «Cart» c; void f() { «Cart».make(); } }
--- src/main/java/app/Other.java
package app;
import other.Cart;
class Other { Cart c; }
"""

COPIED = """
--- a.py
def ⟦load→fetch⟧(a):
    return a

def load(a):
    return a

load(1)
"""

PROPERTY = """
--- a.py
class A:
    @property
    def ⟦size→length⟧(self):
        return self._size

    @«size».setter
    def «size»(self, value):
        self._size = value

    def f(self):
        return self.«size» + self._size + other.size
"""

FILES = {
    "a function of Python": PYTHON,
    "an exported function of Python": EXPORTED,
    "a name that another file has already": TAKEN,
    "what is read before it is declared": BUILT_IN,
    "a class of Python": CLASS,
    "a method of Python": METHOD,
    "a constant of Python": CONSTANT,
    "a parameter of Python": PARAMETER,
    "a function of TypeScript": TYPESCRIPT,
    "a method of TypeScript": METHOD_OF_TYPESCRIPT,
    "a function of Go": GO,
    "a function of Rust": RUST,
    "a class of Java": JAVA,
    "a property of Python": PROPERTY,
    "a copy of Python": COPIED,
}


@pytest.mark.parametrize("drawn", FILES.values(), ids=FILES.keys())
async def test_what_is_renamed_is_renamed_where_it_certainly_is_used(drawn: str) -> None:
    await check(drawn)
