"""What was done once and is about its own place: silence where a habit would be a guess."""

import pytest

from tests.mercury_ls.next_edit.next_edit_scenarios import Scenario
from tests.mercury_ls.next_edit.test_pipeline import check, last_of, other_file, question_of

ONCE = (
    Scenario(
        "a version in a documentation string",
        "python",
        '''\
class NoSuchOption(UsageError):
    """Raised for an option that does not exist.

    .. versionadded:: ⟦4.0→4.1⟧$0
    """


class NoSuchCommand(UsageError):
    """Raised for a command that does not exist.

    .. versionadded:: 4.0
    """
''',
    ),
    Scenario(
        "a short word in a sentence",
        "python",
        '''\
def heading(text):
    """Writes ⟦a→one⟧$0 heading into the buffer."""


def paragraph(text):
    """Writes a paragraph into the buffer."""
''',
    ),
    Scenario(
        "what an assertion expects",
        "python",
        """\
def test_one(runner):
    result = runner.invoke(cli, ["one"])
    assert result.exit_code == ⟦0→1⟧$0


def test_two(runner):
    result = runner.invoke(cli, ["two"])
    assert result.exit_code == 0


def test_three(runner):
    result = runner.invoke(cli, ["three"])
    assert result.exit_code == 0
""",
    ),
    Scenario(
        "true or false",
        "python",
        """\
def complete(self):
    echo(self.source(), nl=⟦False→True⟧$0)
    return Context(self.cli, resilient=True, interspersed=False)
""",
    ),
    Scenario(
        "the default of an option of one function",
        "python",
        """\
def version_option(**kwargs):
    kwargs.setdefault("is_eager", ⟦True→False⟧$0)
    return option("--version", **kwargs)


def help_option(**kwargs):
    kwargs.setdefault("is_eager", True)
    return option("--help", **kwargs)
""",
    ),
    Scenario(
        "a line without any name",
        "python",
        """\
def complete(cls, instruction):
    if cls is None:
        return ⟦1→2⟧$0

    if instruction == "source":
        return 0

    return 1
""",
    ),
    Scenario(
        "a parameter that has the name of a keyword elsewhere",
        "python",
        """\
class Item:
    def __init__(self, value, ⟦type→kind⟧$0: str = "plain"):
        self.value: str = value
        self.type: str = «type→kind»
""",
    ),
    Scenario(
        "a definition that goes",
        "python",
        """\
class String(Type):
    name = "text"

⟦    def __repr__(self) -> str:
        return "STRING"
→⟧$0

class Integer(Type):
    name = "integer"

    def __repr__(self) -> str:
        return "INT"


class Float(Type):
    name = "float"

    def __repr__(self) -> str:
        return "FLOAT"
""",
    ),
    Scenario(
        "a function that is asynchronous no more",
        "typescript",
        """\
export ⟦async →⟧$0function respond(opts: Options) {
  return fetch(opts.url);
}

export async function request(opts: Options) {
  const response = await respond(opts);
  return response.json();
}
""",
    ),
    Scenario(
        "a word that is all of a string is none in a sentence",
        "python",
        '''\
class Text(Type):
    name = "⟦text→string⟧$0"

    def describe(self):
        """Describes the range for use in help text."""
''',
    ),
    Scenario(
        "another string in a union",
        "typescript",
        """\
type ColorMode = 'ansi' | 'css'⟦→ | 'html'⟧$0 | 'none';

function parts(opts: { colorMode: ColorMode }) {
  if (opts.colorMode === 'none') {
    return [];
  }
  return [opts.colorMode];
}
""",
    ),
    Scenario(
        "the type and the default of one parameter",
        "python",
        """\
class MissingParameter(BadParameter):
    def __init__(self, message: ⟦str | None = None→str = ""⟧$0, ctx: Context | None = None) -> None:
        super().__init__(message, ctx)


class NoSuchOption(UsageError):
    def __init__(self, name: str, message: str | None = None, ctx: Context | None = None) -> None:
        super().__init__(message, ctx)
""",
    ),
    Scenario(
        "a parameter without a default",
        "python",
        """\
class UsageError(ClickException):
    def __init__(self, message: str, ctx: ⟦Context | None = None→Context⟧$0) -> None:
        super().__init__(message)


class BadParameter(UsageError):
    def __init__(self, message: str = "", ctx: Context | None = None, hint: str | None = None) -> None:
        super().__init__(message, ctx)
""",
    ),
    Scenario(
        "a member of an unrelated class has the same name",
        "python",
        """\
class Parser:
    def __init__(self, option):
        self.⟦option→choice⟧$0 = option


class Completer:
    def __init__(self, option):
        self.option = option
""",
    ),
    Scenario(
        "a member is no keyword of a call",
        "python",
        """\
class FileError(Exception):
    def __init__(self, filename, shown):
        self.shown = shown
        self.⟦filename→path⟧$0 = filename

    def message(self):
        return "{filename}: not found".format(filename=self.shown)
""",
    ),
    Scenario(
        "a member whose name others have as well, of objects that may be any of them",
        "python",
        """\
class Context:
    def __init__(self):
        self.⟦params→values⟧$0 = {}

    def forward(self, other):
        for param in other.params:
            other.invoke(param)


class Command:
    def __init__(self):
        self.params = []
""",
    ),
    Scenario(
        "an element in a list that was empty",
        "python",
        """\
def pieces(self, ctx):
    if self.hidden:
        return [⟦→None⟧$0]
    return [self.make_metavar(ctx)]
""",
    ),
    Scenario(
        "an assignment to a name that nothing declares, while the old one is declared",
        "typescript",
        """\
let isDone = false;

export function step(line: string) {
  if (line === "") {
    ⟦isDone→done⟧$0 = true;
  }
  if (isDone) {
    return;
  }
  next(isDone);
}
""",
    ),
    Scenario(
        "a string that is given to one call of a module's function",
        "python",
        """\
import click


def command(name):
    return name


@click.command(⟦→"cli"⟧$0)
def cli():
    pass


@click.command()
def other():
    pass
""",
    ),
    Scenario(
        "what another operand is compared with",
        "python",
        """\
def show(self, ctx):
    if self.prompt⟦ is not None→⟧$0:
        return 1
    if ctx.default is not None:
        return 2
    if value is not None:
        return 3
""",
    ),
    Scenario(
        "a function at one call, and a method of the same name",
        "typescript",
        """\
function close() {
  ⟦unsubscribe→stop⟧$0();
}
function more() {
  const unsubscribe = listen(queue);
  unsubscribe();
  sub.unsubscribe();
}
""",
    ),
)

REPEATED = (
    Scenario(
        "a message is repeated word for word",
        "python",
        """\
class ClickException(Exception):
    def show(self, file):
        echo("⟦Error→Fatal⟧$0: {message}".format(message=self.format_message()), file=file)


class UsageError(ClickException):
    def show(self, file):
        echo("«Error→Fatal»: {message}".format(message=self.format_message()), file=file)
""",
    ),
    Scenario(
        "true or false for the second time",
        "python",
        """\
OPTIONS = [
    Option("a", hidden=⟦False→True⟧),
    Option("b", hidden=⟦False→True⟧$0),
    Option("c", hidden=«False→True»),
]
""",
    ),
    Scenario(
        "a constant that was changed twice is another one behind another name",
        "python",
        """\
def option(name, possibilities):
    if possibilities:
        found = matches(name, possibilities)
    else:
        found = ⟦None→[]⟧
    return found


def command(name, possibilities):
    if possibilities:
        found = matches(name, possibilities)
    else:
        found = ⟦None→[]⟧$0
    return found


def last(words):
    option = None
    for word in words:
        option = word
    return option
""",
    ),
)


@pytest.mark.parametrize("scenario", ONCE, ids=lambda each: each.name)
async def test_what_was_done_once_is_about_its_place(scenario: Scenario) -> None:
    await check(scenario)


@pytest.mark.parametrize("scenario", REPEATED, ids=lambda each: each.name)
async def test_what_is_repeated_follows_where_it_is_the_same(scenario: Scenario) -> None:
    await check(scenario)


DECORATED = """\
import click


def test_one(runner):
    @click.command(⟦→"cli"⟧$0)
    def cli():
        pass

    assert runner.invoke(cli, []).output == ""


def test_two(runner):
    @click.group()
    def command():
        pass
"""
OTHER = """\
import click


def test_three(runner):
    @click.command()
    def cli(ctx):
        return ctx.invoke(other, arg=42)

    @click.command()
    def other(arg):
        click.echo(arg)
"""


async def test_a_call_of_a_modules_function_says_nothing_about_other_files():
    answer = await last_of(question_of(DECORATED, "python", neighbours=(other_file(OTHER),)))
    assert not answer.edits
