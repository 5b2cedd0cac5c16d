"""A value is set in a settings file, and everything else in it stays."""

import pytest

from mercury_ls.settings import toml
from mercury_ls.settings.assign import assign, assigned


def check(before, after):
    assert assigned(before, "engine.model", "qwen") == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '[engine]\nmodel = "qwen"\n'),
        ("# mine\n", '# mine\n\n[engine]\nmodel = "qwen"\n'),
        ("[log]\nlevel = 'info'", "[log]\nlevel = 'info'\n\n[engine]\nmodel = \"qwen\"\n"),
        ('[engine]\nmodel = "auto" # why not\n', '[engine]\nmodel = "qwen" # why not\n'),
        ("[engine] # mine\n  model='a'\nthreads=2\n", '[engine] # mine\n  model="qwen"\nthreads=2\n'),
        ("[engine]\n# model = 'a'\nthreads = 2\n", "[engine]\nmodel = \"qwen\"\n# model = 'a'\nthreads = 2\n"),
        ("[engine]", '[engine]\nmodel = "qwen"\n'),
        ('engine.model = "a\\"#"\n[log]\n', 'engine.model = "qwen"\n[log]\n'),
        ('"engine" . "model" = "a"\n', '"engine" . "model" = "qwen"\n'),
        ("engine.threads = 2\n[log]\n", 'engine.model = "qwen"\nengine.threads = 2\n[log]\n'),
        ("[log]\r\n[engine]\r\n", '[log]\r\n[engine]\r\nmodel = "qwen"\r\n'),
        ("[other]\nmodel = 'a'\n[engine]\n", "[other]\nmodel = 'a'\n[engine]\nmodel = \"qwen\"\n"),
        ("a = '''\n[engine]\n'''\n", "a = '''\n[engine]\n'''\n\n[engine]\nmodel = \"qwen\"\n"),
        ("[engine.more]\na = 1\n", '[engine.more]\na = 1\n\n[engine]\nmodel = "qwen"\n'),
    ],
)
def test_rest_of_file_stays_as_it_is(before, after):
    check(before, after)


@pytest.mark.parametrize("before", ["engine = { threads = 2 }\n", "engine = 3\n", "[engine]\nmodel = [\n'a']\n"])
def test_unsafe_changes_are_not_made(before):
    check(before, None)


def test_file_is_made_with_its_folder(tmp_path):
    file = tmp_path / "config/config.toml"
    assign(file, "engine.model", "qwen")
    assert toml.read(file).values == {"engine": {"model": "qwen"}}


def test_link_stays_a_link_and_mode_stays(tmp_path):
    target, link = tmp_path / "dotfiles.toml", tmp_path / "config.toml"
    target.write_bytes(b"\xef\xbb\xbf[engine]\r\nmodel = 'a'\r\n")
    target.chmod(0o600)
    link.symlink_to(target)
    assign(link, "engine.model", "qwen")
    assert link.is_symlink()
    assert target.read_bytes() == b'\xef\xbb\xbf[engine]\r\nmodel = "qwen"\r\n'
    assert target.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("text", "said"), [("[engine", "is not valid TOML"), ("engine = {}\n", "no safe place for `engine.model")]
)
def test_unchangeable_file_says_why_and_stays(tmp_path, text, said):
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(toml.UnreadableError, match=said):
        assign(file, "engine.model", "qwen")
    assert file.read_text() == text
