"""What the code around the cursor says may follow."""

import pytest

from mercury_engine.api import Proposed
from mercury_ls.code.documents import Document
from mercury_ls.completion.shapes import Elsewhere, proposed, proposed_lines, scene

SHAPES = """\
class Shape:
    def __init__(self, width, height):
        pass

    def area(self, scale: float, *, rounded=False) -> float:
        return 0
"""


def found(marked, path="a.py", other=""):
    text, at = marked.replace("$0", ""), marked.index("$0")
    language = {"py": "python", "ts": "typescript", "go": "go"}[path.rpartition(".")[2]]
    elsewhere = Elsewhere(lambda name: [other] if name in other else [], lambda name: other or None)
    return Document(f"file:///{path}", path, language, 1, text).snapshot(), at, elsewhere


def check(marked, shape, expected, path="a.py", other=""):
    here = scene(*found(marked, path, other))
    assert [text for name, _, text in proposed_lines(here) if name == shape] == expected


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("$0", ["self.a = a", "self.b = b", "self.a = a\n        self.b = b"]),
        ("self.a = a\n        $0", ["self.b = b"]),
        ("self.a = a\n        self.$0", ["b = b"]),
        ("self._a = a\n        self._b = $0", ["b"]),
        ("use(a, b)\n        $0", []),
    ],
)
def test_a_constructor_stores_its_parameters(marked, expected):
    check(f"class A:\n    def __init__(self, a, b):\n        {marked}\n", "stored", expected)


def test_a_constructor_of_typescript():
    marked = "class A {\n  constructor(a: string) {\n    $0\n  }\n}\nlet x = 1;\n"
    check(marked, "stored", ["this.a = a"], path="a.ts")


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("Shape($0", ["width, height)"]),
        ("Shape(wid$0", ["th, height)"]),
        ("Shape(width, $0", ["height)"]),
        ("Shape(height=1, $0", ["width=width)"]),
        ("other = 1\n    unknown($0", []),
    ],
)
def test_arguments_are_what_has_the_names_of_the_parameters(marked, expected):
    check(f"def f(width, height):\n    {marked}\n", "arguments", expected, other=SHAPES)


def test_arguments_are_given_as_far_as_they_are_known():
    check("def f(width):\n    Shape($0\n", "arguments", ["width,"], other=SHAPES)


def test_the_header_of_a_method_is_no_call():
    check("class A {\n  area(width) {\n  }\n  area($0\n}\n", "arguments", [], path="a.ts")


def test_an_argument_may_have_the_type_of_the_parameter():
    check("def g(s: Scale): ...\ndef f(x: Scale):\n    g($0\n", "arguments", ["x)"])


def test_members_of_others_are_known_by_their_names():
    check("def f(shape, scale, rounded):\n    shape.area($0\n", "arguments_of_others", AREA, other=SHAPES)


AREA = ["scale, rounded=rounded)", "scale)"]


@pytest.mark.parametrize(
    ("shape", "marked", "expected"),
    [
        ("passed_on", "def area(self, scale, **more):\n        return super$0", ["().area(scale, **more)"]),
        ("arguments", "def area(self, scale):\n        super().area($0", ["scale)"]),
    ],
)
def test_methods_of_a_base(shape, marked, expected):
    check(f"class Box(Shape):\n    {marked}\n", shape, expected, other=SHAPES)


@pytest.mark.parametrize(
    ("marked", "other", "expected"),
    [
        ("from m import $0\n\nx = first(second)\n", "", ["first", "second"]),
        ("from m import $0\n\nx = first(second)\n", "def second(): ...\n", ["second"]),
        ("from m import $0\nx = first(second)\n", "second = 1\nfirst = 2\n", ["first, second", "first", "second"]),
        ("from m import $0\nx = first(__file__)\n", "", ["first"]),
        ("from m import first, $0\nx = first(second)\n", "", ["second"]),
        ("from m import $0\nr'''first'''\nfor x in range(3):\n    print(x, *[])\n", "", []),
    ],
)
def test_names_that_nothing_binds_are_imported(marked, other, expected):
    check(marked, "imported", expected, other=other)


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("left = box.left\nright = box.right\ntop = $0", ["box.top"]),
        ("left = box.left\nright = box.right\nto$0", []),
        ("MIN = min_of(x)\nmax_x = $0", []),
        ("min_x = p.min_of(x)\nmin_y = p.min_of(y)\nmax_y = $0", ["p.max_of(y)"]),
        ("left = box.left\nright = $0", []),
        ("if a: b\nwhile $0", []),
    ],
)
def test_lines_that_mirror_others(marked, expected):
    check(marked + "\n", "mirrored", expected)


def test_proposals_come_with_how_often_they_are_right_the_likeliest_first():
    chances = [each.chance for each in proposed(*found("class A:\n    def __init__(self, a, b):\n        $0\n"))]
    assert chances == sorted(chances, reverse=True)
    assert proposed(*found("x = $0\n")) == ()
    assert all(isinstance(each, Proposed) for each in proposed(*found("from m import $0\nx = first\n")))
