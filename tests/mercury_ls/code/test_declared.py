"""What a text declares, with kinds, parameters and types; what is in reach at a place; what it uses of others."""

import pytest

from mercury_ls.code.declared import Used, declared_in_file, locals_at, used_in_file
from mercury_ls.code.documents import Document

PYTHON = """\
import numpy as np
from shop.cart import Cart, MOST as LIMIT

RATE: float = 0.2

class Order(Cart):
    total: int = 0

    def __init__(self, cart: Cart, note=None):
        self.cart = cart
        local = 1

    def pay(self, by: str) -> bool: ...

def load(path):
    def inner(): ...
"""
TYPESCRIPT = """\
import { z, type Infer as I } from "zod";
export interface Shape extends Base { width: number; area(): number }
export enum Color { Red, Green = 2 }
export const make = (w: number): Shape => { const inner = 1; return w };
export class Box implements Shape {
  width = 1;
  constructor(private side: number) { this.cache = new Map(); }
  area(): number { return 1; }
}
"""
GO = """\
package shop
import "fmt"
const Most = 3
type Cart struct { Total int; note string }
func (c *Cart) Add(n int) error { return nil }
func NewCart(name string) *Cart { return &Cart{} }
"""
RUST = """\
use std::fs::File;
pub struct Cart { pub total: u32 }
impl Cart { pub fn add(&mut self, n: u32) -> bool { let local = 1; true } }
enum Color { Red, Green(u8) }
const MOST: usize = 3;
"""
JAVA = """\
import java.util.List;
class Cart extends Base { private int total; Cart(int n) {} boolean add(int n) { int local; return true; } }
enum Color { RED }
"""


def opened(text, path):
    return Document("", f"/{path}", "", 1, text).snapshot()


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        (
            "a.py",
            PYTHON,
            """
            np:module<numpy Cart:class<shop.cart LIMIT:constant<shop.cart RATE:constant=float Order:class=(Cart):
            Order.total:property=int Order.__init__:function(self,cart:Cart,note=None) Order.cart:property
            Order.pay:function(self,by:str)=bool load:function(path)
            """,
        ),
        (
            "a.ts",
            TYPESCRIPT,
            """
            z<zod I:class<zod Shape:class=extendsBase Shape.width:property=number Shape.area:function=number Color:class
            Color.Red:constant Color.Green:constant make:function(w:number)=Shape Box:class=implementsShape
            Box.width:property Box.constructor:function(privateside:number) Box.cache:property=Map
            Box.area:function=number
            """,
        ),
        (
            "a.go",
            GO,
            """
            fmt:module<fmt Most:constant Cart:class=struct{Totalint;notestring} Cart.Total:property=int
            Cart.note:property=string Cart.Add:function(nint)=error NewCart:function(namestring)=*Cart
            """,
        ),
        (
            "a.rs",
            RUST,
            """
            File:class<std::fs Cart:class Cart.total:property=u32 Cart.add:function(&mutself,n:u32)=bool Color:class
            Color.Red:constant Color.Green:constant MOST:constant=usize
            """,
        ),
        (
            "A.java",
            JAVA,
            """
            List:class<java.util.List Cart:class=extendsBase Cart.total:property=int Cart.Cart:function(intn)
            Cart.add:function(intn)=boolean Color:class Color.RED:constant
            """,
        ),
    ],
)
def test_declarations_of_a_file_are_found(path, text, expected):
    assert [drawn(each) for each in declared_in_file(opened(text, path))] == expected.split()


def drawn(each):
    """`owner.name:kind(parameters)=type<module`"""
    parts = [f"{each.owner}." if each.owner else "", each.name, f":{each.kind}" if each.kind else ""]
    parts += [f"({each.parameters})" if each.parameters else "", f"={each.type}" if each.type else ""]
    return "".join([*parts, f"<{each.module}" if each.module else ""]).replace(" ", "")


@pytest.mark.parametrize(
    ("path", "marked", "expected"),
    [
        (
            "a.py",
            "def f(a, *rest, b=1):\n    c = d = Foo()\n    for e, g in c:\n        x = $0y\n",
            "x g e c d b rest a",
        ),
        ("a.py", "def f(a):\n    def g(b):\n        c = 1\n    $0x\n", "g a"),
        ("a.py", "x = [row for row in rows if $0row]\n", ""),
        ("a.ts", "function f(a: A) { const { b, c: d } = a; if (b) { let e = 1; $0 } }", "e d b a"),
        ("a.ts", "function f(a: A) { { let e = 1; } $0 }", "a"),
        ("a.ts", "function f({ a, ...b }) { c = 1; $0 }", "b a"),
        ("a.go", "package p\nfunc f(a, b int) { c, err := g(); $0 }", "err c b a"),
        ("a.go", "package p\nfunc f(a int) { $0; c := 1 }", "a"),
        ("a.rs", "fn f(a: u8) { let b = 1; if let Some(c) = b { $0 } }", "c b a"),
        ("a.py", "$0x = 1\n", ""),
    ],
)
def test_locals_in_reach_are_found(path, marked, expected):
    found = locals_at(opened(marked.replace("$0", ""), path), marked.index("$0"))
    assert sorted(each.name for each in found) == sorted(expected.split())


def test_nearest_names_come_first_with_their_types():
    marked = "function f(a: A, b) { const c = new Map(); if (c) { const d: D = a; $0 } }"
    found = locals_at(opened(marked.replace("$0", ""), "a.ts"), marked.index("$0"))
    assert [(each.name, each.kind, each.type) for each in found] == [
        ("d", "variable", "D"),
        ("c", "variable", "Map"),
        ("b", "parameter", ""),
        ("a", "parameter", "A"),
    ]


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        (
            "a.py",
            "import os\nfrom typing import Any\nfrom .near import x\nos.walk(Any)\nrun(shell=True)\nfoo.bar\n",
            {
                Used("Any", "class", "typing"),
                Used("walk", "function", "os"),
                Used("shell", "keyword", origin="run()"),
            },
        ),
        (
            "a.ts",
            'import { z as zod } from "zod";\nzod.object(); JSON.parse(""); this.x;\n',
            {Used("z", "", "zod"), Used("object", "function", "zod", "z"), Used("parse", "function", origin="JSON")},
        ),
        (
            "a.go",
            'package p\nimport "fmt"\nvar x = cobra.Command{Use: fmt.Sprint()}\n',
            {Used("Sprint", "class", "fmt"), Used("Use", "keyword", origin="Command()")},
        ),
    ],
)
def test_names_used_from_other_files_are_found(path, text, expected):
    assert set(used_in_file(opened(text, path))) == expected
