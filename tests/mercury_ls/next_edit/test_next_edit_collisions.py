"""Names that are spelled alike and are not the same: what must be left alone when one of them changes."""

import pytest

from mercury_ls.code.documents import Document
from mercury_ls.code.modules import Project
from mercury_ls.next_edit.kinds import trim
from tests.marked import marked
from tests.mercury_ls.next_edit.next_edit_scenarios import Scenario
from tests.mercury_ls.next_edit.test_pipeline import check, last_of, question_of

ARGUMENTS = (
    Scenario(
        "the receiver is no argument of a call",
        "python",
        """\
class Store:
    def save(self⟦, path→⟧$0, mode):
        write(mode)

    def all(self):
        self.save(«"a", →»"w")


Store().save(«"b", →»"r")
""",
    ),
    Scenario(
        "the last parameter of a method",
        "python",
        """\
class Store:
    def save(self, path, mode⟦, owner→⟧$0):
        write(path, mode)

    def all(self):
        self.save("a", "w"«, me→»)
""",
    ),
    Scenario(
        "a receiver that is borrowed",
        "rust",
        """\
impl Store {
    fn save(&mut self⟦, path: &str→⟧$0, mode: u8) -> bool {
        self.write(mode)
    }
}

fn run(store: &mut Store) {
    store.save(«"a", →»1);
    store.save(«"b", →»2);
}
""",
    ),
    Scenario(
        "silence where a function becomes a method",
        "python",
        """\
class Store:
    def save(⟦→self, ⟧$0path):
        write(path)


def run(self, store):
    store.save("a")
    store.save("b")
""",
    ),
    Scenario(
        "a new parameter goes before the others of a method",
        "python",
        """\
class Store:
    def save(self⟦→, mode⟧$0, path):
        write(path, mode)


def run(store, mode):
    store.save(«→mode, »"a")
    store.save(«→mode, »"b")
""",
    ),
    Scenario(
        "a function of a module of that name is another",
        "python",
        """\
def load(path⟦, mode→⟧$0):
    return open(path)


rows = load("a"«, "r"→»)
data = json.load(file, cls)
""",
    ),
    Scenario(
        "an argument goes by its name, and nothing goes from what is not written out",
        "python",
        """\
def load(path⟦, mode→⟧$0, size):
    return open(path, size)


load("a", size=3«, mode="r"→»)
load("b"«, "r"→», 4)
load(*given)
load("c", *given)
load("d", size=4)
""",
    ),
    Scenario(
        "a method of something else, and arguments that are spread",
        "javascript",
        """\
function load(path⟦, mode→⟧$0) {
  return open(path);
}
load("a"«, "r"→»);
$.load("b", "s");
load("c", ...rest);
""",
    ),
    Scenario(
        "nothing is put behind arguments that are spread",
        "python",
        """\
def save(path⟦→, mode⟧$0):
    write(path)


def go(store, mode):
    save("x"«→, mode»)
    save(*rest)
    save("y", **more)
    store.save("z")
""",
    ),
    Scenario(
        "an argument that went from a call stays with a module's function of that name",
        "python",
        """\
import json

save("a"⟦, "w"→⟧$0)
save("b"«, "w"→»)
json.save("c", "w")
""",
    ),
    Scenario(
        "types with commas count as one parameter",
        "rust",
        """\
fn load(names: HashMap<String, u8>⟦, mode: u8→⟧$0, size: u8) -> u8 {
    size
}

fn run() -> u8 {
    load(HashMap::<String, u8>::new()«, 1→», 2) + load(names«, 3→», 4)
}
""",
    ),
    Scenario(
        "silence about the calls where two parameters went at once",
        "python",
        """\
def load(path⟦, mode, size→⟧$0):
    return open(path)


load("a", "r", 3)
load("b", "w", 4)
""",
    ),
    Scenario(
        "the method of the class above keeps its parameters",
        "python",
        """\
class Reader(Base):
    def read(self, path⟦, mode→⟧$0):
        return super().read(path, mode)


reader.read("a"«, "r"→»)
""",
    ),
    Scenario(
        "commas in a template count for nothing",
        "typescript",
        """\
function load(path: string⟦, mode: string→⟧$0): string {
  return open(path);
}
const a = load(`a,b`«, "r"→»);
const b = fs.load("c", "w");
const c = load(path.join("a", "b")«, "r"→»);
const d = store?.load("x", "y");
""",
    ),
    Scenario(
        "a method of another type keeps its parameters and its arguments",
        "go",
        """\
package a

func (s *Store) Save(path string⟦, mode int→⟧$0) error {
	return s.write(path)
}

func (o *Other) Save(path string, mode int) error { return nil }

func run(s *Store, o *Other) {
	s.Save("a"«, 1→»)
	o.Save("b", 2)
	Save("c", 3)
	os.Save("d"«, 4→»)
}
""",
    ),
    Scenario(
        "parameters that share a type are several",
        "go",
        """\
package a

func load(a, b⟦, c→⟧$0 int, d string) int {
	return a + b
}

func run() int { return load(1, 2«, 3→», "x") }
""",
    ),
    Scenario(
        "a function of a type, of a module, and within a macro",
        "rust",
        """\
impl Store {
    pub fn load(&self, path: &str⟦, mode: u8→⟧$0) -> u8 { 1 }
}
impl Other {
    pub fn load(&self, path: &str, mode: u8) -> u8 { 2 }
}
fn run(s: &Store) {
    s.load("a"«, 1→»);
    Store::load(s, "b", 2);
    json::load("c", 3);
    assert_eq!(s.load("d"«, 4→»), 5);
}
""",
    ),
    Scenario(
        "silence where a type has several of the name",
        "java",
        """\
class Store {
    void save(String path⟦, int mode→⟧$0) {
        write(path);
    }
    void save(String path, int mode, int owner) {
        write(path);
    }
    void all() {
        save("a", 1);
        save("a", 1, 2);
    }
}
""",
    ),
    Scenario(
        "what makes an object",
        "java",
        """\
class A {
    A(String path⟦, int mode→⟧$0) {
        open(path);
    }
    static A of() { return new A("x"«, 1→»); }
}
class B {
    A a = new A("y"«, 2→»);
}
""",
    ),
    Scenario(
        "a prototype ends without a body",
        "c",
        """\
int load(const char *path⟦, int mode→⟧$0);

int run(int *mode) {
    return load("a"«, *mode→») + other.load("b", 2) + load("c,d"«, 3→»);
}
""",
    ),
    Scenario(
        "silence about a call that names the receiver",
        "python",
        """\
class Store:
    def save(self, path⟦, mode→⟧$0):
        write(path)


Store.save(store, "a", "b")
store.save("a"«, "b"→»)
""",
    ),
    Scenario(
        "a method without a receiver",
        "python",
        """\
class Store:
    @staticmethod
    def save(path⟦, mode→⟧$0):
        write(path)


Store.save("a"«, "b"→»)
""",
    ),
    Scenario(
        "behind a star only the name counts",
        "python",
        """\
def save(path, *, mode⟦, owner→⟧$0):
    write(path)


save("a"«, owner=1→», mode=2)
save("a", mode=2«, owner=3→»)
""",
    ),
    Scenario(
        "a default is no name of an argument",
        "javascript",
        """\
function save(path⟦→, mode = "r"⟧$0) {
  return path;
}
function run(mode) {
  save("a"«→, mode»);
  save("b"«→, mode»);
}
""",
    ),
    Scenario(
        "what was given by its name is not what others give by position",
        "python",
        """\
save("a"⟦, mode="w"→⟧$0)
save("b", "w")
save("c"«, mode="r"→»)
""",
    ),
    Scenario(
        "no position comes behind a name",
        "python",
        """\
def save(path, size⟦→, mode⟧$0):
    return path


def go(mode):
    save("x", size=3)
    save("x", 3«→, mode»)
    save(path="x", size=4)
    save("x")
""",
    ),
    Scenario(
        "a call in a call",
        "python",
        """\
def save(path⟦→, mode⟧$0):
    return path


def go(mode):
    return save(save("x"«→, mode»)«→, mode»)
""",
    ),
    Scenario(
        "a new parameter is passed by its name, not by its type",
        "c",
        """\
int load(const char *path⟦→, struct box *target⟧$0) {
    return open(path, target);
}

int run(struct box *target) {
    return load("a"«→, target») + load("b"«→, target»);
}
""",
    ),
    Scenario(
        "a new parameter with the type before it",
        "java",
        """\
class Store {
    void save(String path⟦→, String mode⟧$0) {
        write(path, mode);
    }

    void all(String mode) {
        save("a"«→, mode»);
        this.save("b"«→, mode»);
    }
}
""",
    ),
    Scenario(
        "a new parameter behind a receiver",
        "rust",
        """\
impl Store {
    fn save(&mut self⟦→, mode: u8⟧$0, path: &str) {
        self.write(path, mode)
    }
}

fn run(store: &mut Store, mode: u8) {
    store.save(«→mode, »"a");
    store.save(«→mode, »"b");
}
""",
    ),
)

NAMES = (
    Scenario(
        "a module's name is no member",
        "python",
        """\
import ⟦json→orjson⟧$0

def f(request):
    return «json→orjson».loads(request.json)

x = response.json()
""",
    ),
    Scenario(
        "a function is no method",
        "python",
        """\
def ⟦load→fetch⟧$0(path):
    return path


class Store:
    def load(self, key):
        return «load→fetch»(key)

    def all(self):
        return self.load(1)


store.load(3)
«load→fetch»(3)
""",
    ),
    Scenario(
        "what an exception is called in its clause, and its type",
        "python",
        """\
def handle(⟦error→failure⟧$0):
    try:
        retry(«error→failure»)
    except TypeError as error:
        log(error)
""",
    ),
    Scenario(
        "a type of the library that has the name in its own",
        "python",
        """\
def find(⟦path→file⟧$0):
    p = Path(«path→file»)
    return os.path.join(«path→file», PathLike)
""",
    ),
    Scenario(
        "a field keeps its name where a local stood for both",
        "rust",
        """\
fn make(⟦x→left⟧$0: i32, y: i32) -> Point {
    Point { «x→x: left», y }
}
""",
    ),
    Scenario(
        "what is declared anew is another from there on",
        "rust",
        """\
fn parse(⟦input→text⟧$0: &str) -> usize {
    let input = «input→text».trim();
    println!("{}", input);
    input.len()
}
""",
    ),
    Scenario(
        "what is declared anew in a block takes its value from the other",
        "go",
        """\
package a

func f(⟦n→count⟧$0 int) int {
	for i := 0; i < «n→count»; i++ {
		n := i * «n→count»
		use(n)
	}
	return «n→count»
}
""",
    ),
    Scenario(
        "the default of a parameter is not the parameter",
        "python",
        """\
⟦timeout→deadline⟧$0 = 30

def connect(host, timeout=«timeout→deadline»):
    return open(host, timeout)

connect("a", timeout=«timeout→deadline»)
""",
    ),
    Scenario(
        "what a pattern takes from a type is a member",
        "python",
        """\
def f(⟦x→value⟧$0):
    match «x→value»:
        case Point(x=0):
            return «x→value»
    return «x→value»
""",
    ),
    Scenario(
        "a property and what sets it are one",
        "python",
        """\
class A:
    @property
    def ⟦name→label⟧$0(self):
        return self._name

    @«name.setter
    def name→label.setter
    def label»(self, value):
        self._name = value
""",
    ),
    Scenario(
        "a field is not that of another class",
        "cpp",
        """\
class A {
  int ⟦size_→length_⟧$0;
 public:
  int get() { return «size_→length_»; }
};
class B {
  int size_;
 public:
  int get() { return size_; }
};
""",
    ),
    Scenario(
        "a parameter is no method",
        "java",
        """\
class A {
    int f(int ⟦get→fetch⟧$0) {
        return «get→fetch» + get();
    }
    int get() { return 1; }
}
""",
    ),
    Scenario(
        "what names an argument of another class",
        "python",
        """\
@dataclass
class P:
    ⟦name→label⟧$0: str
    size: int


p = P(«name→label»="x", size=1)
q = Q(name="y")
print(p.«name→label»)
""",
    ),
    Scenario(
        "a function that says so assigns what is at the top",
        "python",
        """\
⟦count→total⟧$0 = 0

def inc():
    global «count→total»
    «count→total» = «count→total» + 1

def other():
    count = 5
    return count
""",
    ),
    Scenario(
        "names that have a part of it keep it where they are used",
        "python",
        """\
def f(⟦user→account⟧$0):
    user_id = «user→account».id
    return user_id


def g(user_id):
    return user_id
""",
    ),
    Scenario(
        "what a class calls above itself is not its own",
        "python",
        """\
class Child(Base):
    def ⟦read→fetch⟧$0(self):
        return super().read() + self.«read→fetch»()
""",
    ),
    Scenario(
        "a module's function is no method",
        "python",
        """\
import json


class Store:
    def ⟦load→read⟧$0(self, key):
        return json.load(key)

    def all(self):
        return self.«load→read»(1)
""",
    ),
    Scenario(
        "a field is not that of what is declared as another type",
        "typescript",
        """\
class Cart {
  ⟦items→lines⟧$0: Line[] = [];
  add(items: Line[]) {
    this.«items→lines» = items;
    return { items };
  }
}
class Order {
  items = 1;
  all() { return this.items; }
}
function f(cart: Cart, order: Order) { return cart.«items→lines».length + order.items; }
""",
    ),
    Scenario(
        "what a block declares is known in its own value",
        "c",
        """\
int f(int ⟦n→count⟧$0) {
    int total = «n→count»;
    for (int n = 0; n < 3; n++) total += n;
    { int n = n + 1; use(n); }
    return total + «n→count»;
}
""",
    ),
    Scenario(
        "a member and a key of a struct are not what is at the top",
        "c",
        """\
static int ⟦size→length⟧$0;
struct box { int size; };
int f(struct box *b) { return b->size + «size→length»; }
int g(void) { return sizeof(«size→length»); }
struct box c = { .size = 3 };
""",
    ),
    Scenario(
        "a method may have the name of a field",
        "java",
        """\
class A {
    private int ⟦size→length⟧$0;
    int size() { return «size→length»; }
    int twice() { return size() * 2 + this.size() + this.«size→length»; }
}
""",
    ),
    Scenario(
        "a macro knows a name in the braces of its text",
        "rust",
        """\
fn f(⟦name→label⟧$0: &str) {
    println!("hello {«name→label»} and {}", «name→label»);
    let x = format!("{«name→label»:?} {{name}}");
}
""",
    ),
    Scenario(
        "what a condition takes apart is another in its branch only",
        "rust",
        """\
fn f(⟦x→value⟧$0: Option<i32>) -> i32 {
    if let Some(x) = «x→value» { x } else { g(«x→value») }
}
""",
    ),
    Scenario(
        "a field of a literal and of a parameter of another type",
        "go",
        """\
package a

type Box struct {
	⟦Size→Width⟧$0 int
}
type Bag struct {
	Size int
}

func f(b Box, c Bag) int {
	x := Bag{Size: 2}
	return b.«Size→Width» + c.Size + x.Size
}
""",
    ),
    Scenario(
        "a key is no variable",
        "javascript",
        """\
const ⟦size→width⟧$0 = 3;
const a = { size: 1, b: «size→width», [«size→width»]: 2 };
a.size = «size→width»;
class B { size = «size→width»; }
""",
    ),
    Scenario(
        "a default, a comprehension and a lambda look outside",
        "python",
        """\
def f(⟦node→tree⟧$0):
    rows = {node: 1 for node in «node→tree».children}
    with lock(«node→tree») as node_lock:
        return [n for n in rows if n == «node→tree»], lambda node=«node→tree»: node
""",
    ),
    Scenario(
        "a literal and a pattern name the type whose field it is",
        "rust",
        """\
struct User { ⟦name→label⟧$0: String }
struct Pet { name: String }
fn f(u: &User, p: &Pet) -> String {
    let User { «name→label: name» } = u;
    println!("{}", u.«name→label»);
    let q = Pet { name: p.name.clone() };
    let r = User { «name→label»: u.«name→label».clone() };
    format!("{}{}", p.name, name)
}
""",
    ),
    Scenario(
        "a function is none of a type, of a module, or of an object in a macro",
        "rust",
        """\
fn ⟦load→fetch⟧$0(path: &str) -> u8 { 1 }
impl Store {
    fn load(&self) -> u8 { «load→fetch»("x") + self.load() + Self::load(self) }
}
mod inner { pub fn load() {} }
fn run() { inner::load(); «load→fetch»("y"); assert_eq!(«load→fetch»("z"), s.load()); }
""",
    ),
    Scenario(
        "a function of a type is not that of another",
        "java",
        """\
class A {
    static int ⟦of→make⟧$0(int x) { return x; }
    int f() { return «of→make»(1) + A.«of→make»(2) + B.of(3) + List.of(4); }
}
""",
    ),
    Scenario(
        "a label is no variable",
        "c",
        """\
int f(int ⟦end→last⟧$0) {
    if («end→last») goto end;
    return «end→last»;
end:
    return 0;
}
""",
    ),
    Scenario(
        "a function of a namespace is not that of another",
        "cpp",
        """\
namespace a { int ⟦load→fetch⟧$0(int x); }
namespace b { int load(int x); }
int f() { return a::«load→fetch»(1) + b::load(2) + «load→fetch»(3); }
""",
    ),
    Scenario(
        "a key is no function",
        "go",
        """\
package a

import "encoding/json"

func ⟦load→fetch⟧$0(b []byte) {
	json := 3
	load := func() {}
	load()
	use(json)
}

func g() { «load→fetch»(nil); s.load(); x := T{load: «load→fetch»} }
""",
    ),
    Scenario(
        "a method of what is declared as another type",
        "typescript",
        """\
class A {
  ⟦run→start⟧$0() { return this.stop(); }
  stop() { return this.«run→start»(); }
}
class B {
  run() {}
  go() { this.run(); const a: A = new A(); a.«run→start»(); }
}
function f(b: B) { b.run(); }
""",
    ),
    Scenario(
        "a type parameter of a method is another",
        "typescript",
        """\
class Box<⟦T→Item⟧$0> {
  value: «T→Item»;
  map<T>(f: (x: T) => T): T { return f(this.value as any); }
}
type X<T> = T[];
""",
    ),
    Scenario(
        "a class has names of its own",
        "python",
        """\
⟦limit→bound⟧$0 = 3

class A:
    limit = «limit→bound»
    def f(self, limit=limit):
        return limit, self.limit, A.limit
""",
    ),
    Scenario(
        "a receiver is known in its method",
        "go",
        """\
package a

func (⟦s→store⟧$0 *Store) Save(path string) {
	«s→store».write(path)
	for _, s := range «s→store».items {
		s.run()
	}
}

func (s *Store) Load() { s.write("x") }
""",
    ),
    Scenario(
        "a local keeps its name where a field stood for both",
        "rust",
        """\
struct User {
    ⟦name→label⟧$0: String,
}
fn make(name: String) -> User {
    User { «name→label: name» }
}
fn pet(name: String) -> Pet {
    Pet { name }
}
""",
    ),
    Scenario(
        "what is imported is none of the file's own objects",
        "python",
        """\
from app import db


class Store:
    def ⟦save→store⟧$0(self):
        db.save(self)

    def all(self):
        self.«save→store»()
""",
    ),
    Scenario(
        "what names an argument of another function",
        "python",
        """\
fetch("a", ⟦tries→retries⟧$0=3)
fetch("b", «tries→retries»=4)
load("c", tries=5)
x.tries = 4
""",
    ),
)

LINE_ENDS = (
    Scenario(
        "lines that come have the line ends of the others",
        "python",
        "def a(one):\r\n⟦    log(one, x)\r\n→    if x:\r\n        log(one, x, 1)\r\n⟧"
        "\r\n\r\ndef c(three):\r\n⟦    log(three, x)\r\n→    if x:\r\n        log(three, x, 1)\r\n⟧$0"
        "\r\n\r\ndef b(two):\r\n    «log(two, x→if x:\r\n        log(two, x, 1»)\r\n",
    ),
)


COLLISIONS = (*ARGUMENTS, *NAMES, *LINE_ENDS)


@pytest.mark.parametrize("scenario", COLLISIONS, ids=lambda each: f"{each.language}: {each.name}")
async def test_what_is_spelled_alike_is_left_alone(scenario: Scenario) -> None:
    await check(scenario)


async def test_another_file_knows_a_function_by_its_module():
    text = 'import file\nimport json\n\nfile.load("a", "r")\njson.load(path, cls)\n'
    other = Document("file:///project/other.py", "/project/other.py", "python", 3, text).snapshot()
    drawn = "def load(path⟦, mode→⟧$0):\n    return open(path)\n"
    answer = await last_of(question_of(drawn, "python", neighbours=(other,)))
    assert [(edit.uri, text[edit.start : edit.end]) for edit in answer.edits] == [(other.uri, ', "r"')]


async def test_what_a_module_is_renamed_to_is_no_member_in_another_file():
    text = "import other\n\nx = response.json()\n"
    other = Document("file:///project/other.py", "/project/other.py", "python", 3, text).snapshot()
    drawn = "import ⟦json→orjson⟧$0\n\nx = json.loads(a)\n"
    answer = await last_of(question_of(drawn, "python", neighbours=(other,)))
    assert {edit.uri for edit in answer.edits} == {"file:///project/file.py"}


def test_a_long_run_of_blanks_is_seen_once():
    snapshot, _ = marked(f"y = 2  \ntext = 'a{' ' * 200_000}b'\n$0")
    places = trim.find(trim.Trim(), snapshot, snapshot, Project())
    assert [(place.start, place.end) for place in places] == [(5, 7)]
