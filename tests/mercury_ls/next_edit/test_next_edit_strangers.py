"""Next edits as a programmer expects them: scenarios written from what is promised, not from how it is kept.

The notation is that of the other scenarios; where a user would want something else than happens, the case says what.
"""

import pytest

from tests.mercury_ls.next_edit.next_edit_scenarios import Scenario
from tests.mercury_ls.next_edit.test_pipeline import check

PYTHON = (
    Scenario(
        "a method renamed where it is defined is renamed where it is called",
        "python",
        """\
class Cart:
    def ⟦calc→subtotal⟧$0(self):
        return sum(line.price for line in self.lines)

    def total(self):
        return self.«calc→subtotal»() + self.shipping

    def taxed(self):
        return self.«calc→subtotal»() * 1.19
""",
    ),
    Scenario(
        "a constant that gets its unit gets it where it is read",
        "python",
        """\
⟦TIMEOUT→TIMEOUT_SECONDS⟧$0 = 30


def connect(host):
    return open_socket(host, timeout=«TIMEOUT→TIMEOUT_SECONDS»)


def wait(job):
    return job.wait(«TIMEOUT→TIMEOUT_SECONDS»)
""",
    ),
    Scenario(
        "a module that is imported under a short name is used under it",
        "python",
        """\
import numpy⟦→ as np⟧$0


def mean(rows):
    return «numpy→np».mean(«numpy→np».array(rows))
""",
    ),
    Scenario(
        "a parameter is renamed in its body and where it is named in a call",
        "python",
        """\
def fetch(url, ⟦tries→retries⟧$0=3):
    for _ in range(«tries→retries»):
        yield url


pages = fetch("a", «tries→retries»=5)
""",
    ),
    Scenario(
        "two prints became log messages and the third follows",
        "python",
        """\
def run(jobs):
    ⟦print→logger.info⟧("starting", len(jobs))
    for job in jobs:
        ⟦print→logger.info⟧$0("running", job)
        job.run()
    «print→logger.info»("done")
""",
    ),
    Scenario(
        "calls that are awaited now are awaited everywhere",
        "python",
        """\
async def load(client):
    users = ⟦→await ⟧client.get("/users")
    teams = ⟦→await ⟧$0client.get("/teams")
    roles = «→await »client.get("/roles")
    return users, teams, roles
""",
    ),
    Scenario(
        "optional types are spelled anew, each with its own type",
        "python",
        """\
class Row:
    name: ⟦Optional[str]→str | None⟧ = None
    size: ⟦Optional[int]→int | None⟧$0 = None
    data: «Optional[bytes]→bytes | None» = None
""",
    ),
    Scenario(
        "a lambda's parameter is renamed in that lambda alone",
        "python",
        """\
by_value = sorted(pairs, key=lambda ⟦x→pair⟧$0: «x→pair»[1])
by_name = sorted(pairs, key=lambda x: x[0])
""",
    ),
    Scenario(
        "a parameter is renamed around an inner function that has its own",
        "python",
        """\
def handle(⟦event→message⟧$0, handlers):
    def notify(event):
        return event.name

    return [handler(«event→message», notify) for handler in handlers]
""",
    ),
    Scenario(
        "a copy's parameter is renamed in the copy alone",
        "python",
        """\
def read_user(user):
    check(user)
    return store.read(user)


def read_team(⟦user→team⟧$0):
    check(«user→team»)
    return store.read(«user→team»)
""",
    ),
    Scenario(
        "silence while a new line is begun",
        "python",
        """\
def area(width, height):
    result = width * height
⟦→    res⟧$0
    return result
""",
    ),
    Scenario(
        "silence after one line of debugging went",
        "python",
        """\
def merge(left, right):
⟦    print(left)
→⟧$0    rows = left + right
    print(right)
    return rows
""",
    ),
    Scenario(
        "silence after a typo was mended in a comment",
        "python",
        """\
# ⟦recieve→receive⟧$0 what the other side has sent
def read(recieve):
    return recieve()
""",
    ),
    Scenario(
        "silence after a docstring was reworded",
        "python",
        '''\
def name_of(user):
    """The name of the ⟦user→account⟧$0."""
    return user.name
''',
    ),
    Scenario(
        "silence after the arguments of one call were swapped",
        "python",
        """\
def near(a, b):
    return distance(⟦a, b→b, a⟧$0) < 1


def far(c, d):
    return distance(c, d) > 100
""",
    ),
    Scenario(
        "silence after one condition was turned round",
        "python",
        """\
def run(job):
    if ⟦→not ⟧$0job.ready:
        return
    if job.done:
        return
    job.start()
""",
    ),
    Scenario(
        "silence after a parameter got a default, where its value is passed on to another function",
        "python",
        """\
def load(path, mode⟦→="r"⟧$0):
    return open(path, mode)


a = load("a", "r")
b = load("b", "w")
""",
    ),
    Scenario(
        "silence after a line was cut here and pasted there",
        "python",
        (
            "def run(job):\n    job.log()\n    job.start()\n    job.stop()\n",
            "def run(job):\n    job.start()\n    job.stop()\n",
            "def run(job):\n    job.start()\n    job.stop()\n    job.log()$0\n",
        ),
    ),
    Scenario(
        "silence after a rename that was finished beside a function with the same name of its own",
        "python",
        """\
def mean(⟦xs→values⟧):
    return sum(⟦xs→values⟧) / len(⟦xs→values⟧$0)


def spread(xs):
    return max(xs) - min(xs)
""",
    ),
)

TYPESCRIPT = (
    Scenario(
        "a property of an interface is renamed where it is read",
        "typescript",
        """\
interface User {
  name: string;
  ⟦mail→email⟧$0: string;
}

function greet(user: User): string {
  return user.name + user.«mail→email»;
}
""",
    ),
    Scenario(
        "an enum's member is renamed, another enum's member of that name is not",
        "typescript",
        """\
enum Status {
  Open,
  ⟦Done→Closed⟧$0,
}

enum Progress {
  Begun,
  Done,
}

const finished = status === Status.«Done→Closed»;
const ready = progress === Progress.Done;
""",
    ),
    Scenario(
        "two variables became constants and the third follows",
        "typescript",
        """\
⟦var→const⟧ first = load("a");
⟦var→const⟧$0 second = load("b");
«var→const» third = load("c");
""",
    ),
    Scenario(
        "a third comparison becomes as strict as two before",
        "typescript",
        """\
function kind(value: unknown): string {
  if (value ⟦==→===⟧ 1) return "one";
  if (value ⟦==→===⟧$0 2) return "two";
  if (value «==→===» 3) return "three";
  return "many";
}
""",
    ),
    Scenario(
        "a type is renamed in what is left once its first use follows",
        "typescript",
        """\
type ⟦Opts→Options⟧ = { depth: number };

export function walk(root: string, opts: ⟦Opts→Options⟧$0): string[] {
  return visit(root, opts as «Opts→Options»);
}
""",
    ),
    Scenario(
        "a constant of a block is renamed in that block alone",
        "typescript",
        """\
function show(rows: Row[], teams: Team[]): void {
  for (const row of rows) {
    const ⟦id→rowId⟧$0 = row.id;
    draw(«id→rowId»);
  }
  for (const team of teams) {
    const id = team.id;
    draw(id);
  }
}
""",
    ),
    Scenario(
        "an argument added to a call of a function that asks for it now is added to the next",
        "typescript",
        """\
function draw(shape: Shape⟦→, color: string⟧): void {
  canvas.fill(shape);
}

draw(circle⟦→, "red"⟧);
draw(square⟦→, "red"⟧$0);
draw(star«→, "red"»);
""",
    ),
    Scenario(
        "silence after the key of an object was renamed, not the variable behind it",
        "typescript",
        """\
const host = read("host");
listen({ ⟦host→hostname⟧$0: host });
print(host);
""",
    ),
    Scenario(
        "silence after the whole file was indented anew",
        "typescript",
        (
            "function f(a: number) {\n    if (a) {\n        return 1;\n    }\n    return 2;\n}\n",
            "function f(a: number) {\n  if (a) {\n    return 1;\n  }\n  return 2;\n}$0\n",
        ),
    ),
    Scenario(
        "silence after quotes were changed throughout",
        "typescript",
        """\
const a = ⟦'a'→"a"⟧;
const b = ⟦'b'→"b"⟧;
const c = ⟦'c'→"c"⟧$0;
""",
    ),
    Scenario(
        "silence after one line was commented out",
        "typescript",
        """\
function run(jobs: Job[]): void {
  ⟦→// ⟧$0cache.warm(jobs);
  start(jobs);
  cache.drop(jobs);
}
""",
    ),
    Scenario(
        "silence after a rename was undone and something else was typed",
        "typescript",
        (
            "const size = 1;\nprint(size);\n",
            "const width = 1;\nprint(size);\n",
            "const size = 1;\nprint(size);\n",
            "const size = 1;\nprint(size);\nstop();$0\n",
        ),
    ),
)

GO = (
    Scenario(
        "a receiver is renamed in its method alone",
        "go",
        """\
package server

func (⟦s→srv⟧$0 *Server) Start() error {
	«s→srv».log("start")
	return «s→srv».listen()
}

func (s *Server) Stop() {
	s.log("stop")
}
""",
    ),
    Scenario(
        "a field is renamed where it is read and where it is set",
        "go",
        """\
package server

type Config struct {
	⟦Addr→Address⟧$0 string
	Port int
}

func Default() *Config {
	return &Config{«Addr→Address»: "localhost", Port: 80}
}

func (c *Config) Join() string {
	return join(c.«Addr→Address», c.Port)
}
""",
    ),
    Scenario(
        "a first argument is passed on in the remaining call",
        "go",
        """\
package pages

func fetch(⟦→ctx context.Context, ⟧url string) Page {
	return client.Do(ctx, url)
}

func All(ctx context.Context) []Page {
	first := fetch(⟦→ctx, ⟧"a")
	second := fetch(⟦→ctx, ⟧$0"b")
	third := fetch(«→ctx, »"c")
	return []Page{first, second, third}
}
""",
    ),
    Scenario(
        "a third message goes where two went",
        "go",
        """\
package main

func run(jobs []Job) {
	⟦log.Println→slog.Info⟧("start")
	for _, job := range jobs {
		⟦log.Println→slog.Info⟧$0("job")
		job.Run()
	}
	«log.Println→slog.Info»("stop")
}
""",
    ),
    Scenario(
        "a function is renamed, a method of the same name is not",
        "go",
        """\
package text

func ⟦trim→strip⟧$0(line string) string {
	return line[1:]
}

func read(line string, tree *Tree) string {
	tree.trim()
	return «trim→strip»(line)
}
""",
    ),
    Scenario(
        "an error is renamed in the statement that declares it",
        "go",
        """\
package files

func Sync() error {
	if ⟦err→failure⟧$0 := flush(); «err→failure» != nil {
		return «err→failure»
	}
	if err := close(); err != nil {
		return err
	}
	return nil
}
""",
    ),
    Scenario(
        "silence after one error was given a context that another function lacks",
        "go",
        """\
package files

func Read(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, ⟦err→fmt.Errorf("read %s: %w", path, err)⟧$0
	}
	return data, nil
}

func Parse(text []byte) (*Tree, error) {
	tree, err := parse(text)
	if err != nil {
		return nil, err
	}
	return tree, nil
}
""",
    ),
    Scenario(
        "silence after the package got another name",
        "go",
        """\
package ⟦main→server⟧$0

func main() {
	run()
}
""",
    ),
    Scenario(
        "silence while a condition is typed",
        "go",
        """\
package files

func Copy(a, b string) error {
	err := open(a)
⟦→	if err != ⟧$0
	return open(b)
}
""",
    ),
    Scenario(
        "silence after a letter was typed and taken back",
        "go",
        (
            "package a\n\nvar total = 1\nvar twice = total * 2\n",
            "package a\n\nvar totals = 1\nvar twice = total * 2\n",
            "package a\n\nvar total$0 = 1\nvar twice = total * 2\n",
        ),
    ),
)

RUST = (
    Scenario(
        "a parameter is renamed inside of macros too",
        "rust",
        """\
fn parse(⟦s→input⟧$0: &str) -> usize {
    println!("{}", «s→input»);
    «s→input».trim().len()
}
""",
    ),
    Scenario(
        "a variant is renamed where it is matched and where it is made",
        "rust",
        """\
enum Outcome {
    Passed,
    ⟦Failed→Broken⟧$0(String),
}

fn show(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Passed => "passed",
        Outcome::«Failed→Broken»(reason) => reason,
    }
}

fn fail() -> Outcome {
    Outcome::«Failed→Broken»("no".into())
}
""",
    ),
    Scenario(
        "a third error is handed on as two before",
        "rust",
        """\
fn load() -> Result<Vec<File>, Error> {
    let a = File::open("a")⟦.unwrap()→?⟧;
    let b = File::open("b")⟦.unwrap()→?⟧$0;
    let c = File::open("c")«.unwrap()→?»;
    Ok(vec![a, b, c])
}
""",
    ),
    Scenario(
        "another collection is imported and used in what is left once its first use follows",
        "rust",
        """\
use std::collections::⟦HashMap→BTreeMap⟧;

fn count(words: &[String]) -> ⟦HashMap→BTreeMap⟧$0<&str, usize> {
    let mut counts = «HashMap→BTreeMap»::new();
    for word in words {
        *counts.entry(word.as_str()).or_insert(0) += 1;
    }
    counts
}
""",
    ),
    Scenario(
        "a lifetime is renamed where it is used",
        "rust",
        """\
struct Parser<⟦'a→'text⟧$0> {
    text: &'«a→text» str,
}
""",
    ),
    Scenario(
        "silence after one binding was made mutable",
        "rust",
        """\
fn sum(rows: &[u32]) -> u32 {
    let ⟦→mut ⟧$0total = 0;
    let count = 0;
    total + count
}
""",
    ),
    Scenario(
        "silence while a method is being chained",
        "rust",
        """\
fn names(rows: &[Row]) -> Vec<String> {
    let first = rows.iter()⟦→.map(|row| ⟧$0;
    let other = rows.iter();
    collect(first, other)
}
""",
    ),
)

CPP = (
    Scenario(
        "a member gets its underscore wherever the class uses it",
        "cpp",
        """\
class Counter {
 public:
  void add() { ++«count→count_»; }
  int get() const { return «count→count_»; }

 private:
  int ⟦count→count_⟧$0 = 0;
};
""",
    ),
    Scenario(
        "a third null pointer is spelled as two before",
        "cpp",
        """\
Node* first = ⟦NULL→nullptr⟧;
Node* last = ⟦NULL→nullptr⟧$0;
Node* here = «NULL→nullptr»;
const char* text = "NULL";
""",
    ),
    Scenario(
        "a third member is owned as two before, each of its type",
        "cpp",
        """\
struct Scene {
  std::⟦shared_ptr→unique_ptr⟧<Camera> camera;
  std::⟦shared_ptr→unique_ptr⟧$0<Light> light;
  std::«shared_ptr→unique_ptr»<Mesh> mesh;
};
""",
    ),
    Scenario(
        "a member function is renamed where it is defined and called",
        "cpp",
        """\
class Shape {
 public:
  void ⟦draw→render⟧$0(Canvas& canvas);
};

void Shape::«draw→render»(Canvas& canvas) {
  canvas.fill();
}

void paint(Shape& shape, Canvas& canvas) {
  shape.«draw→render»(canvas);
}
""",
    ),
    Scenario(
        "a loop's variable is renamed in that loop alone",
        "cpp",
        """\
void fill(Grid& grid) {
  for (int ⟦i→row⟧$0 = 0; «i→row» < grid.rows; ++«i→row») {
    grid.clear(«i→row»);
  }
  for (int i = 0; i < grid.columns; ++i) {
    grid.mark(i);
  }
}
""",
    ),
    Scenario(
        "an include guard is renamed in its second line",
        "cpp",
        """\
#ifndef ⟦SHAPE_H→SHAPES_H⟧$0
#define «SHAPE_H→SHAPES_H»

struct Shape {};

#endif
""",
    ),
    Scenario(
        "silence after two includes changed places",
        "cpp",
        """\
⟦#include <vector>
#include <string>→#include <string>
#include <vector>⟧$0

std::vector<std::string> names;
""",
    ),
    Scenario(
        "silence after one method was made const",
        "cpp",
        """\
class Shape {
 public:
  int area()⟦→ const⟧$0;
  void clear();
  void move(int x, int y);
};
""",
    ),
)

JAVA = (
    Scenario(
        "a field is renamed, a constructor's parameter of the same name is not",
        "java",
        """\
class Counter {
    private int ⟦cnt→count⟧$0;

    Counter(int cnt) {
        this.«cnt→count» = cnt;
    }

    int next() {
        return ++«cnt→count»;
    }
}
""",
    ),
    Scenario(
        "a caught exception is renamed in its own clause",
        "java",
        """\
class Files {
    void read() {
        try {
            open();
        } catch (IOException ⟦e→failure⟧$0) {
            log(«e→failure»);
            throw new RuntimeException(«e→failure»);
        } catch (RuntimeException e) {
            log(e);
        }
    }
}
""",
    ),
    Scenario(
        "a type replaced in one declaration is replaced in the next",
        "java",
        """\
class Report {
    String head() {
        ⟦StringBuffer→StringBuilder⟧ text = new ⟦StringBuffer→StringBuilder⟧$0();
        return text.append("head").toString();
    }

    String foot() {
        «StringBuffer→StringBuilder» text = new «StringBuffer→StringBuilder»();
        return text.append("foot").toString();
    }
}
""",
    ),
    Scenario(
        "a class is renamed with its constructor",
        "java",
        """\
public class ⟦Cart→Basket⟧$0 {
    private final int size;

    public «Cart→Basket»(int size) {
        this.size = size;
    }

    static «Cart→Basket» empty() {
        return new «Cart→Basket»(0);
    }
}
""",
    ),
    Scenario(
        "a type parameter is renamed throughout its class",
        "java",
        """\
class Box<⟦T→Item⟧$0> {
    private «T→Item» value;

    «T→Item» get() {
        return value;
    }
}
""",
    ),
    Scenario(
        "silence after one method was opened to others",
        "java",
        """\
class Store {
    ⟦private→public⟧$0 void load() {
        read();
    }

    private void read() {
        rows.clear();
    }
}
""",
    ),
    Scenario(
        "silence after the comment above a method was reworded",
        "java",
        """\
class Store {
    /** Loads every ⟦row→record⟧$0 that is there. */
    void load() {
        for (Row row : rows) {
            read(row);
        }
    }
}
""",
    ),
    Scenario(
        "silence after a local was renamed by hand while another method has its own",
        "java",
        """\
class Store {
    int first() {
        int ⟦n→total⟧ = rows.size();
        return ⟦n→total⟧$0 + 1;
    }

    int second() {
        int n = columns.size();
        return n + 1;
    }
}
""",
    ),
    Scenario(
        "silence after the last of several like edits",
        "java",
        """\
class Settings {
    int a = ⟦Integer.valueOf→Integer.parseInt⟧("1");
    int b = ⟦Integer.valueOf→Integer.parseInt⟧("2");
    int c = ⟦Integer.valueOf→Integer.parseInt⟧$0("3");
    Long d = Long.valueOf("4");
}
""",
    ),
)

STRANGERS = (*PYTHON, *TYPESCRIPT, *GO, *RUST, *CPP, *JAVA)


@pytest.mark.parametrize("scenario", STRANGERS, ids=lambda each: f"{each.language}: {each.name}")
async def test_what_a_user_expects_follows(scenario: Scenario) -> None:
    await check(scenario)
