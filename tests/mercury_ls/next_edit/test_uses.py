"""What is renamed where it is declared is renamed where it certainly is used, in all files, and nowhere else.

`--- path` begins a file, `⟦old→new⟧` is what the user did, and each «name» has to follow; all others stay.
"""

import re

import pytest

from mercury_ls.code.documents import CLOSED, Document
from mercury_ls.code.edits import difference
from mercury_ls.code.history import History
from mercury_ls.code.modules import Project
from mercury_ls.completion.context import ContextBudget, Related
from mercury_ls.next_edit.question import NextQuestion
from mercury_ls.settings.schema import SuggestSettings
from tests.mercury_ls.next_edit.test_pipeline import last_of

EDIT = re.compile(r"⟦(.*?)→(.*?)⟧")
FILE = re.compile(r"^--- (\S+)\n", re.MULTILINE)


async def check(drawn: str, note: str | None = None, places: list[str] | None = None) -> None:
    """`note` is what the offer says of the places that it leaves, `places` are these in any order."""
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
        budget=ContextBudget(),
        session="test",
        bar=0.25,
        neighbours=tuple(others),
        project=Project(read=texts.get, exists=texts.__contains__),
    )
    answer = await last_of(question)
    if note is not None:
        assert answer.offer is not None, answer.silence
        assert answer.offer.note == note
    if places is not None:
        assert answer.offer is not None, answer.silence
        assert sorted(re.findall(r"[\w.]+:\d+", answer.offer.note)) == sorted(places)
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

    def g(self, x: Empty) -> "Empty":
        return self.Empty or «Empty»
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

INNER = """
--- a.py
def ⟦load→fetch⟧(x):
    return x

def f():
    def load(x):
        return load(x)
    return load(1)

def g():
    class load:
        pass
    return load()

def h():
    from json import load
    return load(1)

def i(x):
    match x:
        case [load, *rest]:
            return load
        case Row(load=y) | {"load": y}:
            return load(y)

class A:
    load = 1
    def f(self, a=load) -> load:
        return «load»(a)
--- b.py
def f():
    from a import «load»
    return «load»(1)

def g():
    return load(2)

def h():
    try:
        from a import «load»
    except ImportError:
        load = None
    return load
"""

INNER_PARAMETER = """
--- a.py
def load(⟦path→folder⟧):
    return «path»

def f():
    def load(path):
        return path
    return load(path=1)

load(«path»=2)
"""

HANDED_ON = """
--- pkg/__init__.py
from .rows import *

def load():
    pass
--- pkg/rows.py
def ⟦load→fetch⟧():
    pass
--- use.py
from pkg import load
load()
"""

ATTRIBUTES = """
--- a.py
class A:
    def ⟦run→start⟧(self):
        pass

class B:
    def __init__(self):
        self.one = A()
        self.two = A()
        self.three = A()

    def f(self, x):
        self.two, self.four = x
        for self.three in x:
            pass
        return self.one.«run»() + self.two.run() + self.three.run()

class C:
    def f(self):
        self.one.run()
"""

JSX = """
--- a.tsx
export function ⟦Card→Tile⟧() { return <div className="Card">Card</div>; }
export const Two = () => <><«Card» /><ui.Card /><«Card» Card={1}>Card</«Card»></>;
--- b.tsx
import { «Card» } from "./a";
export const Use = () => <«Card» a={<«Card»/>} />;
"""

THIS = """
--- a.ts
class A {
  private ⟦total→sum⟧ = 1;
  f() { return this.«total» + [1].map(() => this.«total»); }
  g() { return function () { return this.total; }; }
  h() { return { m() { return this.total; } }; }
  i(self) { return self.total; }
}
"""

PRIVATE = """
--- a.js
class A {
  #⟦total→sum⟧ = 1;
  f(o) { return this.#«total» + o.#«total» + this.total; }
}
class B { #total = 2; f() { return this.#total; } }
"""

NAMESPACES = """
--- a.ts
export interface ⟦Item→Entry⟧ {}
export function f<Item>(x: Item): Item { return x; }
namespace N { export interface Item {} ; const y: Item = 1; }
const z: N.Item = 1, w: «Item» = 2;
--- b.ts
export * from "./a";
export interface Item {}
--- c.ts
import { Item } from "./b";
"""

COMMON = """
--- a.js
function ⟦load→fetch⟧() {}
module.exports = { «load» };
--- b.js
const { «load» } = require("./a");
«load»();
"""

NAMED_FOR_OTHERS = """
--- a.js
function ⟦load→fetch⟧() {}
exports.load = «load»;
--- b.js
const { load } = require("./a");
load();
"""

TYPE_OF_A_FUNCTION = """
--- a.go
package a

func ⟦Load→Fetch⟧() {}
func f() { type Load int; var x Load; print(x) }
func g() { «Load»() }
"""

UNEXPORTED = """
--- a.go
package a

type A struct{}
func (a *A) ⟦run→start⟧() {}
func f() { x := find(); x.«run»(); run(); y := map[string]int{run: 1}; print(y) }
--- b.go
package a

func g(a *A) { find().«run»() }
--- c/c.go
package c

func h(a *A) { find().run() }
"""

UNEXPORTED_TWICE = """
--- a.go
package a

type A struct{}
func (a *A) ⟦run→start⟧() {}
func f(a *A) { x := find(); x.run(); a.«run»() }
--- b.go
package a

type B struct{ run int }
"""

INTERFACE = """
--- a.go
package a

type Runner interface{ ⟦Run→Start⟧() }
type A struct{}
func (a A) Run() {}
func f(r Runner, a A) { r.«Run»(); a.Run() }
"""

MODULES_OF_RUST = """
--- src/lib.rs
mod rows;
--- src/rows.rs
pub fn ⟦load→fetch⟧() {}
macro_rules! load { () => {} }
fn f() { use other::load; load(); load!(); }
fn g() { fn load() {} load(); }
fn h(s: S) { let S { load } = s; load(); }
fn i() { «load»(); }
mod inner { fn load() {} fn r() { load(); super::«load»(); self::load(); } }
mod tests { use super::*; fn r() { «load»(); super::«load»(); } }
mod alone { fn r() { load(); } }
"""

FIELD_OF_JAVA = """
--- src/shop/Cart.java
package shop;
class Cart {
    int ⟦total→sum⟧;
    int total() { return «total»; }
    int f(Cart o, int total) { return o.«total» + total + o.total(); }
}
--- src/shop/Other.java
package shop;
class Other { int f(Cart c) { return c.total() + c.«total»; } }
"""

METHOD_OF_JAVA = """
--- src/shop/Cart.java
package shop;
class Cart { int ⟦add→put⟧(int x) { return «add»(1); } }
--- src/shop/More.java
package shop;
class More extends Cart { int add(String x) { return 1; } }
class Second extends Cart { int «add»(int y) { return 1; } }
--- src/shop/Third.java
package shop;
class Third { class Cart { int add(int x) { return 1; } } int f(Cart c) { return c.add(1); } }
"""

CLASS_OF_JAVA = """
--- src/shop/Cart.java
package shop;
class ⟦Cart→Basket⟧ { int Cart; «Cart»() {} }
--- src/shop/Other.java
package shop;
class Other { class Cart {} Cart c; }
"""

MACROS = """
--- a.c
static int ⟦size→length⟧(int x) { return x; }
#define M(size) (size + 1)
int f(void) { return «size»(2); }
"""

DOTTED = """
--- shop/__init__.py
from .model import «volume»
--- shop/model.py
import shop.model

def ⟦volume→capacity⟧(a):
    return a

def twice(a):
    return «volume»(a) + shop.model.«volume»(a) + other.model.volume(a)
--- app.py
def f():
    import shop.model
    return shop.model.«volume»(3) + shop.«volume»(2)

def g():
    import other.model
    return other.model.volume(3)

def h(shop):
    return shop.model.volume(3)
"""

FILES = {
    "what a dotted path leads to": DOTTED,
    "what functions of Python have for themselves": INNER,
    "a parameter of what a function has for itself": INNER_PARAMETER,
    "what a package has itself, and no longer hands on": HANDED_ON,
    "objects in attributes": ATTRIBUTES,
    "the text of JSX": JSX,
    "objects that are called this": THIS,
    "a private name of JavaScript": PRIVATE,
    "namespaces and type parameters of TypeScript": NAMESPACES,
    "what CommonJS exports": COMMON,
    "what CommonJS exports by another name": NAMED_FOR_OTHERS,
    "a type within a function of Go": TYPE_OF_A_FUNCTION,
    "an interface of Go": INTERFACE,
    "a member that a package of Go has once": UNEXPORTED,
    "a member that a package of Go has twice": UNEXPORTED_TWICE,
    "modules and macros of Rust": MODULES_OF_RUST,
    "a field of Java that has a method's name": FIELD_OF_JAVA,
    "a method of Java with other parameters": METHOD_OF_JAVA,
    "a class of Java that another class hides": CLASS_OF_JAVA,
    "parameters of macros of C": MACROS,
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


LOOPS = """
--- shop.py
class Entry:
    def __init__(self, price):
        self.⟦price→cost⟧ = price

    def total(self):
        return self.«price» * 2

def total(entries: list[Entry]):
    return sum(entry.«price» for entry in entries)
--- report.py
from shop import Entry

def show(entries: list[Entry]):
    for entry in entries:
        print(entry.price)
--- other.py
def price(row):
    return row.price
"""

ANNOTATIONS = """
--- shop.py
class ⟦Entry→Item⟧:
    def twin(self) -> "list[«Entry»]":
        return [«Entry»(), self]

    # an Entry in a comment
    def other(self, one: "«Entry» | None") -> None:
        print("Entry")
"""

INTERFACE = """
--- shop.ts
export interface User {
  ⟦name→title⟧: string;
}

export const root: User = { «name»: "root" };
save({ name: "other" });
--- show.ts
import { User } from "./shop";

export function show(user: User): string {
  return user.«name»;
}
--- beside.ts
export const file = { name: "beside" };
console.log(file.name);
"""


async def test_a_rename_says_which_uses_of_a_member_cannot_be_judged():
    await check(LOOPS, "1 more place cannot be judged: report.py:5")


async def test_annotations_in_quotes_are_renamed():
    await check(ANNOTATIONS, "")


async def test_a_rename_of_a_field_of_an_interface_says_which_objects_it_leaves():
    await check(INTERFACE, "1 more place cannot be judged: shop.ts:6")


async def test_a_rename_that_is_complete_says_nothing():
    await check(EXPORTED, "")


TAKEN_BESIDE = """
--- go.mod
module example.com/a
--- a.go
package a

func ⟦load→save⟧() {}
func f() { load() }
--- b.go
package a

func save() { load() }
"""


async def test_a_name_that_another_file_of_the_package_has_is_not_given():
    await check(TAKEN_BESIDE)
