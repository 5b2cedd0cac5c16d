"""A rename to a name that something else of the same scope has is not offered; where both may have it, it is."""

from msgspec.structs import replace

from mercury_ls.code.edits import difference
from mercury_ls.code.history import History
<<<<<<< HEAD
from tests.mercury_ls.next_edit.test_pipeline import last_of, question_of
=======
from tests.mercury_ls.next_edit.next_edit_scenarios import Scenario
from tests.mercury_ls.next_edit.test_pipeline import check, last_of, question_of

TAKEN = {
    "a function of Python": """
def save(rows): ...
def ⟦load→save⟧$0(rows): ...
load(1)
""",
    "a function of Python that comes first": """
def ⟦load→save⟧$0(rows): ...
def save(rows): ...
load(1)
""",
    "a class of Python": """
class Cart: ...
class ⟦Basket→Cart⟧$0: ...
Basket(Cart())
""",
    "a constant of Python by what is imported": """
from limits import MOST
⟦LIMIT→MOST⟧$0 = 3
print(LIMIT)
""",
    "a method of Python": """
class Rows:
    def save(self): ...
    def ⟦load→save⟧$0(self): return self.load() or self.save()
""",
    "an attribute of Python": """
class Box:
    def __init__(self, width, height):
        self.⟦width→height⟧$0 = width
        self.height = height
    def area(self): return self.width * self.height
""",
    "an attribute of Python by a method": """
class Box:
    def __init__(self, width):
        self.⟦width→height⟧$0 = width
    def height(self): return 1
    def area(self): return self.width
""",
    "a field of a data class": """
@dataclass
class Box:
    ⟦width→height⟧$0: int
    height: int
    def area(self): return self.width * self.height
""",
    "a field of a data class that an attribute is called": """
class Box:
    ⟦width→height⟧$0: int = 1
    def __init__(self, height): self.height = height
    def area(self): return self.width * self.height
""",
    "a member of an enumeration of Python": """
class Color(Enum):
    RED = 1
    ⟦BLUE→RED⟧$0 = 2
print(Color.BLUE)
""",
    "a function of TypeScript": """
function save(x: A) {}
function ⟦load→save⟧$0(x: A) {}
load(1);
""",
    "a constant of TypeScript by an import": """
import { most } from "./limits";
const ⟦limit→most⟧$0 = 3;
print(limit, most);
""",
    "an interface of TypeScript": """
interface Cart { a: string }
interface ⟦Basket→Cart⟧$0 { b: string }
function f(x: Basket) {}
""",
    "a field of an interface of TypeScript": """
interface User { ⟦name→title⟧$0: string; title: string }
function f(u: User) { return u.name + u.title; }
""",
    "a field of a class of TypeScript": """
class Box {
  ⟦width→height⟧$0 = 1;
  height = 2;
  area() { return this.width * this.height; }
}
""",
    "a method of TypeScript by a field": """
class Box {
  height = 2;
  ⟦width→height⟧$0() { return 1; }
  area() { return this.width(); }
}
""",
    "an attribute of JavaScript": """
class Box {
  constructor(w, h) { this.⟦width→height⟧$0 = w; this.height = h; }
  area() { return this.width * this.height; }
}
""",
    "a function of Go": """
package a
func save() {}
func ⟦load→save⟧$0() {}
func f() { load() }
""",
    "a field of Go": """
package a
type Box struct {
	⟦width→height⟧$0 int
	height int
}
func (b Box) area() int { return b.width * b.height }
""",
    "a field of Go by a method": """
package a
type Box struct {
	⟦width→height⟧$0 int
}
func (b Box) height() int { return 1 }
func (b Box) area() int { return b.width }
""",
    "a method of Go": """
package a
type Box struct{}
func (b Box) save() {}
func (b Box) ⟦load→save⟧$0() {}
func (b Box) f() { b.load() }
""",
    "a function of Rust": """
fn save() {}
fn ⟦load→save⟧$0() {}
fn f() { load() }
""",
    "a field of Rust": """
struct Box { ⟦width→height⟧$0: u8, height: u8 }
impl Box { fn area(&self) -> u8 { self.width * self.height } }
""",
    "a method of Rust": """
struct A;
impl A {
    fn save(&self) {}
    fn ⟦load→save⟧$0(&self) { self.load() }
}
""",
    "a method of Rust in another block": """
struct A;
impl A { fn save(&self) {} }
impl A { fn ⟦load→save⟧$0(&self) { self.load() } }
""",
    "a variant of Rust": """
enum State { Open, ⟦Done→Open⟧$0 }
fn f() -> State { State::Done }
""",
    "a field of Java": """
class Box {
    int ⟦width→height⟧$0;
    int height;
    int area() { return this.width * this.height; }
}
""",
    "a method of Java with the same parameters": """
class Box {
    void save(int a) {}
    void ⟦load→save⟧$0(int b) {}
    void f() { this.load(1); }
}
""",
    "a function of C": """
void save(void) {}
void ⟦load→save⟧$0(void) {}
void f(void) { load(); }
""",
    "a field of C": """
struct box { int ⟦width→height⟧$0; int height; };
int f(struct box *b) { return b->width; }
""",
    "a member of C++": """
class Box {
  int ⟦width→height⟧$0;
  int height;
  int area() { return width * height; }
};
""",
    "a function of C++ with the same parameters": """
void save(int a) {}
void ⟦load→save⟧$0(int b) {}
void f() { load(1); }
""",
}

FREE = {
    "another class of Python has a method": """
class Rows:
    def ⟦load→save⟧$0(self): return self.«load→save»()
class Other:
    def save(self): ...
""",
    "a method of Python and a function": """
def save(): ...
class Rows:
    def ⟦load→save⟧$0(self): return self.«load→save»()
""",
    "another class of Python has an attribute": """
class Box:
    def __init__(self, width): self.⟦width→height⟧$0 = width
    def area(self): return self.«width→height»
class Other:
    def __init__(self, height): self.height = height
""",
    "the other branch of Python defines it": """
if fast:
    def ⟦load→save⟧$0(): ...
else:
    def save(): ...
«load→save»()
""",
    "overloads of Python": """
@overload
def ⟦load→save⟧(x: int) -> int: ...
@overload
def ⟦load→save⟧(x: str) -> str: ...
def ⟦load→save⟧$0(x): return x
«load→save»(1)
""",
    "a property of Python and its setter": """
class Box:
    @property
    def ⟦width→height⟧$0(self): return 1
    @«width.setter
    def width→height.setter
    def height»(self, value): self._x = value
    def f(self): return self.«width→height»
""",
    "a type and a value of TypeScript": """
const Cart = make();
interface ⟦Basket→Cart⟧$0 { b: string }
function f(x: «Basket→Cart») {}
""",
    "a field of a nested type of TypeScript": """
interface User { ⟦name→title⟧$0: string; pet: { title: string } }
function f(u: User) { return u.«name→title»; }
""",
    "another interface of TypeScript": """
interface User { ⟦name→title⟧$0: string }
interface Book { title: string }
function f(u: User) { return u.«name→title»; }
""",
    "overloads of TypeScript": """
function ⟦load→save⟧(x: number): void;
function ⟦load→save⟧(x: string): void;
function ⟦load→save⟧$0(x: any) {}
«load→save»(1);
""",
    "a field and a method of Rust": """
struct Box { ⟦width→height⟧$0: u8 }
impl Box {
    fn height(&self) -> u8 { self.«width→height» }
}
""",
    "a method of a trait of Rust": """
struct A;
impl Save for A { fn save(&self) {} }
impl A { fn ⟦load→save⟧$0(&self) { self.«load→save»() } }
""",
    "a type and a function of Rust": """
fn Cart() {}
struct ⟦Basket→Cart⟧$0;
fn f(x: «Basket→Cart») {}
""",
    "another module of Rust": """
mod other { pub fn save() {} }
fn ⟦load→save⟧$0() {}
fn f() { «load→save»() }
""",
    "an overload of Java": """
class Box {
    void save(String a) {}
    void ⟦load→save⟧$0(int b) {}
    void f() { this.«load→save»(1); }
}
""",
    "a field and a method of Java": """
class Box {
    int height() { return 1; }
    int ⟦width→height⟧$0;
    int area() { return this.«width→height»; }
}
""",
    "an overload of C++": """
void save(const char* a) {}
void ⟦load→save⟧$0(int b) {}
void f() { «load→save»(1); }
""",
    "a tag and a type of C": """
struct ⟦list→node⟧$0 { int size; };
typedef int node;
int f(struct «list→node» *x) { return 1; }
""",
    "another struct of Go": """
package a
type Box struct {
	⟦width→height⟧$0 int
}
type Other struct {
	height int
}
func (b Box) area() int { return b.«width→height» }
""",
}
LANGUAGES = {"C++": "cpp", "JavaScript": "javascript", "TypeScript": "typescript"} | {
    name: name.lower() for name in ("C", "Go", "Java", "Python", "Rust")
}


def language_of(name: str) -> str:
    words = name.split()
    return next((LANGUAGES[word] for word in words if word in LANGUAGES), "python")


@pytest.mark.parametrize("name", TAKEN)
async def test_taken_name_is_refused(name: str) -> None:
    await check(Scenario(name, language_of(name), TAKEN[name], reason="the name "))


@pytest.mark.parametrize("name", FREE)
async def test_name_that_both_may_have_is_given(name: str) -> None:
    await check(Scenario(name, language_of(name), FREE[name]))
>>>>>>> 2999956 (Name the tests of the language server after what they test)


async def test_accepted_rename_has_not_taken_the_name() -> None:
    before = "void load(int a);\nvoid load(int a) {}\nvoid f() { load(1); }\n"
    own = before.replace("load", "save", 1)
    after = own.replace("load", "save", 1)
    question = question_of((own, after + "$0"), "cpp")
    history = History()
    history.record(question.snapshot.path, before, difference(before, own), 0.0)
    history.record(question.snapshot.path, own, difference(own, after), 60.0, is_own=False)
    answer = await last_of(replace(question, history=history))
    assert [after[edit.start : edit.end] for edit in answer.edits] == ["load"], answer.silence
