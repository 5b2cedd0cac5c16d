"""What a user has just done, and what should follow, drawn in one text.

`⟦old→new⟧` is an edit that was made, in the order of the text; `$0` is the cursor; `«old→new»` is an edit that should
follow. Where none is drawn, there should be silence. A scenario of several texts is a history of whole documents.
"""

from msgspec import Struct

__all__ = ["ASKED", "SCENARIOS", "Scenario"]


class Scenario(Struct, frozen=True):
    """`reason` is how the reason for silence begins."""

    name: str
    language: str
    drawn: str | tuple[str, ...]
    reason: str = ""

    @property
    def is_silent(self) -> bool:
        return "«" not in "".join(self.drawn)


PYTHON = (
    Scenario(
        "a parameter is renamed throughout its function",
        "python",
        """\
def area(⟦w→width⟧$0, height):
    if «w→width» < 0:
        raise ValueError(«w→width»)
    return «w→width» * height
""",
    ),
    Scenario(
        "a parameter is not renamed to another parameter",
        "python",
        """\
def scaled(⟦width→height⟧$0, height, scale):
    return width / scale, height / scale
""",
        reason="the name height is taken there",
    ),
    Scenario(
        "a parameter is not renamed to a loop variable of its function",
        "python",
        """\
def collect(⟦item→entry⟧$0, entries):
    for entry in list(entries):
        entries.append(item)
""",
        reason="the name entry is taken there",
    ),
    Scenario(
        "a local is not renamed to what a comprehension over it binds",
        "python",
        """\
def names(users):
    ⟦prefix→user⟧$0 = "u"
    return [prefix + user.name for user in users]
""",
        reason="the name user is taken there",
    ),
    Scenario(
        "a local is not renamed to what is used from outside",
        "python",
        """\
LIMIT = 3


def clipped(values):
    ⟦most→LIMIT⟧$0 = max(values)
    return [min(value, LIMIT) for value in values], most
""",
        reason="the name LIMIT is taken there",
    ),
    Scenario(
        "a function is not renamed to a parameter of one that calls it",
        "python",
        """\
def ⟦size→length⟧$0(values):
    return len(values)


def show(values, length):
    return size(values) + length
""",
        reason="the name length is taken there",
    ),
    Scenario(
        "a name that is taken in another function may be given",
        "python",
        """\
def area(⟦w→width⟧$0, height):
    return «w→width» * height


def other(width):
    return width
""",
    ),
    Scenario(
        "in blocks too a parameter is not renamed to a local",
        "typescript",
        """\
function total(⟦items→sum⟧$0: number[]): number {
  let sum = 0;
  for (const item of items) {
    sum += item;
  }
  return sum;
}
""",
        reason="the name sum is taken there",
    ),
    Scenario(
        "a local of Go is not renamed to another one",
        "go",
        """\
package main

func load(⟦path→data⟧$0 string) error {
	data, err := os.ReadFile(path)
	use(data, path)
	return err
}
""",
        reason="the name data is taken there",
    ),
    Scenario(
        "a parameter of Rust is not renamed to another one",
        "rust",
        """\
fn area(⟦width→height⟧$0: f64, height: f64) -> f64 {
    width * height
}
""",
        reason="the name height is taken there",
    ),
    Scenario(
        "a parameter of Java is not renamed to a local",
        "java",
        """\
class Shop {
    int total(int[] ⟦items→sum⟧$0) {
        int sum = 0;
        for (int item : items) {
            sum += item;
        }
        return sum;
    }
}
""",
        reason="the name sum is taken there",
    ),
    Scenario(
        "a parameter of C++ is not renamed to a local",
        "cpp",
        """\
int total(int ⟦count→sum⟧$0) {
    int sum = 0;
    for (int index = 0; index < count; index++) {
        sum += index;
    }
    return sum;
}
""",
        reason="the name sum is taken there",
    ),
    Scenario(
        "a local stays in its function",
        "python",
        """\
def first(rows):
    ⟦total→amount⟧$0 = sum(rows)
    print(«total→amount»)
    return «total→amount»


def second(rows):
    total = len(rows)
    return total
""",
    ),
    Scenario(
        "names in strings and comments are left alone",
        "python",
        """\
def report(⟦user→account⟧$0):
    # the user is known here
    print("user", «user→account»)
    return «user→account».name
""",
    ),
    Scenario(
        "an attribute is renamed, a local of the same name is not",
        "python",
        """\
class Box:
    def __init__(self, size):
        self.⟦size→extent⟧$0 = size

    def double(self):
        return self.«size→extent» * 2

    def half(self):
        return self.«size→extent» / 2
""",
    ),
    Scenario(
        "a call of another method renames no method that is still there",
        "python",
        """\
class Watcher:
    def attach(self):
        register("copied", self.⟦remember→copy⟧$0)
        register("linked", self.remember)
        for item in self.items:
            self.remember(item)

    def remember(self, item):
        self.seen.append(item)
""",
    ),
    Scenario(
        "a use that got another name is replaced where all around it is the same, whatever it stands for there",
        "python",
        """\
def first(base):
    if not is_valid(base):
        return ⟦base→INVALID⟧$0
    return base.value


def second(base):
    if not is_valid(base):
        return «base→INVALID»
    return base.value
""",
    ),
    Scenario(
        "an attribute that its class declares as well is renamed from where it is given its value",
        "python",
        """\
class Walk:
    seen: set[str]

    def __init__(self):
        self.⟦seen→visited⟧$0 = set()

    def has(self, name):
        return name in self.«seen→visited»
""",
    ),
    Scenario(
        "what is put behind a local is not put behind another function's",
        "python",
        """\
def read_password(question):
    return ask(question⟦→.strip()⟧$0, password=True)


def confirm(path):
    question = f"Delete {path}?"
    return read_yes_no(question, "yes")
""",
    ),
    Scenario(
        "a value is not replaced elsewhere because it ends a line there, too",
        "python",
        """\
class Playlist:
    def __init__(self):
        self.extended = ⟦False→None⟧$0

    def load(self, lines):
        self.extended = True if lines[0] == "#EXT" else False
""",
    ),
    Scenario(
        "a local with a name that is a keyword elsewhere is renamed, too",
        "python",
        """\
def seconds(text):
    ⟦match→found⟧$0 = PATTERN.match(text)
    if not «match→found»:
        raise ValueError(text)
    return int(«match→found»[1])
""",
    ),
    Scenario(
        "another method of one object says nothing of other objects",
        "python",
        """\
def refresh(times, pause, disabled):
    times.⟦hide→fade_out⟧$0()
    pause.hide()
    disabled.hide()
""",
    ),
    Scenario(
        "a line does not come to say the same as its neighbour",
        "python",
        """\
VERSIONS = [
    install("⟦3.13→3.14⟧$0", group="docs"),
    install("3.«13→14»", group="lint"),
    install("3.13", group="test"),
    install("3.14", group="test"),
]
""",
    ),
    Scenario(
        "another type for one field says nothing of other fields",
        "python",
        """\
class Moved(TypedDict):
    item: Item
    source: ⟦bytes→str⟧$0
    destination: bytes


class Written(TypedDict):
    item: Item
    path: bytes
""",
    ),
    Scenario(
        "the same replacement for the third time",
        "python",
        """\
class Tests:
    def test_a(self):
        self.⟦assertEquals→assertEqual⟧(a(), 1)

    def test_b(self):
        self.⟦assertEquals→assertEqual⟧$0(b(), 2)

    def test_c(self):
        self.«assertEquals→assertEqual»(c(), 3)

    def test_d(self):
        self.«assertEquals→assertEqual»(d(), 4)
""",
    ),
    Scenario(
        "an argument is added to the other calls",
        "python",
        """\
def load(names):
    first = fetch(names[0]⟦→, timeout=5⟧)
    second = fetch(names[1]⟦→, timeout=5⟧$0)
    third = fetch(names[2]«→, timeout=5»)
    return first, second, third
""",
    ),
    Scenario(
        "an expression is wrapped where it stands again",
        "python",
        """\
def show(items):
    print(⟦items.name→str(items.name)⟧)
    log(⟦items.name→str(items.name)⟧$0)
    send(«items.name→str(items.name)»)
""",
    ),
    Scenario(
        "lines of one shape change alike, with their own names",
        "python",
        """\
class Point:
    def __init__(self, x, y, z):
        self.x = ⟦x→float(x)⟧
        self.y = ⟦y→float(y)⟧$0
        self.z = «z→float(z)»
""",
    ),
    Scenario(
        "an import replaces another, and its uses follow",
        "python",
        """\
from typing import ⟦List→Sequence⟧$0


def first(rows: «List→Sequence»[int]) -> int:
    return rows[0]


def last(rows: «List→Sequence»[int]) -> int:
    return rows[-1]
""",
    ),
    Scenario(
        "a repeated literal edit in like places",
        "python",
        """\
OPTIONS = [
    Option("a", retries=⟦3→5⟧),
    Option("b", retries=⟦3→5⟧$0),
    Option("c", retries=«3→5»),
    Option("d", retries=«3→5»),
]
""",
    ),
    Scenario(
        "an edit inside a string is repeated inside strings",
        "python",
        """\
A = "https://⟦old→new⟧.example.com/a"
B = "https://⟦old→new⟧$0.example.com/b"
C = "https://«old→new».example.com/c"
old = None
""",
    ),
    Scenario(
        "a parameter that went goes from the calls",
        "python",
        """\
def load(name⟦, strict→⟧$0):
    return open(name)


a = load("a"«, True→»)
b = load("b"«, False→»)
""",
    ),
    Scenario(
        "a prefix stays with what it stands before",
        "python",
        """\
class Tests:
    def test(self):
        self.write(⟦→b⟧"one")
        self.until(⟦→b⟧$0"two")
        self.equal(self.data, "three")
        self.until(«→b»"four")
""",
    ),
    Scenario(
        "a member of the same name in another case follows the second",
        "python",
        """\
class RowReader:
    pass


def ⟦row_reader→line_reader⟧(path):
    return ⟦row_reader→line_reader⟧$0(path)


value = «row_reader→line_reader»("a")
other = «row_reader→line_reader»("b")
""",
    ),
    Scenario(
        "the same lines between like lines for the third time",
        "python",
        """\
def first(cursor):
    cursor.start()
⟦→    cursor.check()
⟧    cursor.stop()


def second(cursor):
    cursor.start()
⟦→    cursor.check()
⟧$0    cursor.stop()


def third(cursor):
    cursor.start()
«→    cursor.check()
»    cursor.stop()
""",
    ),
    Scenario(
        "silence while a call is typed in a file that has an error elsewhere",
        "python",
        """\
def broken(:
    pass


def load(name):
    value = ⟦fetch(name)→fetch(name, mode=⟧$0
    return value
""",
    ),
    Scenario(
        "silence after a finished rename",
        "python",
        """\
def area(⟦w→width⟧, height):
    return ⟦w→width⟧$0 * height
""",
    ),
    Scenario(
        "silence where a word is being deleted",
        "python",
        """\
def area(⟦width→wid⟧$0, height):
    return width * height
""",
        "a word is being deleted",
    ),
    Scenario(
        "silence where the statement is not complete",
        "python",
        """\
def load(name):
    value = ⟦fetch(name)→fetch(name, mode=⟧$0
    other = fetch(name)
    return value
""",
    ),
    Scenario(
        "silence after an undo",
        "python",
        (
            "def area(w, h):\n    return w * h\n",
            "def area(width, h):\n    return w * h\n",
            "def area(w$0, h):\n    return w * h\n",
        ),
        "nothing has been edited",
    ),
    Scenario(
        "silence after a part of the edits was undone",
        "python",
        (
            "a = load(1)\nb = load(2)\nc = load(3)\n",
            "a = read(1)\nb = load(2)\nc = load(3)\n",
            "a = read(1)\nb = read(2)\nc = load(3)\n",
            "a = read(1)\nb = load$0(2)\nc = load(3)\n",
        ),
    ),
    Scenario(
        "silence after undo and redo of a finished edit",
        "python",
        (
            "x = old_name(1)\n",
            "x = new_name(1)\n",
            "x = old_name(1)\n",
            "x = new_name$0(1)\n",
        ),
    ),
    Scenario(
        "silence where a line was deleted and typed again",
        "python",
        (
            "def f(a):\n    check(a)\n    return a\n",
            "def f(a):\n    return a\n",
            "def f(a):\n    check(a)$0\n    return a\n",
        ),
    ),
    Scenario(
        "silence after reformatting",
        "python",
        """\
def f(a, b):
    x = ⟦a+b→a + b⟧$0
    y = a+b
    return x
""",
    ),
    Scenario(
        "silence for the same word in another function",
        "python",
        """\
def first(⟦value→number⟧):
    return ⟦value→number⟧$0 + 1


def second(value):
    return value * 2
""",
    ),
    Scenario(
        "silence for the same word in a comment",
        "python",
        """\
def first(⟦value→number⟧):
    return ⟦value→number⟧$0 + 1


# value is explained here
LIMIT = "value"
""",
    ),
    Scenario(
        "silence for a new line that says nothing about others",
        "python",
        """\
def main():
    setup()
⟦→    print("here")
⟧$0    run()
    stop()
""",
    ),
)

TYPESCRIPT = (
    Scenario(
        "a parameter and its uses",
        "typescript",
        """\
export function greet(⟦name→person⟧$0: string): string {
  const upper = «name→person».toUpperCase();
  return `Hello ${«name→person»}` + upper;
}
""",
    ),
    Scenario(
        "a type annotation for the third time",
        "typescript",
        """\
interface Row {
  id: ⟦number→string⟧;
  parent: ⟦number→string⟧$0;
  owner: «number→string»;
}
""",
    ),
    Scenario(
        "await before the other calls",
        "typescript",
        """\
async function load() {
  const a = ⟦fetchRows("a")→await fetchRows("a")⟧;
  const b = ⟦fetchRows("b")→await fetchRows("b")⟧$0;
  const c = «→await »fetchRows("c");
  return [a, b, c];
}
""",
    ),
    Scenario(
        "a property is made readonly on the next lines as well",
        "typescript",
        """\
class Point {
  ⟦→readonly ⟧x: number;
  ⟦→readonly ⟧$0y: number;
  «→readonly »z: number;
}
""",
    ),
    Scenario(
        "an imported name changes",
        "typescript",
        """\
import { ⟦readFile→readText⟧$0 } from "./files";

export async function config() {
  const text = await «readFile→readText»("config.json");
  return JSON.parse(text);
}
""",
    ),
    Scenario(
        "a private method is renamed, its calls follow",
        "typescript",
        """\
class Store {
  private ⟦get→lookup⟧$0(key: string) {
    return this.map[key];
  }
  has(key: string) {
    return this.«get→lookup»(key) !== undefined;
  }
  first() {
    return this.«get→lookup»("a");
  }
}
""",
    ),
    Scenario(
        "silence while a call is being typed",
        "typescript",
        """\
function run() {
  const a = ⟦start();→start(opt⟧$0
  const b = start();
}
""",
    ),
    Scenario(
        "silence after an undo in TypeScript",
        "typescript",
        (
            "const a = one();\nconst b = one();\n",
            "const a = two();\nconst b = one();\n",
            "const a = one$0();\nconst b = one();\n",
        ),
        "nothing has been edited",
    ),
    Scenario(
        "silence where only blanks changed",
        "typescript",
        """\
function f(a: number) {
⟦  →    ⟧return a$0;
}
function g(a: number) {
  return a;
}
""",
    ),
    Scenario(
        "silence for a property of another name space",
        "typescript",
        """\
function size(⟦width→w⟧: number) {
  return ⟦width→w⟧$0 * 2;
}
const box = { width: 3 };
""",
    ),
)

JAVASCRIPT = (
    Scenario(
        "a constant and its uses",
        "javascript",
        """\
const ⟦limit→maximum⟧$0 = 10;

function check(value) {
  if (value > «limit→maximum») {
    throw new Error("too large");
  }
  return «limit→maximum» - value;
}
""",
    ),
    Scenario(
        "var becomes let on the next lines",
        "javascript",
        """\
function setup() {
  ⟦var→let⟧ a = 1;
  ⟦var→let⟧$0 b = 2;
  «var→let» c = 3;
  return a + b + c;
}
""",
    ),
    Scenario(
        "equality becomes strict",
        "javascript",
        """\
function same(a, b) {
  if (a.id ⟦==→===⟧ b.id) return true;
  if (a.name ⟦==→===⟧$0 b.name) return true;
  if (a.kind «==→===» b.kind) return true;
  return false;
}
""",
    ),
    Scenario(
        "a callback parameter in its function only",
        "javascript",
        """\
rows.forEach((⟦row→line⟧$0) => {
  print(«row→line».text);
  count(«row→line»);
});
others.forEach((row) => {
  print(row);
});
""",
    ),
    Scenario(
        "an argument goes from the other calls as well",
        "javascript",
        """\
log("start"⟦, true→⟧);
log("middle"⟦, true→⟧$0);
log("end"«, true→»);
""",
    ),
    Scenario(
        "console.log lines are deleted one after the other",
        "javascript",
        """\
function run(a, b, c) {
⟦  console.log("a", a);
→⟧  first(a);
⟦  console.log("b", b);
→⟧$0  second(b);
«  console.log("c", c);
→»  third(c);
}
""",
    ),
    Scenario(
        "silence for a name that is only in a string",
        "javascript",
        """\
const ⟦mode→state⟧$0 = read();
print("mode");
""",
    ),
    Scenario(
        "silence after typing a new statement",
        "javascript",
        """\
function run() {
  start();
⟦→  const result = compute();
⟧$0  stop();
}
""",
    ),
    Scenario(
        "silence inside an unfinished string",
        "javascript",
        """\
const a = ⟦"one"→"one, two⟧$0
const b = "one";
""",
    ),
)

GO = (
    Scenario(
        "a receiver's field and its uses",
        "go",
        """\
package store

type Store struct {
	⟦rows→items⟧$0 []string
}

func (s *Store) Len() int {
	return len(s.«rows→items»)
}

func (s *Store) First() string {
	return s.«rows→items»[0]
}
""",
    ),
    Scenario(
        "a context is passed to the next call too",
        "go",
        """\
package main

func run(ctx context.Context, c *Client) {
	c.Open(⟦→ctx, ⟧"a")
	c.Open(⟦→ctx, ⟧$0"b")
	c.Open(«→ctx, »"c")
}
""",
    ),
    Scenario(
        "a local by short declaration",
        "go",
        """\
package main

func total(rows []int) int {
	⟦s→sum⟧$0 := 0
	for _, row := range rows {
		«s→sum» += row
	}
	return «s→sum»
}
""",
    ),
    Scenario(
        "a format verb for the third time",
        "go",
        """\
package main

func show(a, b, c string) {
	fmt.⟦Println→Print⟧(a)
	fmt.⟦Println→Print⟧$0(b)
	fmt.«Println→Print»(c)
}
""",
    ),
    Scenario(
        "silence for a variable of the same name elsewhere",
        "go",
        """\
package main

func one(⟦key→name⟧ string) string {
	return ⟦key→name⟧$0
}

func two(key string) string {
	return key
}
""",
    ),
    Scenario(
        "silence after an undo in Go",
        "go",
        (
            "package main\n\nvar a = open(1)\nvar b = open(2)\n",
            "package main\n\nvar a = create(1)\nvar b = open(2)\n",
            "package main\n\nvar a = open$0(1)\nvar b = open(2)\n",
        ),
        "nothing has been edited",
    ),
)

RUST = (
    Scenario(
        "an ordering for the third time",
        "rust",
        """\
fn update() {
    A.store(1, Ordering::⟦SeqCst→Relaxed⟧);
    B.store(2, Ordering::⟦SeqCst→Relaxed⟧$0);
    C.store(3, Ordering::«SeqCst→Relaxed»);
}
""",
    ),
    Scenario(
        "a let binding and its uses",
        "rust",
        """\
fn area(w: u32, h: u32) -> u32 {
    let ⟦a→product⟧$0 = w * h;
    println!("{}", «a→product»);
    «a→product»
}
""",
    ),
    Scenario(
        "unwrap becomes a question mark",
        "rust",
        """\
fn load() -> Result<(), Error> {
    let a = open("a")⟦.unwrap()→?⟧;
    let b = open("b")⟦.unwrap()→?⟧$0;
    let c = open("c")«.unwrap()→?»;
    Ok(())
}
""",
    ),
    Scenario(
        "an attribute before the next item too",
        "rust",
        """\
⟦#[repr(packed)]→#[repr(C, packed)]⟧
struct A(u8);

⟦#[repr(packed)]→#[repr(C, packed)]⟧$0
struct B(u8);

#[repr(«→C, »packed)]
struct C(u8);
""",
    ),
    Scenario(
        "pub for the next fields",
        "rust",
        """\
struct Options {
    ⟦→pub ⟧width: u32,
    ⟦→pub ⟧$0height: u32,
    «→pub »depth: u32,
}
""",
    ),
    Scenario(
        "silence for another function's binding",
        "rust",
        """\
fn one() -> u32 {
    let ⟦x→count⟧ = 1;
    ⟦x→count⟧$0
}

fn two() -> u32 {
    let x = 2;
    x
}
""",
    ),
    Scenario(
        "silence while a generic is being typed",
        "rust",
        """\
fn main() {
    let a: ⟦Vec<u8>→Vec<⟧$0 = Vec::new();
    let b: Vec<u8> = Vec::new();
}
""",
    ),
)

JAVA = (
    Scenario(
        "a field and its uses",
        "java",
        """\
class Counter {
    private int ⟦n→count⟧$0;

    int next() {
        «n→count» += 1;
        return «n→count»;
    }
}
""",
    ),
    Scenario(
        "a type argument for the third time",
        "java",
        """\
class Tables {
    Map<String, ⟦Integer→Long⟧> a;
    Map<String, ⟦Integer→Long⟧$0> b;
    Map<String, «Integer→Long»> c;
}
""",
    ),
    Scenario(
        "final on the next fields",
        "java",
        """\
class Point {
    private ⟦→final ⟧int x;
    private ⟦→final ⟧$0int y;
    private «→final »int z;
}
""",
    ),
    Scenario(
        "a parameter of one method",
        "java",
        """\
class Math {
    int twice(int ⟦v→value⟧$0) {
        return «v→value» + «v→value»;
    }

    int thrice(int v) {
        return v + v + v;
    }
}
""",
    ),
    Scenario(
        "silence after a finished rename in Java",
        "java",
        """\
class Math {
    int twice(int ⟦v→value⟧) {
        return ⟦v→value⟧ * 2$0;
    }

    int thrice(int v) {
        return v * 3;
    }
}
""",
    ),
    Scenario(
        "silence after an undo in Java",
        "java",
        (
            "class A {\n    int a = f(1);\n    int b = f(2);\n}\n",
            "class A {\n    int a = g(1);\n    int b = f(2);\n}\n",
            "class A {\n    int a = f$0(1);\n    int b = f(2);\n}\n",
        ),
        "nothing has been edited",
    ),
)

C = (
    Scenario(
        "a local in C",
        "c",
        """\
int length(const char *text) {
    int ⟦i→count⟧$0 = 0;
    while (text[«i→count»]) {
        «i→count»++;
    }
    return «i→count»;
}
""",
    ),
    Scenario(
        "a function's name and its calls",
        "c",
        """\
static int ⟦get→read_value⟧$0(int fd) {
    return fd;
}

int main(void) {
    int a = «get→read_value»(1);
    int b = «get→read_value»(2);
    return a + b;
}
""",
    ),
    Scenario(
        "a macro for the third time",
        "c",
        """\
void setup(void) {
    enable(⟦FLAG_OLD→FLAG_NEW⟧ | 1);
    enable(⟦FLAG_OLD→FLAG_NEW⟧$0 | 2);
    enable(«FLAG_OLD→FLAG_NEW» | 4);
}
""",
    ),
    Scenario(
        "silence in a comment of C",
        "c",
        """\
int ⟦size→length⟧$0(void);
/* size is in bytes */
""",
    ),
    Scenario(
        "silence where a brace is missing",
        "c",
        """\
int f(int a) {
    if ⟦(a)→(a) {⟧$0
    return a;
}
""",
    ),
)

GROWN = (
    Scenario(
        "silence where the entry stands in the other list as well",
        "typescript",
        """\
import { load } from "./load";
⟦→import { save } from "./save";
⟧$0
export const names = [
  "load",
  "save",
];
""",
    ),
    Scenario(
        "silence where the neighbour of a new entry opens a block",
        "python",
        """\
ACTIONS = {
    "load": load,
⟦→    "save": save,
⟧$0}


def load(path):
    return path


def dump(path):
    return path
""",
    ),
    Scenario(
        "silence after a parameter more where none is kept",
        "python",
        """\
def area(width, height⟦→, scale⟧$0):
    return width * height
""",
    ),
    Scenario(
        "silence where a function of the same name takes something else",
        "python",
        """\
class Shape:
    def draw(self, canvas⟦→, color⟧$0):
        raise NotImplementedError


class Lottery:
    def draw(self, tickets):
        return tickets.pop()
""",
    ),
    Scenario(
        "silence where a star may have brought the name",
        "python",
        """\
from shapes import *


def first(rows) -> ⟦list→Path⟧$0:
    return rows[0]
""",
    ),
    Scenario(
        "a statement moves to a line of its own for the second time",
        "python",
        """\
def check(user, entry, slug):
    if not user:⟦ →
        ⟧raise Missing(user)
    if not entry:⟦ →
        ⟧raise Missing(entry)$0
    if not slug:«→
       » raise Missing(slug)
""",
    ),
    Scenario(
        "a number without a name of its own, between the names around it",
        "go",
        """\
package forms

func parse(req *Request) error {
	req.ParseForm(⟦32 << 10→defaultMemory⟧$0)
	return req.ParseForm(«32 << 10→defaultMemory»)
}
""",
    ),
    Scenario(
        "a host goes from one string and from the next",
        "go",
        """\
package web

func address(port string) string {
	if port != "" {
		return "⟦localhost→⟧$0:" + port
	}
	return "«localhost→»:8080"
}
""",
    ),
)

ALIKE = (
    Scenario(
        "a variable that is given another value on the way is renamed whole",
        "python",
        """\
class Address:
    def __init__(self, jidstring):
        ⟦res_sep→slash⟧$0 = jidstring.find("/")
        at = jidstring.find("@")
        if at < 0:
            host = jidstring
        elif «res_sep→slash» < 0:
            «res_sep→slash» = len(jidstring)
            host = jidstring[at + 1 : at + («res_sep→slash» - at)]
        log("address", [host for _ in range(«res_sep→slash»)], key=lambda each: each.parts(«res_sep→slash»))
        self.host = host
        self.resource = jidstring[«res_sep→slash» + 1 :] or None
""",
    ),
    Scenario(
        "what a string says may differ",
        "python",
        """\
def test(Response):
    with pytest.raises⟦(DeprecationWarning, →(⟧match=r"issubclass\\(cls, Request\\)"):
        Response.check()
    with pytest.raises⟦(DeprecationWarning, →(⟧$0match="cookies"):
        Response.cookies()
    with pytest.raises(«DeprecationWarning, →»match="no_etag is gone"):
        Response.freeze(no_etag=True)
""",
    ),
    Scenario(
        "a member may stand where a name stood",
        "rust",
        """\
impl Match {
    fn with_start(&self, start: usize) -> Match {
        assert!(start <= self.end⟦→, "{} is not <= {}", start, self.end⟧$0);
        Match { start, ..*self }
    }

    fn with_end(&self, end: usize) -> Match {
        assert!(self.start <= end«→, "{} is not <= {}", self.start, end»);
        Match { end, ..*self }
    }
}
""",
    ),
    Scenario(
        "what goes takes its blank along",
        "go",
        """\
package binding

func (⟦_ →⟧formBinding) Name() string {
	return "form"
}

func (⟦_ →⟧$0formBinding) Close() string {
	return "closed"
}

func («_ →»postBinding) Name() string {
	return "post"
}
""",
    ),
    Scenario(
        "lines stand in the column of their neighbours as others do by now",
        "go",
        """\
package routes

var routes = []Route{
	{
		Method: "GET",
		Path:⟦ →   ⟧"/"$0,
	},
	{
		Method: "POST",
		Path:« →   »"/users/",
	},
	{
		Method: "HEAD",
		Path:« →   »"/users/:id",
	},
}
""",
    ),
    Scenario(
        "silence for blanks that make no column",
        "go",
        """\
package area

func area(w, h int) int {
	x := w⟦*→ * ⟧h$0
	y := w*h
	return x + y
}
""",
    ),
    Scenario(
        "silence in a table of another kind",
        "python",
        """\
SHORT = ⟦1→  1⟧$0
LONGER = 2


def show(a):
    x = a
    other = x
    return other
""",
    ),
    Scenario(
        "silence for a word in a comment that is no misspelling",
        "python",
        """\
def count(⟦entries→rows⟧):
    # how many entries there are
    return len(⟦entries→rows⟧$0)
""",
    ),
    Scenario(
        "silence where a local takes the place of another for once",
        "typescript",
        """\
function transform(base: Base, context: Context) {
  const result = run(base.value, context);
  if (!isValid(base)) return ⟦base→INVALID⟧$0;
  return result;
}
""",
    ),
)

BESIDE = (
    Scenario(
        "what a constructor is given less goes from where the class is called",
        "python",
        """\
class Store:
    def __init__(self, path⟦, mode→⟧$0):
        self.path = path

    def copy(self):
        return Store(self.path«, "r"→»)


first = Store("a"«, mode="w"→»)
second = Other("a", "w")
""",
    ),
    Scenario(
        "a name goes on where a pattern ends behind it",
        "go",
        """\
package routes

var first = Route{Handler: "^app.⟦list_all→listAll⟧$"}
var second = Route{Handler: "^app.⟦list_all→listAll⟧$"}$0
var third = Route{Handler: "^app.«list_all→listAll»$"}
var fourth = Route{Handler: "^app.list_all_now$"}
""",
    ),
    Scenario(
        "a name that was changed in code and then in a comment is of the code",
        "python",
        """\
def count(rows):
    ⟦relased→released⟧ = 0
    # What is ⟦relased→released⟧$0 counts.
    for row in rows:
        «relased→released» += row.is_free
    return «relased→released»
""",
    ),
    Scenario(
        "a type that got a comment with its new name",
        "typescript",
        """\
⟦type ResolverDef = {
→/** @internal */
export type AnyResolverDef = {
⟧$0  input: unknown;
};

export type Resolver<TDef extends «ResolverDef→AnyResolverDef»> = (input: TDef['input']) => void;
""",
    ),
    Scenario(
        "silence where a variable is given its own value again",
        "go",
        """\
package verify

func check(t *testing.T) {
⟦→	err := run(&options)
⟧$0	require.Error(t, err)
	err = run(&options)
}
""",
    ),
    Scenario(
        "silence after an empty list got a name",
        "python",
        """\
def spawn(self):
⟦→    pipes = []
⟧$0    closing = []
    return closing
""",
    ),
    Scenario(
        "silence where a module says already what it passes on",
        "typescript",
        """\
⟦→export type { Json } from "../core/util.js";
⟧$0export * as core from "../core/index.js";

export {
  number,
  string,
} from "./other.js";
export * as locales from "../core/index.js";
""",
    ),
    Scenario(
        "silence where a function has the name that its package had",
        "go",
        """\
package ⟦tools→kit⟧$0

func tools() {
	run()
}
""",
    ),
)

LONG_ROWS = ["    [" + '"one", ' * count + "],\n" for count in range(90, 93)]

APART = (
    Scenario(
        "silence beside lines that are too long to be told apart",
        "python",
        f"rows = [\n{LONG_ROWS[0]}⟦→    # the second\n⟧$0{LONG_ROWS[1]}{LONG_ROWS[2]}]\n",
    ),
    Scenario(
        "silence where a clock is read again",
        "python",
        """\
def main():
⟦→    started = time.perf_counter()
⟧$0    run()
    print(time.perf_counter() - started)
""",
    ),
    Scenario(
        "silence where another variable gets what is called again",
        "python",
        """\
⟦→first = input()
⟧$0second = input()
""",
    ),
    Scenario(
        "silence where each call takes another",
        "python",
        """\
def drain(queue):
⟦→    item = queue.pop()
⟧$0    handle(queue.pop())
    handle(queue.pop())
""",
    ),
    Scenario(
        "silence where another is made",
        "typescript",
        """\
function walk() {
⟦→  const seen = new Set();
⟧$0  visit(new Set());
}
""",
    ),
    Scenario(
        "silence where what waits waits again",
        "typescript",
        """\
async function drain(queue: Queue) {
⟦→  const job = await queue.next();
⟧$0  run(await queue.next());
}
""",
    ),
    Scenario(
        "only a function that is async waits",
        "typescript",
        """\
async function first() {
  const a = ⟦load("a")→await load("a")⟧;
  const b = ⟦load("b")→await load("b")⟧$0;
  const c = «→await »load("c");
}
function second() {
  const d = load("d");
}
""",
    ),
    Scenario(
        "nothing waits outside of functions",
        "python",
        """\
async def run():
    a = ⟦→await ⟧load("a")
    b = ⟦→await ⟧$0load("b")


c = load("c")
""",
    ),
    Scenario(
        "only a function that returns a result hands errors on",
        "rust",
        """\
fn first() -> Result<(), Error> {
    let a = open("a")⟦.unwrap()→?⟧$0;
    Ok(())
}

fn second() -> Result<(), Error> {
    let b = open("b")«.unwrap()→?»;
    Ok(())
}

fn main() {
    let c = open("c").unwrap();
}
""",
    ),
    Scenario(
        "only a method has itself",
        "python",
        """\
class Store:
    def fill(self):
        a = ⟦→self.⟧load("a")
        b = ⟦→self.⟧$0load("b")
        c = «→self.»load("c")


def fill():
    d = load("d")
""",
    ),
    Scenario(
        "every method of a class has its instance",
        "typescript",
        """\
class Store {
  fill() {
    const a = ⟦→this.⟧load("a");
    const b = ⟦→this.⟧$0load("b");
  }
  clear() {
    const c = «→this.»load("c");
  }
}
function fill() {
  const d = load("d");
}
""",
    ),
    Scenario(
        "silence where one of the constants became a variable",
        "typescript",
        """\
function sum() {
  ⟦const→let⟧$0 total = 0;
  const size = 3;
  total += size;
}
""",
    ),
    Scenario(
        "silence where something would be said of another function",
        "python",
        """\
def load(path):
⟦→    print("loading")
⟧$0    with open(path) as file:
        return file.read()


def save(path):
    with open(path) as file:
        return file.write()
""",
    ),
    Scenario(
        "what is said goes along with a name that it can have",
        "go",
        """\
package main

func load() {
⟦→	log.Println("load")
⟧$0	begin()
}

func save() {
«→	log.Println("save")
»	begin()
}
""",
    ),
)
"""Places that are less like the edited one than their words."""

MOVED = (
    Scenario(
        "lines that go into a block, step by step, are carried as one",
        "python",
        """\
def one(path):
⟦    f = open(path)
→    with open(path) as f:
⟧⟦    data = f.read()
→        data = f.read()
⟧⟦    f.close()
→⟧$0    return data


def two(name):
    «g = open(name)
    text = g.read()
    g.close→with open(name) as g:
        text = g.read»()
    return text


def three(name):
    g = open(name)
    return g
""",
    ),
    Scenario(
        "a header alone, whose lines have not gone into its block yet, is not carried",
        "python",
        """\
def one(path):
⟦    f = open(path)
→    with open(path) as f:
⟧⟦    data = f.read()
→        data = f.read()
⟧$0    f.close()


def three(name):
    f = open(name)
    return f
""",
    ),
    Scenario(
        "a guard around a statement is carried with its bracket",
        "typescript",
        """\
function one(a) {
⟦→  if (ready) {
⟧⟦  send(a);
→    send(a);
⟧⟦→  }
⟧$0}

function two(b) {
  «send(b);→if (ready) {
    send(b);
  }»
}
""",
    ),
    Scenario(
        "a guard that goes takes its bracket along",
        "go",
        """\
package p

func one(a int) {
⟦	if ready() {
→⟧⟦		send(a)
→	send(a)
⟧⟦	}
→⟧$0}

func two(b int) {
	«if ready() {
		send(b)
	}→send(b)»
}
""",
    ),
)

ASKED = (
    Scenario(
        "an earlier edit that was made once is repeated",
        "python",
        """\
value = compute(1)⟦→ or 0⟧
other = ⟦5→6⟧$0
third = compute(3)«→ or 0»
""",
    ),
)
"""Less likely than what is shown unasked."""

SCENARIOS = (*PYTHON, *TYPESCRIPT, *JAVASCRIPT, *GO, *RUST, *JAVA, *C, *GROWN, *ALIKE, *BESIDE, *APART, *MOVED)
