"""What was done once and is about its own place: silence where a habit would be a guess."""

from tests.mercury_ls.next_edit.test_pipeline import last_of, other_file, question_of

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


async def test_call_of_a_modules_function_says_nothing_of_other_files():
    answer = await last_of(question_of(DECORATED, "python", neighbours=(other_file(OTHER),)))
    assert not answer.edits
