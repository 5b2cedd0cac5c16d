from mercury_ls.code.symbols import refers_to, symbol_at
from tests.marked import marked


def check(drawn: str, language: str, *expected: bool) -> None:
    """`$0` stands before the new name `b`; `expected` says of each `a` whether it stood for the same."""
    snapshot, offset = marked(drawn, language)
    places = [at for at in range(len(snapshot.text)) if snapshot.text.startswith("a", at) and alone(snapshot.text, at)]
    symbol = symbol_at("a", "b", snapshot, offset, snapshot, places)
    assert tuple(refers_to(symbol, snapshot, at) for at in places) == expected


def alone(text: str, at: int) -> bool:
    return not (text[at - 1 : at].isalnum() or text[at + 1 : at + 2].isalnum())


def test_local_stays_in_its_block():
    check("void f() {\n  { int $0b; a(); }\n  { int a; a(); }\n}\n", "cpp", True, False, False)


def test_redeclared_name_is_another():
    check("func f() {\n\t$0b := 1\n\tif x {\n\t\ta := 2\n\t\tg(a)\n\t}\n\tg(a)\n}\n", "go", False, False, True)


def test_parameter_is_known_by_name_to_callers():
    check("def f($0b):\n    return a\n\n\nf(a=1)\ng(a=1)\n", "python", True, True, False)


def test_constructor_parameter_is_known_by_class():
    check("class C:\n    def __init__(self, $0b):\n        self.a = a\n\n\nC(a=1)\n", "python", False, True, True)


def test_members_are_not_those_of_another_type():
    check("enum A { $0b }\nenum B { a }\nf(A.a, B.a, c.a);\n", "typescript", False, True, False, True)


def test_derived_type_has_the_members_of_its_base():
    check("class C {\n  $0b() {}\n}\nclass D extends C {\n  a() { this.a(); }\n}\n", "typescript", True, True)


def test_go_type_implements_interface_without_saying_so():
    drawn = "package p\n\ntype I interface {\n\t$0b()\n}\n\nfunc (t T) a() {}\n"
    check(drawn, "go", True)


def test_members_are_bare_where_the_language_has_it():
    check(
        "class C {\n  int $0b;\n  int f() { return a; }\n  int g(int a) { return a; }\n};\n", "cpp", True, False, False
    )
    check("class C:\n    def $0b(self):\n        return a(self.a)\n", "python", False, True)


def test_key_names_a_field_of_its_type():
    check("package p\n\ntype T struct {\n\t$0b int\n}\n\nvar x = T{a: 1}\n", "go", True)


def test_function_is_not_a_method():
    check("package p\n\nfunc $0b() {}\n\nfunc f() {\n\tx.a()\n\ta()\n}\n", "go", False, True)


def test_functions_of_other_types_are_others():
    check("class C { void f() { A.$0b(); B.a(); A.a(); c.a(); } }\n", "java", False, True, True)
