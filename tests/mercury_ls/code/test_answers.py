"""Questions about several files: each is worked out once, in turns, and has a budget."""

from itertools import count

from mercury_ls.code.answers import TURN_SECONDS, Answers
from mercury_ls.code.documents import Document
from mercury_ls.code.index.definitions import definitions
from mercury_ls.code.index.types import Type, members
from mercury_ls.code.modules import Project
from tests.counted import calls

LAYERS, WIDTH = 9, 6


def test_answer_made_of_others_is_worked_out_in_turns_and_each_of_them_once():
    bases = {str(number): [str(other) for other in range(number)] for number in range(8)}
    answers, clock, worked_out = Answers(clock=lambda: next(clock)), count(), []

    def depth(name: str) -> int:
        return answers.once(("depth", name), lambda: work(name))

    def work(name: str) -> int:
        answer = 1 + max(map(depth, bases[name]), default=0)
        worked_out.append(name)
        return answer

    def told():
        yield (yield from answers.in_turns(lambda: depth("7")))

    *turns, answer = told()
    assert answer == 8
    assert len(turns) > 4
    assert sorted(worked_out) == sorted(bases)


def layered(make) -> dict[str, str]:
    """Files in layers, each of which names all files of the next; `make` writes one, given its number and theirs."""
    files = {}
    for layer in range(LAYERS):
        below = [f"m{layer + 1}_{number}" for number in range(WIDTH if layer + 1 < LAYERS else 0)]
        files |= {f"/p/m{layer}_{number}.py": make(f"m{layer}_{number}", below) for number in range(WIDTH)}
    return files


def starred(name: str, below: list[str]) -> str:
    return "".join(f"from {module} import *\n" for module in below) or "def deepest(): pass\n"


def derived(name: str, below: list[str]) -> str:
    imports = "".join(f"from {module} import {module.upper()}\n" for module in below)
    return f"{imports}class {name.upper()}({', '.join(map(str.upper, below))}):\n    pass\n"


def project_of(files: dict[str, str], **limits) -> Project:
    return Project(read=files.get, exists=files.__contains__, **limits)


def opened(text: str):
    return Document("file:///p/a.py", "/p/a.py", "", 1, text).snapshot()


def test_names_that_many_files_hand_on_are_followed_once():
    files, file = layered(starred), opened("from m0_0 import *\ndeepest\n")
    project = project_of(files)
    followed = definitions(project, file, "deepest", len(file.text) - 2)
    assert {declaration.file.path for declaration in followed} == {f"/p/m{LAYERS - 1}_{n}.py" for n in range(WIDTH)}
    assert calls(lambda: definitions(project_of(files), file, "deepest", len(file.text) - 2)) < 500_000


def test_bases_of_many_bases_are_followed_once():
    files, file = layered(derived), opened("from m0_0 import M0_0\nM0_0\n")
    kind = Type(file, "M0_0", len(file.text) - 3)
    assert members(project_of(files), kind, "run") == []
    assert calls(lambda: members(project_of(files), kind, "run")) < 1_000_000


def test_question_beyond_its_budget_is_not_known():
    files, file = layered(starred), opened("from m0_0 import *\ndeepest\n")
    project = project_of(files, budget=20)
    assert project.once("question", lambda: definitions(project, file, "deepest", len(file.text) - 2)) is None


def test_question_goes_on_where_its_last_turn_ended():
    files, file = layered(starred), opened("from m0_0 import *\ndeepest\n")
    project = project_of(files, clock=count().__next__)
    asking = project.in_turns(lambda: definitions(project, file, "deepest", len(file.text) - 2))
    turns, answer = in_turns(asking)
    assert turns > LAYERS * WIDTH
    assert len(answer) == WIDTH


def test_items_are_asked_once_however_many_turns_they_take():
    asked = []
    project = project_of({}, clock=count().__next__)
    turns, answers = in_turns(
        project.in_turns(lambda: [*project.each("doubled", range(9), lambda n: double(n, asked))])
    )
    assert (turns, answers, asked) == (10, [*range(0, 18, 2)], [*range(9)])


def test_short_questions_share_a_turn():
    project = project_of({}, clock=(n / 1000 for n in count()).__next__)
    turns = sum(in_turns(project.in_turns(lambda: None))[0] for _ in range(50))
    assert turns == 50 // (TURN_SECONDS * 1000)


def in_turns(asking):
    """How many turns a question takes, and its answer."""
    turns = 0
    while True:
        try:
            next(asking)
        except StopIteration as end:
            return turns, end.value
        turns += 1


def double(number, asked):
    asked.append(number)
    return 2 * number
