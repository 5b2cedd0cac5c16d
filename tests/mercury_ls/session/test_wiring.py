"""Settings in motion: what is rebuilt when files, folders and configurations change."""

from pathlib import Path

import pytest

from bench.harness.in_process import InProcessClient
from mercury_engine.fake import FakeEngine
from mercury_ls.session.record import Recorder
from mercury_ls.session.wiring import Wiring, needs_new_engine, serve_arguments
from mercury_ls.settings.schema import EngineSettings, PrivacySettings, Settings, SuggestSettings


@pytest.fixture
def wiring(tmp_path):
    return Wiring(user_file=tmp_path / "config.toml", environ={}, make_engine=in_process)


def in_process(settings, on_status):
    return InProcessClient(FakeEngine())


def started(wiring: Wiring, root: Path, **options):
    return wiring.session([str(root)], options, lambda status: None)


def test_user_settings_file_is_followed(wiring, tmp_path):
    session = started(wiring, tmp_path)
    assert not wiring.user_file_changed()
    (tmp_path / "config.toml").write_text("[suggest]\ndelay_ms = 50\n")
    assert wiring.user_file_changed()
    wiring.rebuild(session)
    assert session.settings.suggest.delay_ms == 50
    assert not wiring.user_file_changed()


def test_project_settings_file_is_followed(wiring, tmp_path):
    session = started(wiring, tmp_path)
    file = tmp_path / ".mercury.toml"
    file.write_text("[suggest]\ndelay_ms = 70\n")
    wiring.files_changed(session, [str(file)], [])
    assert session.settings.suggest.delay_ms == 70
    file.unlink()
    wiring.files_changed(session, [str(file)], [str(file)])
    assert session.settings.suggest.delay_ms == SuggestSettings().delay_ms


def test_editor_settings_win_over_files(wiring, tmp_path):
    (tmp_path / "config.toml").write_text("[suggest]\ndelay_ms = 50\n")
    session = started(wiring, tmp_path, mercury={"suggest": {"delayMs": 10}})
    assert session.settings.suggest.delay_ms == 10
    wiring.reconfigure(session, {"mercury": {"suggest": {"delayMs": 20}}})
    assert session.settings.suggest.delay_ms == 20
    wiring.reconfigure(session, None)
    assert session.settings.suggest.delay_ms == 20


def test_project_definitions_are_kept_unless_the_rules_change(wiring, tmp_path):
    session = started(wiring, tmp_path)
    kept = session.files.workspace
    wiring.reconfigure(session, {"suggest": {"delay_ms": 5}})
    assert session.files.workspace is kept
    wiring.reconfigure(session, {"privacy": {"ignore": ["*.sql"]}})
    assert session.files.workspace is not kept
    kept = session.files.workspace
    wiring.reroot(session, [str(tmp_path / "other")])
    assert session.files.workspace is not kept


def test_branch_switch_forgets_typed_text(wiring, tmp_path):
    head = tmp_path / ".git/HEAD"
    head.parent.mkdir()
    head.write_text("ref: refs/heads/main\n")
    session = started(wiring, tmp_path)
    session.open("file:///a.py", "/a.py", "python", 1, "x = 1\n")
    session.change("file:///a.py", 2, [((0, 0, 0, 0), "y")], "utf-16")
    wiring.files_changed(session, [str(head)], [])
    assert session.files.history.edits()
    head.write_text("ref: refs/heads/topic\n")
    wiring.files_changed(session, [str(head)], [])
    assert session.files.history.edits() == ()


async def test_changed_engine_settings_reach_the_engine(tmp_path):
    made = []

    def make(settings, on_status):
        made.append(settings.engine.model)
        return InProcessClient(FakeEngine(), on_status=on_status)

    states = []
    wiring = Wiring(user_file=tmp_path / "none", environ={}, make_engine=make)
    session = wiring.session([str(tmp_path)], {}, lambda status: states.append(status.state))
    wiring.reconfigure(session, {"engine": {"model": "fake"}})
    await wiring.renew_engine(session)
    assert made == ["auto", "fake"]
    assert states == ["ready"]
    await session.end()


def test_ignore_file_hides_what_is_open_already(wiring, tmp_path):
    root = tmp_path.resolve()
    session = started(wiring, root)
    path = root / "inner.py"
    session.open(path.as_uri(), str(path), "python", 1, "x = 1\n")
    (root / ".gitignore").write_text("inner.py\n", encoding="utf-8")
    wiring.files_changed(session, [str(root / ".gitignore")], [])
    assert session.files.documents == {}


def test_engine_server_keeps_the_settings_it_is_started_with():
    arguments = serve_arguments(with_engine(model="fake", threads=2, effort="high", deadline_ms=50))
    assert arguments[:3] == ["serve", "--set", "engine.model=fake"]
    assert "engine.threads=2" in arguments
    assert not any("effort" in part or "deadline" in part for part in arguments)


def test_whether_code_may_leave_the_machine_is_passed_on():
    assert "privacy.allow_network=False" in serve_arguments(Settings())
    allowed = Settings(privacy=PrivacySettings(allow_network=True))
    assert "privacy.allow_network=True" in serve_arguments(allowed)
    assert needs_new_engine(Settings(), allowed)


def test_settings_fixed_at_start_alone_ask_for_a_new_engine_server():
    assert not needs_new_engine(Settings(), with_engine(effort="high", deadline_ms=99))
    assert needs_new_engine(Settings(), with_engine(model="fake"))
    assert needs_new_engine(Settings(), with_engine(address="http://127.0.0.1:8391"))


def with_engine(**fields) -> Settings:
    return Settings(engine=EngineSettings(**fields))


def test_recording_is_off_unless_switched_on(wiring, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert not isinstance(started(wiring, tmp_path).recorder, Recorder)
    on = {"record": {"enabled": True, "directory": str(tmp_path / "recordings")}}
    session = started(wiring, tmp_path, **on)
    assert isinstance(session.recorder, Recorder)
    session.recorder.close()
