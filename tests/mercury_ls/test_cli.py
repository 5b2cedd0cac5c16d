import json
import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mercury_ls.cli import given, main
from mercury_ls.cli.parser import parser
from mercury_ls.session import stats
from release import manual

ROOT = Path(__file__).parents[2]


@pytest.fixture
def home(home, monkeypatch):
    monkeypatch.setenv("MERCURY_ENGINE_MODEL", "fake")
    return home


def check(capsys, command, code, *said):
    """The exit code, and what standard error says; gives what was printed."""
    with pytest.raises(SystemExit) as ended:
        main(command)
    output, errors = capsys.readouterr()
    assert ended.value.code == code
    assert "Traceback" not in errors
    for text in said:
        assert text in errors
    assert said or not errors
    return output


def rows(capsys, *arguments):
    found = json.loads(check(capsys, ["config", "--json", *arguments], 0))
    return {row["path"]: (row["value"], row["origin"]) for row in found}


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("nothere.py:1:1", "nothere.py cannot be read (No such file or directory)"),
        ("folder:1:1", "folder cannot be read ("),
        ("a.py:4:1", "a.py:4: the file has 3 lines"),
        ("a.py:1:7", "a.py:1:7: line 1 has 6 columns"),
        ("a.py:3:2", "a.py:3:2: line 3 has 1 column,"),
    ],
)
def test_missing_place_is_refused_with_what_there_is(home, capsys, place, said):
    (home / "folder").mkdir()
    (home / "a.py").write_text("x = 1\ny\n")
    assert check(capsys, ["complete", place], 2, said) == ""


BAD = "a\x1b[2J\x9b\u202e"


@pytest.mark.parametrize(
    "arguments",
    [
        ["complete", f"{BAD}.py:1:1"],
        ["complete", f"{BAD}.py"],
        ["complete", "a.py:1:1", "--set", BAD],
        ["complete", "a.py:1:1", "--set", f"engine.{BAD}=1"],
        ["complete", "a.py:1:1", "--config", BAD],
        ["complete", "a.py:1:1", "--log-file", f"/nowhere/{BAD}"],
        ["complete", "a.py:1:1", BAD],
        [BAD],
        ["config", "--config", BAD],
        ["editor", BAD],
        ["model", "use", BAD],
        ["model", "add", BAD],
        ["model", BAD],
        ["serve", "--http", BAD],
        ["serve", "--http", "127.0.0.1:0", "--project", BAD],
        ["serve", "--team", BAD],
        ["serve", "--new-token", BAD],
        ["stats", "--days", BAD],
    ],
)
def test_arguments_do_nothing_to_a_terminal(home, capsys, arguments):
    with pytest.raises(SystemExit):
        main(arguments)
    printed = "".join(capsys.readouterr())
    assert printed
    assert not {"\x1b", "\x9b", "\u202e"} & {*printed}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_pipe_is_refused_instead_of_waited_for(home, capsys):
    os.mkfifo(home / "a.py")
    check(capsys, ["complete", "a.py:1:1"], 2, "a.py cannot be read (it is not a regular file")


def test_complete_says_which_settings_were_not_applied(home, capsys):
    (home / ".env").write_text("TOKEN=1\n")
    wrong = ["--set", "engine.efort=high", "--set", "engine.address=nonsense", "--config", "/nope.toml"]
    said = ["did you mean engine.effort?", "engine.address = 'nonsense'", "--config = /nope.toml: does not exist"]
    check(capsys, ["complete", ".env:1:1", *wrong], 2, *said)
    (home / ".mercury.toml").write_text("engine.efort = 'high'\n")
    check(capsys, ["complete", ".env:1:1"], 1, said[0], "the file is private")


def test_settings_of_a_project_do_nothing_to_a_terminal(home, capsys):
    (home / ".mercury.toml").write_text('[privacy]\nignore = ["a\\u001b[2J\\u009b\\u202e"]\n')
    printed = check(capsys, ["config"], 0)
    assert "\\x9b\\u202e" in printed
    assert not {"\x1b", "\x9b", "\u202e"} & {*printed}


def test_config_misses_a_file_that_was_named_but_not_the_usual_one(home, capsys):
    check(capsys, ["config"], 0)
    check(capsys, ["config", "--config", "nope.toml"], 2, "--config = nope.toml: does not exist")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--certificate", "a.pem", "--key", "b.pem"], "add --http HOST:PORT"),
        (["--key", "b.pem", "--http", "127.0.0.1:0"], "add --certificate FILE"),
        (["--without-token"], "add --http HOST:PORT"),
    ],
)
def test_serve_refuses_what_would_have_no_effect(home, capsys, arguments, said):
    check(capsys, ["serve", *arguments], 2, said)


def test_unwritable_switch_is_named(home, capsys, monkeypatch):
    (home / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "file"))
    check(capsys, ["record", "on"], 1, f"{home / 'file'}", "cannot change", "writable")


def test_config_shows_that_recording_was_switched_on(home, capsys):
    assert rows(capsys)["record.enabled"] == (False, "default")
    check(capsys, ["record", "on"], 0)
    assert rows(capsys)["record.enabled"] == (True, "`mercury-ls record on`")
    check(capsys, ["record", "off"], 0)
    assert rows(capsys)["record.enabled"] == (False, "default")


@pytest.mark.parametrize(
    ("arguments", "level", "origin"),
    [
        ([], "warning", "default without log.file"),
        (["--log-file", "a.log"], "info", "default"),
        (["--set", "log.level=info"], "info", "command line"),
        (["--log-level", "debug"], "debug", "command line"),
        (["--log-level", "error", "--log-file", "a.log"], "error", "command line"),
    ],
)
def test_level_shown_by_config_is_the_one_in_force(home, capsys, arguments, level, origin):
    assert rows(capsys, *arguments)["log.level"] == (level, origin)
    assert given.log_level(given.load_settings(parser().parse_args(arguments))) == level


def test_level_of_user_file_counts_without_log_file(home, capsys):
    (home / "mine.toml").write_text("log.level = 'debug'")
    level, origin = rows(capsys, "--config", "mine.toml")["log.level"]
    assert (level, origin) == ("debug", "user file mine.toml")


def test_writable_log_is_written(tmp_path):
    handler = given.log_handler(str(tmp_path / "a.log"))
    handler.emit(logging.makeLogRecord({"msg": "\ud83d is half a character"}))
    handler.close()
    assert (tmp_path / "a.log").read_text() == "\\ud83d is half a character\n"


def test_language_server_lives_on_without_its_log(home):
    command = [sys.executable, "-m", "mercury_ls", "--stdio", "--log-file", str(home / "nope" / "a.log")]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert ended.stderr.count("logging to standard error") == ended.stderr.count("\n") == 1
    assert (ended.returncode, "cannot write" in ended.stderr) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give --stdio"),
        (["--stdio", "--set", "engine.effort"], "is not NAME=VALUE"),
        (["--nope"], "unrecognized arguments"),
        (["complete", "a.py"], "is not FILE:LINE:COL"),
        (["doctor", "--set", "engine.effort"], "is not NAME=VALUE"),
        (["config", "--set", "engine.effort=much"], "engine.effort = 'much'"),
        (["serve", "--http", "here"], "'here' is not HOST:PORT"),
        (["record", "on", "--config", "nope.toml"], "does not exist"),
        (["stats", "--days", "0"], "'0' is not a whole number of 1 or more"),
        (["stats", "--days", "²"], "is not a whole number"),
    ],
)
def test_wrong_arguments_are_always_2(home, capsys, arguments, said):
    check(capsys, arguments, 2, said)


def test_commands_describe_themselves_with_an_example_and_exit_codes():
    for command in manual.commands_of(parser()):
        said = command.format_help()
        assert command.description.partition("\n")[2]
        assert f"example:\n  {command.prog}" in said
        assert "exit codes:\n  0  " in said


@pytest.mark.parametrize(("name", "text"), manual.pages(ROOT / "docs").items())
def test_generated_pages_are_current(name, text):
    """`python -m release.manual --write docs` renews them."""
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == text


def test_pages_are_written(tmp_path, capsys):
    for name in manual.PARTS:
        current = (ROOT / "docs" / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(re.sub(r"(?m)^\| .*\n", "", current), encoding="utf-8")
    assert manual.main(["--write", str(tmp_path)]) == 0
    written = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert written == manual.pages(ROOT / "docs")
    assert manual.main([]) == 2
    assert "usage" in capsys.readouterr().err


def test_config_shows_problems_first(home):
    (home / ".mercury.toml").write_text("engine.efort = 'high'\n")
    command = [sys.executable, "-m", "mercury_ls", "config"]
    shown = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    assert "did you mean engine.effort?" in shown.splitlines()[0]


def test_stats_shows_what_was_counted(home, capsys):
    assert check(capsys, ["stats"], 1).startswith("nothing has been counted")
    counted = stats.Stats(stats.default_file())
    counted.add("python", "inline", "accepted")
    counted.write()
    table = check(capsys, ["stats", "--days", "1"], 0)
    assert f"{counted.today}  python    inline" in table
    assert "Stored in `~/state/mercury-ls/stats.jsonl`" in table
    (row,) = json.loads(check(capsys, ["stats", "--json"], 0))["days"]
    assert (row["day"], row["accepted"], row["typedThrough"]) == (str(counted.today), 1, 0)
