"""Recordings: true to every position, and without the user's secrets, however they are typed."""

import hashlib
import json

import pytest

from mercury_ls.code.documents import Document
from mercury_ls.code.edits import TextEdit
from mercury_ls.completion.offers import Answer, Offer
from mercury_ls.session.record import FORMAT, Recorder


class Session:
    """One document being typed into while it is recorded."""

    def __init__(self, folder, text: str = "", max_mb: float = 1.0):
        self.folder = folder
        self.recorder = Recorder(folder, max_mb, "/project", clock=lambda: 0.0)
        self.document = Document("file:///a.py", "/a.py", "python", 1, text)
        self.recorder.opened(self.document)

    def change(self, where, text: str) -> None:
        version = self.document.version + 1
        self.recorder.changed(self.document, version, [(where, text)], "utf-16")
        self.document.apply([(where, text)], version, "utf-16")

    def type(self, line: int, column: int, text: str) -> None:
        for number, character in enumerate(text):
            self.change((line, column + number) * 2, character)

    def file(self) -> str:
        (path,) = self.folder.glob("*.jsonl")
        return path.read_text(encoding="utf-8")

    def events(self) -> list[dict]:
        self.recorder.close()
        return [json.loads(line) for line in self.file().splitlines()]


@pytest.mark.parametrize("secret", ["hunter2hunter2", "correct-horse-battery"])
def test_password_typed_key_by_key_is_stars(tmp_path, secret):
    session = Session(tmp_path)
    session.type(0, 0, f'password = "{secret}"')
    typed = "".join(e["c"][0][-1] for e in session.events() if e["ev"] == "change")
    assert typed == 'password = "' + "*" * len(secret) + '"'


def test_token_is_stars_even_before_it_could_be_recognised(tmp_path):
    session = Session(tmp_path)
    session.type(0, 0, "key = 'ghp_0123456789abcdefghijklmnop'")
    assert "ghp_0123" not in session.file()
    typed = "".join(e["c"][0][-1] for e in session.events() if e["ev"] == "change")
    assert "0123456789" not in typed
    assert typed.startswith("key = '")


@pytest.mark.parametrize(
    ("text", "proposed", "recorded"),
    [
        ('other_password = "', 'hunter22xyz"', '***********"'),
        ('password = "hunter22xyz"\nprint("', 'hunter22xyz")', '***********")'),
        ('password = "hunter22xyz"\nprint("', 'hunter")', 'hunter")'),
        ("", 'password = "hunter22xyz"', 'password = "***********"'),
    ],
)
def test_proposal_is_masked_by_what_it_stands_behind(tmp_path, text, proposed, recorded):
    session = Session(tmp_path, text)
    edit = TextEdit(len(text), len(text), proposed)
    answer = Answer((Offer((edit,), 0.9, {}, id="one"),))
    session.recorder.answered(session.document.uri, len(text), answer, 3.0, invoked=False)
    (told,) = (event for event in session.events() if event["ev"] == "answer")
    assert [item["text"] for item in told["items"]] == [recorded]


def test_harmless_text_is_recorded_as_it_was(tmp_path):
    session = Session(tmp_path, "x = 1\n")
    session.type(1, 0, "y = x + 1")
    session.change((0, 4, 0, 5), "22")
    events = session.events()
    assert [e["ev"] for e in events] == ["header", "open", *["change"] * 10, "end"]
    assert events[0]["format"] == FORMAT
    assert events[1]["text"] == "x = 1\n"
    assert events[-2]["c"] == [[0, 4, 0, 5, "22"]]


def test_digest_is_of_what_replay_comes_to(tmp_path):
    session = Session(tmp_path, 'password = "opensesame99"\nx = 😀1\n')
    session.type(1, 7, "2")
    session.change((0, 0, 1, 0), "")
    session.change(None, 'secret = "swordfish77"\n')
    events = session.events()
    replayed = Document("", "", "", 0, events[1]["text"])
    for event in events:
        for *where, text in event.get("c", []):
            replayed.apply([(tuple(where) or None, text)], event["ver"], event["pos"])
    assert events[-1]["sha256"] == {"0": hashlib.sha256(replayed.text.encode()).hexdigest()}
    assert "swordfish" not in replayed.text
    assert "opensesame" not in session.file()


def test_files_are_for_the_user_alone_and_old_ones_go(tmp_path):
    for _ in range(3):
        session = Session(tmp_path, "x = 1\n" * 100_000, max_mb=1.0)
        session.recorder.close()
    files = list(tmp_path.glob("*.jsonl"))
    assert sum(file.stat().st_size for file in files[:-1]) <= 1 << 20
    assert all(file.stat().st_mode & 0o077 == 0 for file in files)


def test_session_that_outgrows_its_room_ends_only_recording(tmp_path, caplog):
    session = Session(tmp_path, max_mb=0.01)
    session.change(None, "x = 1\n" * 10_000)
    session.change(None, "y = 1\n")
    session.recorder.close()
    assert "recording ends" in caplog.text
    assert len(session.file()) <= 11_000


def test_unwritable_folder_is_reported_and_survived(tmp_path, caplog):
    blocked = tmp_path / "file"
    blocked.write_text("")
    recorder = Recorder(blocked / "recordings", 1.0, "/project")
    recorder.opened(Document("file:///a.py", "/a.py", "python", 1, "x"))
    recorder.close()
    assert "record.directory" in caplog.text
