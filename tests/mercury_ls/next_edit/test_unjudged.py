"""An offer names what a rename leaves because nothing says for certain what it is, and not what is something else.

Drawn as in test_uses.py; a line that ends in `?` as a comment holds a place that is named.
"""

import re

import pytest

from tests.mercury_ls.next_edit.test_uses import FILE, check

MARK = re.compile(r"  (?:#|//)\?$", re.MULTILINE)

PYTHON = {
    "a class that is handed on": """
--- pkg/__init__.py
from .shop import Entry
--- pkg/shop.py
class Entry:
    def ⟦total→amount⟧(self):
        return self.«total»()
--- report.py
from pkg import Entry

def show(entries: list[Entry]):
    return [entry.total() for entry in entries]  #?
""",
    "the result of a function of another file": """
--- shop.py
class Entry:
    def ⟦total→amount⟧(self):
        return self.«total»()
--- factory.py
from shop import Entry

def make():
    return Entry().«total»()
--- report.py
import factory

print(factory.make().total())  #?
--- far.py
print(make().total())  #?
""",
    "names in strings": """
--- shop.py
__all__ = ["«load»", "other"]

def ⟦load→fetch⟧(): ...
--- test_shop.py
from shop import «load»

patch("shop.load")  #?
patch.object(shop, "load")  #?
print("load", "load it", "other.loading", {"load": «load»}, row["load"])
--- handed.py
from shop import «load»

__all__ = ["«load»"]
--- deep.py
__all__ = ["load"]
patch("app.shop.load")  #?
""",
    "a class in casts and annotations": """
--- shop.py
class ⟦Entry→Item⟧:
    def twin(self) -> "list[«Entry»]":
        return [«Entry»()]
--- use.py
from shop import «Entry»

one = cast("Entry", two)  #?
def f(x: "«Entry» | None", y: dict[str, list["«Entry»"]]) -> "«Entry»": return «Entry»
def g(x: Literal["Entry"], y: "other.Entry"): ...  #?
""",
    "keywords of class patterns": """
--- shop.py
@dataclass
class Entry:
    ⟦price→cost⟧: int
--- use.py
from shop import Entry

match x:
    case Entry(«price»=p): ...
    case Other(price=p): ...
Entry(«price»=1)
Other(price=1)
replace(entry, price=2)  #?
sorted(entries, price=3)
""",
    "objects of unknown and of other types": """
--- shop.py
class Entry:
    def ⟦total→amount⟧(self): ...
class More(Entry): ...
class Other:
    def total(self): return self.total()
--- use.py
import json
from shop import Entry, More, Other

def f(a: Entry, b: Other, c, d: More, e: str):
    made = Other()
    text = ""
    rows = []
    a.«total»()
    b.total() + Other().total() + made.total() + json.total() + Other.total(b) + e.total() + text.total() + rows.total()
    c.total()  #?
    d.total()  #?
    c.all()[0].total()  #?
    getattr(c, "total")()  #?
class Mixed(Base, Entry):
    def total(self): ...  #?
    def f(self): return self.total()  #?
class Last(Other):
    def total(self): return self.total()
""",
    "a name that a file has twice": """
--- rows.py
def ⟦load→fetch⟧(): ...
--- twice.py
from rows import «load»
try:
    from quick import load
except ImportError: ...
load(1)  #?
--- taken.py
from rows import load  #?

def f(fetch):
    return load(fetch)  #?
""",
    "parameters of a constructor": """
--- shop.py
class Rows:
    def __init__(self, ⟦path→folder⟧): self.path = «path»
class Other:
    def __init__(self, path): ...
--- use.py
from shop import Other, Rows

Rows(«path»=1)
Other(path=1)
make(path=1)
class More(Rows):
    def f(self): super().__init__(path=1)  #?
class Last(Other):
    def f(self): super().__init__(path=1)
More(path=2)  #?
""",
    "attributes": """
--- shop.py
class Entry:
    def __init__(self, price): self.⟦price→cost⟧ = price
    def total(self): return self.«price»
--- use.py
from shop import Entry, Other

def f(e: Entry, o: Other):
    o.price
    e.price  #?
    o.entry.price  #?
    print({"price": 1}["price"])
    getattr(e, "price")  #?
class Sub(Entry):
    def g(self): return self.price  #?
class Far:
    def __init__(self): self.other = Other()
    def g(self): return self.price + self.other.price
""",
    "parameters by keyword": """
--- shop.py
class Rows:
    def read(self, ⟦path→folder⟧): return «path»
--- use.py
from shop import Rows

def f(rows, path):
    rows.read(path=path)  #?
    rows.write(path=path)
    open(path=path)
""",
}

TYPESCRIPT = {
    "an interface": """
--- shop.ts
export interface User {
  ⟦name→title⟧: string;
}
--- use.ts
import { User } from "./shop";
import { Book } from "./book";

const { name } = find<User>();  //?
const { name: given } = find();  //?
const f = ({ name }: Book) => [name];
const g = ({ «name»: n }: User, { name: m }: Book) => [n, m];
const a: User = { «name»: "a" };
const b: Book = { name: "a" };
save({ name: "a" });  //?
const h = (name: string) => save({ name });  //?
function i(u: User, b: Book) { return u["name"] + b["name"]; }  //?
type Named = Pick<User, "name">;  //?
class Admin implements User { name = ""; }  //?
class Page implements Book { name = ""; f() { return this.name; } }
console.log("name", find("name"));
--- beside.ts
export const file = { name: "beside" };
""",
    "a file that reaches it by another": """
--- shop.ts
export class User { ⟦label→title⟧ = ""; f() { return this.«label»; } }
--- make.ts
import { User } from "./shop";
export const make = () => new User();
--- use.ts
import { make } from "./make";
console.log(make().label);  //?
--- spy.ts
import * as shop from "./shop";
jest.spyOn(shop, "label");  //?
""",
}

OTHERS = {
    "Go, keys of composite literals": """
--- go.mod
module example.com/shop
--- conf/conf.go
package conf

type Config struct {
	⟦Addr→Address⟧ string
}
type Other struct{ Addr string }

var one = Config{«Addr»: "a"}
var all = []Config{{Addr: "a"}}  //?
var others = []Other{{Addr: "a"}, Other{Addr: "b"}}
--- main.go
package main

import "example.com/shop/conf"

var one = conf.Config{«Addr»: "a"}
var all = map[string]*conf.Config{"a": {Addr: "a"}}  //?
func f() string { return make().Addr }  //?
""",
    "Go, types that have a method of an interface": """
--- run.go
package run

type Runner interface{ ⟦Run→Start⟧() }
type A struct{}
func (a A) Run() {}  //?
func f(r Runner, a A) {
	r.«Run»()
	a.Run()  //?
}
""",
    "Go, a method by its package's name": """
--- go.mod
module example.com/a
--- a/a.go
package a

type S struct{}
func (s *S) ⟦Load→Fetch⟧() { s.«Load»() }
--- b/b.go
package b

import "example.com/a/a"

type Loader interface{ Load() }  //?
func f(s *a.S, l Loader, t *Tree) {
	s.«Load»()
	l.Load()
	t.Load()
	a.New().Load()  //?
}
""",
    "C++, objects of other types": """
--- a.cpp
struct Shape { int ⟦size→length⟧; int f() { return «size» + this->«size»; } };
int g(Shape* s, Tree t) { return s->«size» + t.size; }
int h() { return make().size; }  //?
""",
    "Rust, fields in loops and macros": """
--- src/lib.rs
mod shop;
mod report;
--- src/shop.rs
pub struct Entry { pub ⟦price→cost⟧: u8 }
pub struct Other { pub price: u8 }
pub fn total(entries: &[Entry]) -> u8 {
    let mut sum = 0;
    for entry in entries {
        sum += entry.price;  //?
    }
    sum
}
--- src/report.rs
use crate::shop::{Entry, Other};
fn show(entries: &[Entry], o: Other) {
    for entry in entries {
        log(entry.price);  //?
        println!("{}", entry.price);  //?
    }
    log(o.price);
    let Entry { «price»: p, .. } = entries[0];
    let other = Other { price: 1 };
}
""",
    "Java, another file of the package": """
--- src/shop/Cart.java
package shop;
class Cart { int ⟦total→sum⟧() { return «total»(); } }
--- src/shop/More.java
package shop;
class More extends Cart { int f() { return total(); } }  //?
--- src/shop/Use.java
package shop;
class Use {
    int f(Cart c) { return c.«total»(); }
    int g(Shop s) { return s.cart().total(); }  //?
    int h(Order o) { return o.total() + total(); }
}
""",
}
DRAWN = {**PYTHON, **TYPESCRIPT, **OTHERS}


@pytest.mark.parametrize("name", DRAWN)
async def test_places_that_a_rename_cannot_judge_are_named(name: str) -> None:
    files = FILE.split(DRAWN[name].lstrip("\n"))[1:]
    places = [
        f"{path.rpartition('/')[2]}:{number}"
        for path, text in zip(files[::2], files[1::2], strict=True)
        for number, line in enumerate(text.split("\n"), 1)
        if MARK.search(line)
    ]
    await check(MARK.sub("", DRAWN[name]), places=places)


async def test_many_places_are_one_short_line() -> None:
    home = "--- shop.py\nclass Entry:\n    def ⟦name→title⟧(self): return self.«name»()\n"
    uses = "--- use.py\nfrom shop import Entry\n\ndef f(x):\n" + "    x.name()\n" * 60
    await check(home + uses, "more than 50 places cannot be judged: use.py")


TOKENS = """
--- tokens.py
from dataclasses import dataclass


@dataclass
class Token:
    text: str
    ⟦lineno→row⟧: int = 0
--- kinds.py
from typing import NamedTuple, Protocol
from tokens import Token

Alias = Token
Pair = NamedTuple("Pair", [("lineno", int)])


class Placed(Protocol):
    pass


class Lexer:
    token: Token
--- use.py
from tokens import Token
"""
SHAPES = (
    "def f(token: Token): return token.«lineno»",
    "def f(token: 'Token'): return f'{token.«lineno»}'",
    "def f(token: Token): token.«lineno» += 1",
    "def f(token): token.lineno += 1  #?",
    "def f(token): return f'{token.lineno:>4}'  #?",
    "def f(tokens: list[Token]): return [token.lineno for token in tokens]  #?",
    "def f(tokens): return max(token.lineno for token in tokens)  #?",
    "def f(tokens: list[Token]): return tokens[0].lineno  #?",
    "def f(token): return getattr(token, 'lineno')  #?",
    "def f() -> Token: return g()\nprint(f().lineno)  #?",
    "token = Token('a', «lineno»=1)",
    "from dataclasses import replace\ndef f(token): return replace(token, lineno=1)  #?",
    "match g():\n    case Token(«lineno»=1): pass",
    "class A:\n    def f(self): return self.token.lineno  #?",
    "class A:\n    def __init__(self): self.token = Token('a')\n    def f(self): return self.token.«lineno»",
    "class A(Token):\n    def f(self): return self.«lineno»",
    "from kinds import Lexer\ndef f(lexer: Lexer): return lexer.token.lineno  #?",
    "from kinds import Alias\ndef f(token: Alias): return token.lineno  #?",
    "from kinds import Placed\ndef f(token: Placed): return token.lineno  #?",
    "from kinds import Pair\ndef f(pair: Pair): return pair.lineno",
    "Row = Token | None\ndef f(row: Row): return row.lineno  #?",
    "class A:\n    lineno = 1\n    def f(self): return self.lineno",
    "def f(token: str): return token.lineno",
    "# the lineno of a Token",
    "_ = 'the lineno of a Token'",
)


@pytest.mark.parametrize("shape", SHAPES)
async def test_use_of_an_attribute_is_renamed_named_or_certainly_anothers(shape: str) -> None:
    lines = enumerate(shape.split("\n"), 2)
    places = [f"use.py:{number}" for number, line in lines if line.endswith("#?")]
    await check(TOKENS.lstrip("\n") + shape.replace("  #?", "") + "\nprint(Token('b', «lineno»=2))\n", places=places)
