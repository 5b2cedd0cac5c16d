"""Names as they are written in a text and in the other files of its project, without any analyser."""

import pytest

from mercury_ls.code.documents import Document
from mercury_ls.names.members import NameSources
from mercury_ls.names.written import WrittenNames
from mercury_ls.project.privacy import Privacy
from mercury_ls.project.workspace import Workspace
from mercury_ls.settings.schema import ContextSettings, PrivacySettings

FILES = {
    "shop/cart.py": (
        "class Base:\n    note = ''\n    def save(self, path): ...\n\n\n"
        "class Cart(Base):\n    total: int = 0\n    def __init__(self, owner, size=1): ...\n    def add(self, n): ...\n"
    ),
    "shop/use.py": "import requests\nfrom typing import Any\nrequests.get(url, timeout=3)\nrequests.post(url)\n",
    "shop/secret.py": "class Hidden:\n    password = 1\n",
    ".gitignore": "secret.py\n",
    "src/shape.ts": "export class Shape { width = 1; area(scale: number) {} }\nexport enum Color { Red, Green }\n",
    "src/use.ts": 'import { z } from "zod";\nz.object(); z.string();\n',
    "go.mod": "module example.com/shop\n",
    "cart/cart.go": "package cart\ntype Cart struct { Total int; note string }\nfunc New(name string) *Cart {}\n",
    "main.go": "package main\nfunc helper() {}\n",
    "lib/cart.rs": "struct Cart { total: u32 }\nimpl Cart { fn new() -> Cart {} fn add(&mut self, n: u32) {} }\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="module")
def workspace(folder):
    workspace = Workspace([folder], Privacy(PrivacySettings(), [folder]), ContextSettings())
    while workspace.step(0.0):
        pass
    return workspace


@pytest.fixture
def check(folder, workspace):
    """At `$0` of a text of the project these names are known of a role, in any order; `-name` is not among them."""

    async def check(path, marked, role, expected):
        text, offset = marked.replace("$0", ""), marked.index("$0")
        snapshot = Document(f"file://{folder}/{path}", f"{folder}/{path}", "", 1, text).snapshot()
        names = NameSources(reader=WrittenNames(workspace))
        assert names.about(snapshot, offset) == () or role != "scope"
        names.look_ahead(snapshot, offset)
        await names.settled()
        (found,) = [each for each in names.about(snapshot, offset) if each.role == role and not each.receiver] or [None]
        known = set(found.names) if found else set()
        wanted = set(expected.split())
        assert {name for name in wanted if name[0] != "-"} <= known
        assert known.isdisjoint(name[1:] for name in wanted)
        assert role == "scope" or expected or not known
        await names.close()
        return found

    return check


@pytest.mark.parametrize(
    ("path", "marked", "expected"),
    [
        ("shop/a.py", "class A:\n    x = 1\n    def f(self):\n        self.y = 2\n        self.$0\n", "x y f"),
        ("shop/a.py", "from shop.cart import Cart\ndef f(cart: Cart):\n    cart.$0\n", "total add note save"),
        ("shop/a.py", "from shop.cart import Cart\ncart = Cart()\nif cart.$0\n", "total add note save"),
        ("shop/a.py", "from shop.secret import Hidden\nHidden().$0\n", ""),
        ("shop/a.py", "from shop.secret import Hidden\nHidden.$0\n", ""),
        ("shop/a.py", "import requests\nrequests.$0\n", "get post"),
        ("src/a.ts", 'import { Shape } from "./shape";\nconst s = new Shape();\nconst w = s.$0\n', "width area"),
        ("src/a.ts", "class A { b = 1; c() { return this.$0 } }", "b c"),
        ("src/a.ts", "function f(s?: Shape | undefined) { s?.$0 }", "width area"),
        ("src/a.ts", "x = Color.$0\n", "Red Green"),
        ("src/a.ts", 'import { z } from "zod";\nconst s = z.$0\n', "object string"),
        ("b/b.go", 'package b\nimport "example.com/shop/cart"\nfunc f() { cart.$0 }', "Cart New -note"),
        ("b/b.go", 'package b\nimport "example.com/shop/cart"\nfunc f() { c := cart.New("")\n\tc.$0\n}', "Total"),
        ("cart/b.go", "package cart\nfunc (c *Cart) f() { c.$0 }", "Total note"),
        ("cart/b.go", "package cart\nfunc f() { x := &Cart{}\n\tx.$0\n}", "Total note"),
        ("lib/a.rs", "fn f(cart: &mut Cart) { cart.$0 }", "total add new"),
        ("lib/a.rs", "fn f() { let cart = Cart::new();\n    cart.$0\n}", "total add"),
        ("lib/a.rs", "fn f() { Cart::$0 }", "new"),
        ("lib/a.rs", "fn f() { unknown.$0 }", ""),
    ],
)
async def test_members(check, path, marked, expected):
    found = await check(path, marked, "member", expected)
    assert found is None or not found.complete


@pytest.mark.parametrize(
    ("path", "marked", "expected", "complete"),
    [
        ("shop/a.py", "import os\ndef f(a):\n    b = 1\n    return $0\n", "os f a b len print", True),
        ("shop/a.py", "def f(a):\n    return g(a, $0\n\ndef g(): ...\n", "f g a -os", True),
        ("shop/a.py", "def f(a):\n    return g($0\n", "f a", False),
        ("shop/a.py", "x = [g(a, $0\n", "x", False),
        ("shop/a.py", "def f(a):\n    b = 1\n    $0\n", "f a b", True),
        ("shop/a.py", "from os.path import *\nx = $0\n", "x len", False),
        (
            "src/a.ts",
            "const a = 1;\nfunction f(b) { const { c, d: e } = b;\n  return $0\n}",
            "a f b c e -d JSON",
            False,
        ),
        ("other.go", 'package main\nimport "fmt"\nfunc f(a int) {\n\tb := $0\n}', "fmt f a helper append", False),
        ("A.java", "class A { int a; void f(int b) { int c = $0; } }", "A a f b", False),
    ],
)
async def test_names_in_scope_are_known(check, path, marked, expected, complete):
    found = await check(path, marked, "scope", expected)
    assert found.complete == complete


@pytest.mark.parametrize(
    ("path", "marked", "expected"),
    [
        ("shop/a.py", "from shop.cart import Cart\nCart($0\n", "owner size -self"),
        ("shop/a.py", "from shop.cart import Cart\nCart(1, owner=2, $0\n", "size -owner"),
        ("shop/a.py", "from shop.cart import Cart\nx = Cart().add(\n    [1, 2],\n    $0\n)\n", ""),
        ("shop/a.py", "from shop.cart import Cart\nx = Cart()\nx.add($0)\n", "n -self"),
        ("shop/a.py", "import requests\nrequests.get(url, $0\n", "timeout"),
        ("shop/a.py", "def f($0):\n    pass\n", ""),
        ("shop/a.py", "if ($0\n", ""),
        ("shop/a.py", "class A:\n    a: int\n    b: str\nA($0)\n", "a b"),
        ("src/a.ts", "function f(s: Shape) { s.area($0) }", "scale"),
        ("cart/b.go", "package cart\nvar c = New($0)", "name"),
        ("cart/b.go", "package cart\nvar c = Cart{$0}", "Total note"),
        ("lib/a.rs", "fn f() { let c = Cart { $0 } }", "total"),
    ],
)
async def test_arguments(check, path, marked, expected):
    await check(path, marked, "keyword", expected)


@pytest.mark.parametrize(
    ("path", "marked", "expected"),
    [
        ("shop/a.py", "from shop.cart import $0\n", "Base Cart -note"),
        ("shop/a.py", "from shop.cart import (\n    Base,\n    Ca$0\n)\n", "Cart -Base"),
        ("shop/a.py", "from typing import $0\n", "Any"),
        ("shop/a.py", "import $0\n", "requests typing"),
        ("shop/a.py", "from shop.secret import $0\n", ""),
        ("src/a.ts", 'import { $0 } from "./shape";\n', "Shape Color"),
        ("src/a.ts", 'import { $0 } from "zod";\n', "z"),
    ],
)
async def test_imports(check, path, marked, expected):
    await check(path, marked, "import", expected)


@pytest.mark.parametrize("marked", ["# see $0\n", "x = 'a.$0'\n"])
async def test_comments_and_strings_have_no_names(check, marked):
    for role in ("member", "scope", "keyword", "import"):
        await check("shop/a.py", marked, role, "")
