"""Files whose reading ended several servers."""

import os

from mercury_ls.project.unended import HANGING_SECONDS, KEPT_SECONDS, Unended


def note(folder, path, seconds=HANGING_SECONDS + 1):
    """A server that noted the path, so long ago."""
    server = Unended(folder)
    before = {*folder.glob("*")}
    server.begin(str(path))
    (written,) = {*folder.glob("*")} - before
    moment = written.stat().st_mtime - seconds
    os.utime(written, (moment, moment))
    return server


def source(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("import b\n")
    os.utime(path, (1, 1))
    return path


def test_file_that_ended_two_servers_is_known_to_the_third(tmp_path):
    path, folder = source(tmp_path), tmp_path / "notes"
    assert Unended(folder).paths == []
    note(folder, path)
    assert Unended(folder).paths == []
    note(folder, path)
    assert Unended(folder).paths == [str(path)]


def test_file_that_changed_since_gets_another_chance(tmp_path):
    path, folder = source(tmp_path), tmp_path / "notes"
    note(folder, path)
    note(folder, path)
    os.utime(path)
    assert Unended(folder).paths == []


def test_notes_of_servers_that_go_on_do_not_count(tmp_path):
    path, folder = source(tmp_path), tmp_path / "notes"
    note(folder, path)
    note(folder, path, seconds=1)
    note(folder, path).end()
    assert Unended(folder).paths == []


def test_notes_are_not_kept_for_ever(tmp_path):
    path, folder = source(tmp_path), tmp_path / "notes"
    note(folder, path, KEPT_SECONDS + 1)
    note(folder, path, KEPT_SECONDS + 1)
    assert Unended(folder).paths == []
    assert [*folder.glob("*")] == []


def test_folder_that_cannot_be_written_is_no_obstacle(tmp_path):
    (tmp_path / "notes").write_text("")
    Unended(tmp_path / "notes").begin("a.py")
