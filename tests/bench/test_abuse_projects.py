"""Projects that nobody should write are indexed and answered, and the event loop is not kept for long."""

import pytest

from bench.abuse.projects import MANNERS, made, measured

PROJECTS = 36


def test_projects_are_of_all_languages_and_the_same_each_time():
    projects = [made(f"test-{number}", 8, 4_000) for number in range(PROJECTS)]
    assert {project.language for project in projects} == {*MANNERS}
    assert made("test-1") == made("test-1")


@pytest.mark.slow
@pytest.mark.parametrize("number", range(PROJECTS))
def test_hostile_project_is_answered(number):
    outcome = measured(made(f"test-{number}", 8, 4_000))
    assert outcome.failed == ""
    assert outcome.unread == 0
