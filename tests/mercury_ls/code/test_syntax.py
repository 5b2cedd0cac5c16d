import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_ls.code import syntax
from mercury_ls.code.documents import Document, Snapshot
from mercury_ls.code.languages import LANGUAGES

COMMON = ["python", "javascript", "typescript", "rust", "go", "c", "java"]
BRACES = [language for language in COMMON if language != "python"]
QUOTED = [language for language in COMMON if language != "rust"]


def drawn(text: str, language: str) -> tuple[Snapshot, int]:
    offset = text.index("$0")
    text = text.replace("$0", "", 1)
    return Document("file:///a", "a", language, 1, text).snapshot(), offset


def check_inside(language: str, text: str, expected: str | None):
    assert syntax.inside(*drawn(text, language)) == expected


def check_headers(language: str, text: str, *expected: str):
    snapshot, offset = drawn(text, language)
    assert [snapshot.text[start:end] for start, end in syntax.headers(snapshot, offset)] == [*expected]


def check_block(language: str, text: str, expected: bool):
    assert syntax.block_expected(*drawn(text, language)) is expected


def check_definitions(language: str, text: str, *expected: str):
    """Each as `name | signature`."""
    snapshot, _ = drawn(text + "$0", language)
    found = [f"{each.name} | {snapshot.text[each.start : each.signature_end]}" for each in syntax.definitions(snapshot)]
    assert found == [*expected]


def check_imports(language: str, text: str, *expected: str):
    snapshot, _ = drawn(text + "$0", language)
    assert [snapshot.text[start:end].strip() for start, end in syntax.imports(snapshot)] == [*expected]


# inside

COMMENT = {"python": "#", "ruby": "#", "bash": "#", "lua": "--"}


@pytest.mark.parametrize("language", [*COMMON, "cpp", "csharp", "ruby", "bash", "lua"])
def test_line_comment_reaches_to_the_end_of_its_line(language: str):
    mark = COMMENT.get(language, "//")
    check_inside(language, f"{mark}$0\n", "comment")
    check_inside(language, f"{mark} a $0b\n", "comment")
    check_inside(language, f"{mark} a$0\n", "comment")
    check_inside(language, f"{mark} a $0", "comment")
    check_inside(language, f"{mark} a\n$0", None)
    check_inside(language, f"$0{mark} a\n", None)


@pytest.mark.parametrize("language", [*BRACES, "cpp", "csharp", "css"])
def test_block_comment_ends_where_it_is_closed(language: str):
    check_inside(language, "/* a $0 */", "comment")
    check_inside(language, "/* a\n $0\n */", "comment")
    check_inside(language, "/* a */$0\n", None)
    check_inside(language, "/* a $0", "comment")
    check_inside(language, "/*$0", "comment")
    check_inside(language, "/* a\n * b\n$0", "comment")


@pytest.mark.parametrize("language", [*COMMON, "cpp", "csharp", "ruby", "bash", "lua"])
def test_unclosed_string_at_cursor_is_a_string(language: str):
    check_inside(language, 'x = "abc$0', "string")
    check_inside(language, 'f(a, "$0', "string")
    check_inside(language, 'f(a, "b\\"$0', "string")
    check_inside(language, 'f(a, "b"$0', None)


@pytest.mark.parametrize("language", QUOTED)
def test_unclosed_string_ends_with_its_line(language: str):
    check_inside(language, 'x = "abc$0\ny = 1\n', "string")
    check_inside(language, 'x = "abc\ny = 1$0\n', None)
    check_inside(language, "x = '$0\n", "string")


def test_closed_string_is_a_string_between_its_quotes():
    check_inside("python", "x = 'a$0b'\n", "string")
    check_inside("python", "x = '$0'\n", "string")
    check_inside("python", "x = ''$0\n", None)
    check_inside("python", "x = $0''\n", None)
    check_inside("javascript", "const a = 'x$0'\n", "string")
    check_inside("typescript", "const a: string = `x$0`\n", "string")
    check_inside("rust", 'fn f() { let a = "x$0"; }\n', "string")
    check_inside("rust", 'fn f() { let a = r#"x "$0 y"#; }\n', "string")
    check_inside("go", "package a\nvar b = `x\n$0`\n", "string")
    check_inside("c", 'char *a = "x$0";\n', "string")
    check_inside("java", 'class A { String a = """\n x$0\n """; }\n', "string")
    check_inside("ruby", "a = <<~X\n  b$0\nX\n", "string")
    check_inside("html", '<a href="x$0">\n', "string")


def test_docstring_is_a_string():
    check_inside("python", 'def f():\n    """Do $0it."""\n', "string")
    check_inside("python", 'def f():\n    """Do\n\n    $0\n    """\n', "string")
    check_inside("python", 'def f():\n    """Do\n    $0\n\ndef g(): pass\n', "string")


def test_interpolation_is_code():
    check_inside("python", 'f"a {b$0} c"\n', None)
    check_inside("python", 'f"a {b} c$0"\n', "string")
    check_inside("python", 'f"a {b}$0"\n', "string")
    check_inside("python", 'f"a {d["k$0"]}"\n', "string")
    check_inside("javascript", "x = `a ${b$0} c`\n", None)
    check_inside("javascript", "x = `a ${b} $0c`\n", "string")
    check_inside("ruby", 'x = "a #{b$0} c"\n', None)
    check_inside("csharp", 'var x = $"a {b$0} c";\n', None)
    check_inside("bash", 'x="a $(b $0 c) d"\n', None)


def test_unfinished_interpolation_is_code():
    check_inside("python", 'x = f"a {b.$0\ny = 1\n', None)
    check_inside("python", 'x = f"a {b} c$0\ny = 1\n', "string")
    check_inside("python", "x = f\"a {d['k$0\n", "string")
    check_inside("python", 'x = f"a {{b$0\n', "string")
    check_inside("python", 'x = "a {b$0\n', "string")
    check_inside("javascript", "x = `a ${b.$0\nfoo()\n", None)
    check_inside("javascript", "x = `a ${b} $0\nfoo()\n", "string")
    check_inside("typescript", "x = `a ${b('$0\n", "string")


def test_broken_code_elsewhere_changes_nothing():
    check_inside("python", 'foo(\n\nx = "a$0"\n', "string")
    check_inside("python", 'foo(\n\nx = "a" + $0\n', None)
    check_inside("rust", "fn f<'a>(x: &'a str) { let c = '\"'; foo($0\n", None)
    check_inside("java", 'class A {\n  void f() {\n    String a = "abc\n    int b$0;\n  }\n}\n', None)
    check_inside("go", 'func f() {\n\ta := "b$0\n\tc := 1\n}\n', "string")
    check_inside("c", 'int f(void) {\n  puts("a // b$0\n  return 1;\n}\n', "string")
    check_inside("bash", "if [ $# -gt 1 $0\n", None)


def test_apostrophe_in_text_opens_no_string():
    check_inside("python", "# don't\nx = foo($0\n", None)
    check_inside("javascript", "const a = <p>don't$0</p>;\n", None)
    check_inside("markdown", "don't `a$0` it's\n", None)


# block_expected


def test_body_begins_below_colon():
    check_block("python", "def f():$0", True)
    check_block("python", "def f():\n    $0", True)
    check_block("python", "def f():  # why\n    $0", True)
    check_block("python", "class A:\n    def f(self) -> int:\n        $0\n\n    def g(self):\n        pass\n", True)
    check_block("python", "def f(\n    a,\n):\n    $0\n", True)
    check_block("python", "if a:\n    b()\nelse:\n    $0\n", True)
    check_block("python", "for a in b:\n    $0\nc()\n", True)
    check_block("python", "async with a as b:\n    $0\n", True)


def test_colon_that_opens_no_body_does_not_count():
    check_block("python", 'x = {"a":$0', False)
    check_block("python", "x = {\n    a:\n    $0", False)
    check_block("python", "x = lambda:$0", False)
    check_block("python", "x = a[1:$0", False)
    check_block("python", "# if a:$0", False)
    check_block("python", 'x = "for a:$0', False)
    check_block("python", "x: $0", False)
    check_block("python", "def f()$0:\n    pass\n", False)


def test_begun_body_is_not_empty():
    check_block("python", "def f():\n    $0\n    return 1\n", False)
    check_block("python", "def f():\n    a = 1\n    $0\n", False)
    check_block("python", "def f(): $0pass\n", False)
    check_block("javascript", "function f() {\n  $0\n  return 1;\n}\n", False)
    check_block("javascript", "function f() {\n  a();\n  $0\n}\n", False)


FUNCTION = {
    "javascript": "function f(a) {%s",
    "typescript": "function f(a: string): number {%s",
    "rust": "fn f(a: &str) -> i32 {%s",
    "go": "package a\n\nfunc f(a string) int {%s",
    "c": "int f(char *a) {%s",
    "cpp": "int A::f(const std::string& a) const {%s",
    "java": "class A {\n    int f(String a) {%s\n}\n",
    "csharp": "class A {\n    int f(string a) {%s\n}\n",
    "php": "<?php\nfunction f($a) {%s",
}


@pytest.mark.parametrize("language", FUNCTION)
def test_body_begins_after_brace(language: str):
    check_block(language, FUNCTION[language] % "\n        $0\n    }\n", True)
    check_block(language, FUNCTION[language] % "$0}\n", True)
    check_block(language, FUNCTION[language] % "$0\n", True)
    check_block(language, FUNCTION[language] % "\n        $0\n", True)
    check_block(language, FUNCTION[language] % "\n        x;\n        $0\n    }\n", False)


def test_statements_and_types_have_bodies_too():
    check_block("javascript", "if (a) {\n  $0\n}\n", True)
    check_block("javascript", "const f = (a) => {\n  $0\n};\n", True)
    check_block("javascript", "items.map((a) => {\n  $0\n", True)
    check_block("javascript", "class A {\n  $0\n}\n", True)
    check_block("typescript", "interface A {\n  $0\n}\n", True)
    check_block("rust", "impl A for B {\n    $0\n}\n", True)
    check_block("rust", "struct A {\n    $0\n}\n", True)
    check_block("rust", "fn f() {\n    for a in b {\n        $0\n", True)
    check_block("go", "package a\ntype A struct {\n\t$0\n}\n", True)
    check_block("go", "package a\nfunc f() {\n\tfor i := range x {\n\t\t$0\n", True)
    check_block("c", "struct a {\n  $0\n};\n", True)
    check_block("c", "void f(void) {\n  while (a) {\n    $0\n", True)
    check_block("java", "class A {\n  $0\n}\n", True)
    check_block("java", "class A {\n  void f() {\n    try {\n      $0\n", True)


def test_brace_of_literal_opens_no_body():
    check_block("python", "x = {$0", False)
    check_block("python", "x = {$0}\n", False)
    check_block("javascript", "const a = {\n  $0\n};\n", False)
    check_block("javascript", "foo({$0", False)
    check_block("javascript", "import {$0} from 'a';\n", False)
    check_block("typescript", "const a: A = {$0\n", False)
    check_block("rust", "fn f() { let a = A {\n    $0\n}; }\n", False)
    check_block("rust", "fn f() {\n    let a = A {$0\n", False)
    check_block("go", "package a\nvar b = []int{\n\t$0\n}\n", False)
    check_block("c", "int a[] = {$0};\n", False)
    check_block("java", "class A { int[] a = {$0}; }\n", False)


def test_words_open_bodies_in_ruby_lua_and_bash():
    check_block("ruby", "def f(a)\n  $0\nend\n", True)
    check_block("ruby", "items.each do |a|\n  $0\n", True)
    check_block("ruby", "def f(a)$0\n", False)
    check_block("ruby", "a = 1\n$0\n", False)
    check_block("lua", "function f(a)\n  $0\nend\n", True)
    check_block("lua", "if a then\n  $0\n", True)
    check_block("bash", "if a; then\n  $0\nfi\n", True)
    check_block("bash", "for a in b; do\n  $0\n", True)
    check_block("bash", "f() {\n  $0\n}\n", True)


# headers


def test_headers_are_the_signatures_around_the_cursor():
    check_headers(
        "python",
        "class A(B):\n    @x\n    def f(\n        self,\n    ):\n        if a:\n            $0b()\n",
        "class A(B):",
        "    def f(\n        self,\n    ):",
    )
    check_headers("javascript", "class A {\n  f(x) {\n    return $0x;\n  }\n}\n", "class A {", "  f(x) {")
    check_headers(
        "typescript",
        "namespace N {\n  export class A {\n    f(): void {\n      $0\n    }\n  }\n}\n",
        "namespace N {",
        "  export class A {",
        "    f(): void {",
    )
    check_headers(
        "rust",
        "impl<T> A for B<T>\nwhere\n    T: C,\n{\n    fn f(&self) {\n        $0\n    }\n}\n",
        "impl<T> A for B<T>\nwhere\n    T: C,",
        "    fn f(&self) {",
    )
    check_headers("go", "package a\n\nfunc (s *S) F() {\n\t$0\n}\n", "func (s *S) F() {")
    check_headers("c", "static int\nf(int a)\n{\n  $0\n}\n", "static int\nf(int a)")
    check_headers("java", "class A {\n  int f() {\n    $0\n  }\n}\n", "class A {", "  int f() {")
    check_headers("ruby", "module A\n  def f\n    $0\n  end\nend\n", "module A", "  def f")


def test_scope_does_not_hold_its_own_header():
    check_headers("python", "class A:\n    def f$0(self):\n        pass\n", "class A:")
    check_headers("rust", "impl A {\n    fn f$0() {}\n}\n", "impl A {")


def test_code_before_and_after_a_scope_is_not_in_it():
    check_headers("python", "def f():\n    pass\n\n$0\n")
    check_headers("python", "$0\ndef f():\n    pass\n")
    check_headers("go", "package a\nfunc f() {\n}\n$0\n")


def test_fresh_line_belongs_to_the_scope_it_is_indented_into():
    check_headers("python", "class A:\n    def f(self):\n        a()\n        $0\n", "class A:", "    def f(self):")
    check_headers("python", "class A:\n    def f(self):\n        a()\n\n    $0\n", "class A:")
    check_headers("python", "def f():\n    $0\n", "def f():")


def test_headers_are_found_in_broken_code():
    check_headers(
        "python",
        "class A:\n    def f(self):\n        x = foo($0\n\n    def g(self):\n        pass\n",
        "class A:",
        "    def f(self):",
    )
    check_headers(
        "python",
        "class A:\n    def f(\n        self,\n    ):\n        x = {'a': [$0\n\n    def g(self):\n        pass\n",
        "class A:",
        "    def f(\n        self,\n    ):",
    )
    check_headers(
        "rust",
        "impl A {\n    fn f(&self) {\n        if x {\n            y();\n        }\n        let a = foo($0\n    }\n}\n",
        "impl A {",
        "    fn f(&self) {",
    )
    check_headers(
        "java",
        'public class A {\n  int f(String s) {\n    g("a$0\n  }\n}\n',
        "public class A {",
        "  int f(String s) {",
    )
    check_headers("c", "int f(int a) {\n  if (a) {\n    g(($0\n  }\n}\n", "int f(int a) {")
    check_headers("go", "package a\n\nfunc f() {\n\tx := []int{1, $0\n}\n", "func f() {")
    check_headers(
        "typescript",
        "export class A {\n  async f(x: string) {\n    const y = x.map((z$0\n  }\n}\n",
        "export class A {",
        "  async f(x: string) {",
    )


# definitions


def test_definitions_tell_names_and_signatures():
    check_definitions(
        "python",
        "LIMIT = 3\nlower = 1\n\nclass A(B):\n    def f(self, x) -> int:\n        LOCAL = 1\n\nasync def g(): pass\n",
        "LIMIT | LIMIT = 3",
        "A | class A(B):",
        "f | def f(self, x) -> int:",
        "g | async def g():",
    )
    check_definitions(
        "javascript",
        "const A = 1;\nexport class B { f(x) { let y = 1; } }\nfunction g() {}\nconst h = (x) => { x };\n",
        "A | A = 1",
        "B | class B",
        "f | f(x)",
        "g | function g()",
        "h | h = (x) =>",
    )
    check_definitions(
        "typescript",
        "interface A {\n  x: string;\n}\ntype B = A;\nenum C { D }\nabstract class E {\n  f(x: number): void {}\n}\n",
        "A | interface A",
        "B | type B = A;",
        "C | enum C",
        "E | abstract class E",
        "f | f(x: number): void",
    )
    check_definitions(
        "rust",
        "const A: i32 = 1;\npub struct B {\n    x: i32,\n}\nimpl B {\n"
        "    pub fn f(&self) -> i32 { 1 }\n}\ntrait C {}\nfn g() {}\n",
        "A | const A: i32 = 1;",
        "B | pub struct B",
        "f | pub fn f(&self) -> i32",
        "C | trait C",
        "g | fn g()",
    )
    check_definitions(
        "go",
        "package a\n\nconst B = 1\n\ntype C struct {\n\tX int\n}\n\nfunc (c C) F(x int) string {\n}\nfunc g() {}\n",
        "B | B = 1",
        "C | C struct {",
        "F | func (c C) F(x int) string",
        "g | func g()",
    )
    check_definitions(
        "c",
        "#define A 1\nstruct b {\n  int x;\n};\nstatic char *f(struct b *c) {\n  return 0;\n}\nenum d { E };\n",
        "A | #define A 1",
        "b | struct b",
        "f | static char *f(struct b *c)",
        "d | enum d",
    )
    check_definitions(
        "java",
        "class A {\n  static final int B = 1;\n  int c;\n  A() {}\n"
        "  int f(String s) { return 1; }\n}\ninterface D {}\n",
        "A | class A",
        "B | static final int B = 1;",
        "A | A()",
        "f | int f(String s)",
        "D | interface D",
    )


def test_definitions_go_three_deep():
    check_definitions(
        "python",
        "class A:\n    class B:\n        class C:\n            class D: pass\n",
        "A | class A:",
        "B | class B:",
        "C | class C:",
    )


def test_definitions_survive_broken_code():
    check_definitions(
        "python",
        "def f(a):\n    return g(\n\nclass A:\n    def h(self):\n        pass\n",
        "f | def f(a):",
        "A | class A:",
        "h | def h(self):",
    )
    check_definitions(
        "rust",
        "impl A {\n    fn f(&self) {\n        let a = foo(\n    }\n}\n\nfn g() {}\n",
        "f | fn f(&self) {",
        "g | fn g() {}",
    )
    check_definitions(
        "java",
        'class A {\n  void f() {\n    String a = "abc\n  }\n}\n',
        "A | class A {",
        "f | void f() {",
    )
    check_definitions("go", "package a\n\nfunc f(x int) {\n\ty := g(\n}\n", "f | func f(x int)")


# imports, problems, identifiers


def test_imports_are_those_of_the_file():
    check_imports(
        "python",
        "'''doc'''\nfrom __future__ import a\nimport b\nfrom c import (\n    d,\n)\n\ndef f():\n    import e\n",
        "from __future__ import a",
        "import b",
        "from c import (\n    d,\n)",
    )
    check_imports(
        "javascript",
        "import a from 'a';\nconst b = require('b');\nconst c = 1;\n",
        "import a from 'a';",
        "const b = require('b');",
    )
    check_imports("typescript", "import type { A } from './a';\n", "import type { A } from './a';")
    check_imports("rust", "use a::b;\nextern crate c;\nfn f() {}\n", "use a::b;", "extern crate c;")
    check_imports("go", 'package a\nimport (\n\t"b"\n)\n', 'import (\n\t"b"\n)')
    check_imports("c", "#ifndef A\n#define A\n#include <b.h>\n#endif\n", "#include <b.h>")
    check_imports("java", "package a;\nimport b.C;\nclass D {}\n", "package a;", "import b.C;")
    check_imports("ruby", "require 'a'\nputs 1\n", "require 'a'")
    check_imports("lua", 'local a = require("b")\nlocal c = 1\n', 'local a = require("b")')
    check_imports("bash", "source a.sh\necho 1\n", "source a.sh")


def test_imports_survive_broken_code():
    check_imports("python", "import a\nfrom b import c\n\nx = foo(\n", "import a", "from b import c")
    check_imports("java", "import b.C;\nclass D {\n  void f() { g(\n", "import b.C;")


def test_problems_are_errors_and_missing_pieces():
    def count(text: str, language: str = "python") -> int:
        return syntax.problems(drawn(text + "$0", language)[0].tree)

    assert count("x = 1\n") == 0
    assert count("x = = 1\n") == 1
    assert count("function f() {\n", "javascript") == 1
    assert count("x = = 1\ny = = 2\n") == 2
    assert syntax.problems(None) == 0


def test_problems_after_an_edit_leave_the_snapshot_alone():
    snapshot, offset = drawn("x = foo($0\ny = 1\n", "python")
    before = syntax.problems(snapshot.tree)
    assert before > 0
    assert syntax.problems_after(snapshot, offset, offset, "1)") == 0
    assert syntax.problems_after(snapshot, 0, len(snapshot.text), "def f(:\n") > 0
    assert syntax.problems(snapshot.tree) == before


def test_deep_nesting_is_counted_without_recursion():
    snapshot, _ = drawn("x = " + "[" * 3000 + "$0", "python")
    assert syntax.problems(snapshot.tree) > 0


def test_identifiers_come_in_order_without_the_commonest_keywords():
    assert syntax.identifiers("def foo(self, x1): return x1 + größe") == ["foo", "x1", "x1", "größe"]
    assert syntax.identifiers("1e5 'a b'") == ["a", "b"]


def test_without_a_tree_every_answer_is_neutral():
    snapshot, offset = drawn("# def f():$0", "plaintext")
    assert syntax.inside(snapshot, offset) is None
    assert syntax.block_expected(snapshot, offset) is False
    assert syntax.problems_after(snapshot, 0, 0, "(") == 0
    assert syntax.headers(snapshot, offset) == syntax.imports(snapshot) == syntax.definitions(snapshot) == []


PIECES = [
    "\n",
    "\r\n",
    " ",
    "    ",
    '"',
    "'",
    "`",
    "{",
    "}",
    "(",
    ")",
    ":",
    "#",
    "//",
    "/*",
    "*/",
    "${",
    "#{",
]
PIECES += ["def f", "class A", "fn f", "function", "=", "é", "😀", "\\", "import a", "end", "do", "x"]


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.id)
@given(text=st.lists(st.sampled_from(PIECES), max_size=20).map("".join), data=st.data())
@settings(max_examples=40)
def test_any_text_gets_answers_that_lie_in_it(language, text: str, data):
    snapshot = Document("file:///a", "a", language.id, 1, text).snapshot()
    offset = data.draw(st.integers(0, len(text)))
    syntax.inside(snapshot, offset)
    syntax.block_expected(snapshot, offset)
    ranges = syntax.headers(snapshot, offset) + syntax.imports(snapshot)
    ranges += [(each.start, each.end) for each in syntax.definitions(snapshot)]
    assert all(0 <= start <= end <= len(text) for start, end in ranges)
    assert all(end < offset for _, end in syntax.headers(snapshot, offset))


def test_without_the_time_for_a_tree_the_characters_answer():
    text = "def f():\n    x = 'some text'\n    # note\n    if x:\n"
    document = Document("file:///a.py", "/a.py", "python", 1, text + "v = f(1)\n" * 5000, patience=-1.0)
    assert document.snapshot().tree is not None
    document.apply([((4, 0, 4, 0), "        \ny = (\n")], 2, "utf-16")
    snapshot, cursor = document.snapshot(), len(text) + 8
    assert snapshot.tree is None
    assert syntax.inside(snapshot, text.index("text")) == "string"
    assert syntax.inside(snapshot, text.index("note")) == "comment"
    assert syntax.inside(snapshot, text.index("x =")) is None
    assert syntax.block_expected(snapshot, cursor)
    assert [snapshot.text[a:b] for a, b in syntax.headers(snapshot, cursor)] == ["def f():"]
    assert syntax.definitions(snapshot) == []
    assert syntax.imports(snapshot) == []
    assert syntax.problems_after(snapshot, 0, 0, "(") == 0


LEXEMES = ['"', "'", "`", '"""', "/*", "*/", "//", "#", "\n", "\r\n", "\\", "{", "}", "${", 'f"', "'a'", "x = 1 ", " "]


@given(st.sampled_from(LANGUAGES), st.lists(st.sampled_from(LEXEMES), max_size=80), st.data())
def test_code_that_does_not_parse_is_walked_once_with_the_same_answers(language, pieces, data):
    document = Document("", "a", language.id, 1, "".join(pieces))
    for version in range(2, 5):
        snapshot = document.snapshot()
        for offset in data.draw(st.lists(st.integers(0, len(snapshot.text)), max_size=6)):
            start = syntax.closed_before(snapshot, language, offset)
            found = syntax.open_at(snapshot.text, language, start, offset)
            assert found == syntax.open_at_end(snapshot.text[:offset], language)
        place = snapshot.position(data.draw(st.integers(0, len(snapshot.text))), "utf-32")
        document.apply([((*place, *place), data.draw(st.sampled_from(LEXEMES)))], version, "utf-32")


def test_line_that_does_not_parse_is_not_sought_from_top_each_time():
    text = "broken = (\n" + 'a = "b"  # c\n' * 2000 + 'd = "e'
    snapshot = Document("file:///a.py", "a.py", "python", 1, text).snapshot()
    assert syntax.inside(snapshot, len(text)) == "string"
    assert len(snapshot.closed) > 50
    known = [*snapshot.closed]
    assert syntax.inside(snapshot, len(text) - 4) is None
    assert snapshot.closed == known


def test_very_deep_nesting_is_judged_by_characters():
    text = "".join(f"function f{n}() {{\n" for n in range(3000)) + "// $0here\n" + "}\n" * 3000
    check_inside("javascript", text, "comment")
    check_inside("javascript", text.replace("// $0here", '"$0here"'), "string")
    check_headers("javascript", text)
