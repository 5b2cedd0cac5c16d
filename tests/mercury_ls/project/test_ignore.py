"""Gitignore patterns mean what they mean to git."""

import shutil
import subprocess
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mercury_ls.project import ignore
from mercury_ls.project.ignore import Rules, to_regex


def check(patterns: str, path: str, expected: str | None, *, folder: bool = False, ignore_case: bool = False):
    """`expected` is the rule that decides, as it is written."""
    rule = Rules(patterns.split("|"), ignore_case=ignore_case).find(path, folder)
    assert (rule and rule.text) == expected


def test_name_matches_at_any_depth_and_path_only_where_it_stands():
    check("*.log", "a/b/x.log", "*.log")
    check("/x.log", "a/x.log", None)
    check("a/*.log", "a/x.log", "a/*.log")
    check("a/*.log", "b/a/x.log", None)
    check("a/*.log", "a/b/x.log", None)


def test_last_rule_decides_for_folders_alone_or_whatever_the_case():
    check("*.log|!keep.log", "keep.log", "!keep.log")
    check("!keep.log|*.log", "keep.log", "*.log")
    assert not Rules(["*.log", "!keep.log"]).find("keep.log").hides
    check("build/", "build", None)
    check("build/", "build", "build/", folder=True)
    check("*.PEM", "key.pem", None)
    check("*.PEM", "key.pem", "*.PEM", ignore_case=True)


def test_two_stars_cross_folders():
    check("**/a", "x/y/a", "**/a")
    check("a/**/b", "a/b", "a/**/b")
    check("a/**/b", "a/x/y/b", "a/**/b")
    check("a/**", "a", None)
    check("a/**", "a/x/y", "a/**")
    check("a**", "abc", "a**")


def test_brackets_escapes_and_comments():
    check("[a-c]?.p[!y]", "bx.po", "[a-c]?.p[!y]")
    check("[[:digit:]]*", "7x", "[[:digit:]]*")
    check("[]x]", "]", "[]x]")
    check("[a", "[a", None)
    check("[z-a]", "z", None)
    check(r"\#x", "#x", r"\#x")
    check(r"\!x", "!x", r"\!x")
    check("# x| |", "# x", None)
    check(r"x\ ", "x ", r"x\ ")
    check("x  ", "x", "x")


@pytest.mark.parametrize("pattern", ["*a" * 40 + "*b", "**/a/" * 40 + "b", "**/*a*a/" * 20 + "b"])
def test_patterns_never_make_matching_slow(pattern):
    """Naive backtracking would need longer than the universe has: any bound tells the two apart."""
    began = time.process_time()
    assert Rules([pattern]).find("a/" * 500 + "a" * 200) is None
    assert time.process_time() - began < 20


def test_patterns_are_not_compiled_before_they_may_match(monkeypatch):
    """Four thousand patterns cost a path what a few do."""
    compiled = []
    monkeypatch.setattr(ignore, "to_regex", lambda glob: compiled.append(glob) or to_regex(glob))
    kinds = ["name{}", "/a/b{}/", "*.e{}", "x{}*", "dir{}/**/file*.py", "*p{}*q", "[a-z]w{}?[0-9]", r"q\#{}"]
    rules = Rules([kind.format(n) for n in range(500) for kind in kinds])
    assert rules.find("src/module/file.py") is None
    assert compiled == []
    assert rules.find("dir7/x/file.py").text == "dir7/**/file*.py"
    assert compiled == ["dir7/**/file*.py"]


def test_more_than_can_be_matched_in_time_hides_everything():
    """And a rule before it that would show something again counts no more."""
    rules = Rules(["*", "!a.py", *(f"?[a-c]x{n}*" for n in range(10_000))])
    assert rules.find("a.py").hides
    assert rules.find("a.py").text == "more than 20000 wildcards, so everything is hidden"
    assert not Rules(["*", "!a.py", *(f"x{n}" for n in range(30_000))]).find("a.py").hides


@pytest.mark.parametrize("line", ["[" * 200_000, "\\" * 200_001, "*a" * 100_000, "[!" * 100_000])
def test_line_of_too_many_wildcards_hides_everything(line):
    assert Rules([line]).find("a" * 100).hides


def test_long_line_of_one_wildcard_is_a_pattern_as_others():
    rules = Rules(["a" * 200_000 + "*b"])
    assert rules.find("a" * 100) is None
    assert rules.find("a" * 200_000 + "cb").hides


NAMES = st.sampled_from(["a", "b", "src", "x.py", "y.log", "a b", "[z]", "#c", "!d"])
PIECES = r"* ** a b s* *.py ? [a-b] [!a]* x.py \#c \!d [[:alpha:]] [a a?b"
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
PATTERNS = st.builds(
    lambda negated, rooted, pieces, folder: negated + rooted + "/".join(pieces) + folder,
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "", "/"]),
    st.lists(st.sampled_from(PIECES.split()), min_size=1, max_size=3),
    st.sampled_from(["", "", "/"]),
)


@pytest.mark.skipif(not shutil.which("git"), reason="git is the judge")
@settings(max_examples=25)
@given(st.lists(PATTERNS, min_size=1, max_size=4), st.lists(PATHS, min_size=1, max_size=20))
def test_git_agrees(repository, patterns, paths):
    (repository / ".gitignore").write_text("\n".join(patterns) + "\n")
    command = ["git", "-C", str(repository), "check-ignore", "--no-index", "-z", "--stdin"]
    answer = subprocess.run(command, input="\0".join(paths), capture_output=True, text=True, check=False)
    assert {path for path in paths if hides(Rules(patterns), path)} == {*answer.stdout.split("\0")} - {""}


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    folder = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


def hides(rules: Rules, path: str) -> bool:
    names = path.split("/")
    decided = (rules.find("/".join(names[:n]), n < len(names)) for n in range(1, len(names) + 1))
    return any(rule and rule.hides for rule in decided)
