import re

from mercury_ls.code.documents import Document
from mercury_ls.code.scopes import binding_ranges, declares, is_member, local_at, mentions, node_at, whole
from tests.marked import marked


def check(drawn: str, expected: str, language: str = "python") -> None:
    """`$0` stands before a name; `expected` is the first line of the function that has it as a local, or nothing."""
    snapshot, offset = marked(drawn, language)
    name = node_at(snapshot, offset).text.decode()
    found = local_at(snapshot, offset, (name,))
    assert (found.scope.text.decode().partition("\n")[0].strip() if found else "") == expected


def check_declares(drawn: str, expected: bool, language: str = "python") -> None:
    snapshot, offset = marked(drawn, language)
    assert declares(node_at(snapshot, offset)) == expected


def test_parameters_and_locals_belong_to_their_function():
    check("def f($0a):\n    return a\n", "def f(a):")
    check("def f(a: int = 1):\n    return $0a\n", "def f(a: int = 1):")
    check("def f(*args):\n    return $0args\n", "def f(*args):")
    check("def f():\n    for a, b in rows:\n        $0b()\n", "def f():")
    check("def f():\n    with open(p) as file:\n        $0file.read()\n", "def f():")
    check("const f = (a) => {\n  return $0a;\n};\n", "(a) => {", "javascript")
    check("function f(a: number) {\n  return $0a;\n}\n", "function f(a: number) {", "typescript")
    check("func f(a int) int {\n\treturn $0a\n}\n", "func f(a int) int {", "go")
    check("func f() int {\n\ta := 1\n\treturn $0a\n}\n", "func f() int {", "go")
    check("fn f(a: u8) -> u8 {\n    $0a\n}\n", "fn f(a: u8) -> u8 {", "rust")
    check("fn f() -> u8 {\n    let a = 1;\n    $0a\n}\n", "fn f() -> u8 {", "rust")
    check("int f(int *a) {\n    return *$0a;\n}\n", "int f(int *a) {", "c")
    check("class A {\n    int f(int a) {\n        return $0a;\n    }\n}\n", "int f(int a) {", "java")


def test_innermost_function_counts():
    check("def f(a):\n    def g(a):\n        return $0a\n", "def g(a):")


def test_local_belongs_to_its_block_where_blocks_have_locals():
    check("void f() {\n  for (int i = 0; $0i < 3; ++i) {}\n}\n", "for (int i = 0; i < 3; ++i) {}", "cpp")
    check("void f() {\n  for (auto& a : b) $0a();\n}\n", "for (auto& a : b) a();", "cpp")
    check("void f() {\n  for (auto& $0a : b) a();\n}\n", "for (auto& a : b) a();", "cpp")
    check("func f() {\n\tif a := g(); $0a {\n\t}\n}\n", "if a := g(); a {", "go")
    check("fn f() {\n    if let Some(a) = b {\n        $0a();\n    }\n}\n", "if let Some(a) = b {", "rust")
    check("fn f() {\n    match b {\n        A(a) => $0a,\n    }\n}\n", "A(a) => a,", "rust")
    check("try {\n} catch (e) {\n  g($0e);\n}\n", "catch (e) {", "javascript")
    check("for (const a of b) {\n  g($0a);\n}\n", "for (const a of b) {", "typescript")
    check("function f() {\n  if (b) {\n    var a = 1;\n    g($0a);\n  }\n}\n", "function f() {", "javascript")
    check("def f():\n    if b:\n        a = 1\n        g($0a)\n", "def f():")


def test_comprehension_keeps_its_names():
    check("def f():\n    return [$0a for a in b]\n", "[a for a in b]")


def test_defaults_and_iterables_evaluated_outside_are_not_of_the_function():
    check("def f(a=$0a):\n    return a\n", "")
    check("def f(a):\n    return lambda a=$0a: a\n", "def f(a):")
    check("def f(a):\n    return [a for a in $0a]\n", "def f(a):")
    check("def f(a):\n    return [a for b in c for a in $0a]\n", "[a for b in c for a in a]")


def test_exception_is_known_in_its_clause():
    check("def f(a):\n    try:\n        pass\n    except B as a:\n        g($0a)\n", "except B as a:")
    check("def f(a):\n    try:\n        $0a()\n    except B as a:\n        pass\n", "def f(a):")


def test_global_or_nonlocal_name_is_not_of_its_function():
    check("def f():\n    global a\n    $0a = 1\n", "")
    check("def f(a):\n    def g():\n        nonlocal a\n        $0a = 1\n", "def f(a):")


def test_local_is_known_behind_its_declaration_where_language_says_so():
    check("func f(a int) {\n\tif b {\n\t\ta := $0a\n\t}\n}\n", "func f(a int) {", "go")
    check("fn f(a: u8) {\n    let c = { let a = $0a; a };\n}\n", "fn f(a: u8) {", "rust")
    check("fn f(a: B) {\n    if let Some(a) = $0a { a }\n}\n", "fn f(a: B) {", "rust")
    check("fn f(a: B) {\n    if let Some(a) = b { a } else { $0a }\n}\n", "fn f(a: B) {", "rust")
    check("void f(int a) {\n  { int a = $0a; }\n}\n", "{ int a = a; }", "c")


def test_type_parameters_belong_to_what_they_are_declared_for():
    check("class A<T> {\n    $0T a;\n}\n", "class A<T> {", "java")
    check("function f<T>(a: $0T) {}\n", "function f<T>(a: T) {}", "typescript")
    check("template <typename T>\n$0T f(T a);\n", "template <typename T>", "cpp")


def test_field_of_class_within_function_is_no_local():
    check("def f():\n    class A:\n        $0a = 1\n", "")


def test_undeclared_name_is_no_local():
    check("def f():\n    return $0a\n", "")
    check("a = 1\nprint($0a)\n", "")
    check("def $0f():\n    f = 1\n", "")


def test_members_are_no_locals():
    check("def f(a):\n    return self.$0a\n", "")
    check("def f(a):\n    return g($0a=1)\n", "")
    snapshot, offset = marked("function f(a) {\n  return b.$0a;\n}\n", "javascript")
    assert is_member(node_at(snapshot, offset))


def test_declarations():
    check_declares("def $0f():\n    pass\n", True)
    check_declares("from a import $0b\n", True)
    check_declares("f($0a)\n", False)
    check_declares("class A {\n    private int $0n;\n}\n", True, "java")
    check_declares("class A {\n  $0get() {}\n}\n", True, "typescript")
    check_declares('import { $0b } from "./a";\n', True, "typescript")
    check_declares("package a\n\ntype A struct {\n\t$0n int\n}\n", True, "go")
    check_declares("enum A { $0B }\n", True, "typescript")
    check_declares("enum A { $0B(u8) }\n", True, "rust")
    check_declares("enum A { $0B };\n", True, "cpp")
    check_declares("int $0f(void);\n", True, "c")


def test_functions_with_a_local_of_the_name_are_all_found():
    snapshot, _ = marked("def f(a):\n    pass\n\n\ndef g():\n    a = 1\n\n\ndef h():\n    a()\n$0")
    firsts = [snapshot.text[slice(*found)].partition("\n")[0] for found in binding_ranges(snapshot, "a")]
    assert firsts == ["def f(a):", "def g():"]


def test_text_without_grammar_has_no_scopes():
    snapshot = Document("file:///notes.txt", "notes.txt", "plaintext", 1, "a b\n").snapshot()
    assert node_at(snapshot, 2) is None
    assert local_at(snapshot, 2, ("b",)) is None
    assert binding_ranges(snapshot, "b") == []


def check_mentions(text: str, name: str, expected: list[int]) -> None:
    snapshot = Document("file:///a.py", "a.py", "python", 1, text).snapshot()
    assert [*mentions(snapshot, name)] == expected
    assert [match.start() for match in re.finditer(whole(name), text)] == expected


def test_name_is_found_where_it_stands_as_a_whole():
    check_mentions("load(load_all, preload, load)", "load", [0, 24])
    check_mentions("a.load aload load", "load", [2, 13])
    check_mentions("$load load$ load$x `load$`", "load", [20])
    check_mentions("loadload load", "load", [9])
    check_mentions("x xx x", "x", [0, 5])
    check_mentions("größe größer", "größe", [0])
    check_mentions("", "load", [])
