"""Sessions from VS Code workspace recordings, and from commits typed by a model.

python -m bench.replay.importers vscode RECORDING.json OUT.jsonl
python -m bench.replay.importers git REPOSITORY OUT [--name NAME] [--licence ID] [--limit N] [--since REVISION]
                              [--paths GLOB…]
"""

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from bench.replay.session import (
    Changed,
    Cursor,
    Event,
    Expected,
    Focused,
    Header,
    Marked,
    NamedDocument,
    Opened,
    RecordedSession,
    Saved,
    SessionError,
    check,
    ended,
    write,
)
from bench.replay.typing_model import Stroke, TypingModel, draw, kind_of, load
from mercury_ls.code import languages
from mercury_ls.code.documents import Document
from mercury_ls.code.edits import difference
from mercury_training.corpus.history import CommitHunk, hunks_between, in_plausible_order
from mercury_training.corpus.sources import blobs, git

UNIT = "utf-16"
MOST_FILES = 3
MOST_HUNKS = 16
MOST_TYPED = 1600
LONGEST_TAKEN_BACK = 24
"""In characters: shorter deletions are typed one by one; longer ones are selected and deleted at once."""


class Desk:
    """Documents that are edited at offsets, and the resulting events."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.documents: dict[int, Document] = {}
        self.now = 0

    def open(self, d: int, text: str, path: str = "") -> None:
        known = self.documents.get(d)
        version = known.version + 1 if known else 1
        self.documents[d] = Document(f"file:///{d}", path, "", version, text)
        self.events.append(Opened(t=self.now, d=d, ver=version, text=text))

    def change(self, d: int, edits: Sequence[tuple[int, int, str]], why: str = "unknown") -> None:
        """Edit the current text; the last edit in the text is sent first, so that none moves another."""
        document, sent = self.documents[d], []
        for start, end, text in sorted(edits, reverse=True):
            place = (*self.place(d, start), *self.place(d, end))
            document.apply([(place, text)], document.version + (not sent), UNIT)
            sent.append([*place, text])
        if sent:
            self.events.append(Changed(t=self.now, d=d, ver=document.version, c=sent, why=why))

    def place(self, d: int, offset: int) -> tuple[int, int]:
        return self.documents[d].snapshot().position(offset, UNIT)

    def select(self, d: int, spans: Sequence[tuple[int, int]]) -> None:
        found = [(*self.place(d, start), *self.place(d, end)) for start, end in spans]
        self.events.append(Cursor(t=self.now, d=d, sel=found))

    def text(self, d: int) -> str:
        return self.documents[d].text


# VS Code workspace recordings


def of_recording(recording: dict[str, Any], name: str) -> RecordedSession:
    """The log of a workspace recording; its offsets count UTF-16 units, and its order matters, not its times."""
    desk, named, stored, reasons = Desk(), {}, {}, _reasons_of(recording["log"])
    first = next((entry["time"] for entry in recording["log"] if "time" in entry), 0)
    for entry in recording["log"]:
        desk.now = max(desk.now, entry.get("time", first) - first)
        kind, d = entry["kind"], entry.get("id")
        if kind == "documentEncountered":
            named[d] = entry["relativePath"]
        elif kind == "storeContent":
            stored[entry["contentId"]] = desk.text(d)
        elif kind in ("setContent", "restoreContent"):
            _set_content(desk, d, entry["content"] if kind == "setContent" else stored[entry["contentId"]])
        elif d in desk.documents:
            _played(desk, entry, reasons)
    if following := recording.get("nextUserEdit"):
        _expect(desk, named, following)
    docs = [_document(d, path) for d, path in named.items() if d in desk.documents]
    return ended(Header(v=1, id=name, source="vscode", pos=UNIT, docs=docs), desk.events, name)


def _document(d: int, path: str) -> NamedDocument:
    path = path.replace("\\", "/")
    found = languages.find("", path)
    return NamedDocument(d, path, found.id if found else "plaintext")


def _reasons_of(log: Sequence[dict[str, Any]]) -> dict[tuple[int, int], str]:
    """The editor's reason for each change, by document and version."""
    return {
        (entry["id"], entry["data"].get("v", -1)): str(entry["data"].get("source", ""))
        for entry in log
        if entry["kind"] == "documentEvent" and entry["data"].get("sourceId") == "TextModel.setChangeReason"
    }


def _set_content(desk: Desk, d: int, text: str) -> None:
    """Set the content: the first one opens a document; a later one replaces it, as far as it differs."""
    if d not in desk.documents:
        return desk.open(d, text)
    made = difference(desk.text(d), text)
    if made.text or made.end > made.start:
        desk.change(d, [(made.start, made.end, made.text)])
    return None


def _played(desk: Desk, entry: dict[str, Any], reasons: dict[tuple[int, int], str]) -> None:
    d = entry["id"]
    if entry["kind"] == "changed":
        edits = [(*_offsets(desk, d, start, end), text) for start, end, text in entry["edit"]]
        desk.change(d, edits, _why_of(edits, reasons.get((d, entry.get("v", -1)), "")))
    elif entry["kind"] == "selectionChanged":
        desk.select(d, [_offsets(desk, d, *span) for span in entry["selection"]])
    elif entry["kind"] == "focused":
        desk.events.append(Focused(t=desk.now, d=d))


def _offsets(desk: Desk, d: int, *units: int) -> tuple[int, ...]:
    """Code points for UTF-16 units of a document."""
    text = desk.text(d)
    if text.isascii():
        return units
    encoded = text.encode("utf-16-le", "surrogatepass")
    return tuple(len(encoded[: 2 * unit].decode("utf-16-le", "replace")) for unit in units)


def _why_of(edits: Sequence[tuple[int, int, str]], reason: str) -> str:
    for word, why in (
        ("inlineCompletion", "accept"),
        ("inlineSuggest", "accept"),
        ("format", "format"),
        ("undo", "undo"),
        ("redo", "undo"),
    ):
        if word in reason:
            return why
    if len(edits) != 1:
        return "unknown"
    start, end, text = edits[0]
    if not text:
        return "delete"
    if text.lstrip("\r").startswith("\n") and not text.strip():
        return "newline"
    return "type" if len(text) <= 2 and start == end else "unknown"


def _expect(desk: Desk, named: dict[int, str], following: dict[str, Any]) -> None:
    d = next((d for d, path in named.items() if path == following["relativePath"]), None)
    if d not in desk.documents:
        return
    found = []
    for start, end, text in following["edit"]:
        first, last = _offsets(desk, d, start, end)
        found.append((*desk.place(d, first), *desk.place(d, last), text))
    desk.events.append(Expected(t=desk.now, d=d, edits=found))


# Commits, typed by a model


def commits(
    repository: Path, name: str, licence: str | None, since: str = "", globs: Sequence[str] = ("*",)
) -> Iterator[RecordedSession]:
    """A session for each small commit, oldest first, typed with pauses fitted to real ones."""
    span = [f"{since}..HEAD"] if since else ["HEAD"]
    listed = git(str(repository), "rev-list", "--reverse", "--no-merges", *span).decode().split()
    model = load()
    with blobs(str(repository)) as read:
        for commit in listed:
            names = git(str(repository), "diff-tree", "-r", "--no-commit-id", "--name-status", commit).decode()
            changed = [line.split("\t")[1] for line in names.splitlines() if line.startswith("M\t")]
            changed = [path for path in changed if any(PurePosixPath(path).match(glob) for glob in globs)]
            pairs = {path: (read(f"{commit}^:{path}"), read(f"{commit}:{path}")) for path in changed[: MOST_FILES + 1]}
            if session := of_commit(name, licence, commit, pairs, model):
                yield session


def of_commit(
    repository: str,
    licence: str | None,
    commit: str,
    blobs: dict[str, tuple[bytes | None, bytes | None]],
    model: TypingModel,
) -> RecordedSession | None:
    """The commit's edits in a plausible order, keystroke by keystroke; None if it is not small or not code."""
    files = {path: pair for path, pair in blobs.items() if languages.find("", path) and all(pair)}
    if not files or len(files) > MOST_FILES:
        return None
    texts = {path: tuple(blob.decode("utf-8", "replace") for blob in pair) for path, pair in files.items()}
    hunks = [hunk for path, pair in texts.items() for hunk in _hunks_of(path, *pair) or ()]
    typed = sum(len("".join(hunk.new)) for hunk in hunks)
    if not 0 < len(hunks) <= MOST_HUNKS or typed > MOST_TYPED:
        return None
    name = f"{repository}-{commit[:8]}"
    docs = [_document(d, path) for d, path in enumerate(texts)]
    where = {"id": name, "source": "git", "repo": repository, "commit": commit, "licence": licence}
    header = Header(v=1, pos=UNIT, timing="modelled", docs=docs, **where)
    typist = _Typist(model, random.Random(commit))
    typist.commit({path: before for path, (before, _) in texts.items()}, in_plausible_order(hunks))
    if any(typist.text(d) != texts[path][1] for d, path in enumerate(texts)):
        raise SessionError(f"{name}: typing its hunks does not make the commit: report this")
    return ended(header, typist.events, name)


def _hunks_of(path: str, before: str, after: str) -> list[CommitHunk] | None:
    return hunks_between(path, before.splitlines(keepends=True), after.splitlines(keepends=True))


class _Typist(Desk):
    """Types hunks of lines as a person would: goes there, deletes what differs, types the rest."""

    def __init__(self, model: TypingModel, chance: random.Random) -> None:
        super().__init__()
        self._model = model
        self._chance = chance
        self._last: tuple[int, Stroke] | None = None

    def commit(self, before: dict[str, str], hunks: Sequence[CommitHunk]) -> None:
        numbers = {path: d for d, path in enumerate(before)}
        for path, d in numbers.items():
            self.open(d, before[path], path)
        for n, hunk in enumerate(hunks):
            above = [done for done in hunks[:n] if done.path == hunk.path and done.first < hunk.first]
            line = hunk.first + sum(len(done.new) - len(done.old) for done in above)
            self._hunk(numbers[hunk.path], n, line, hunk)
        self._finish(sorted({numbers[hunk.path] for hunk in hunks}))

    def _finish(self, documents: Sequence[int]) -> None:
        self.now += self._pause("newline")
        self.events += [Saved(t=self.now, d=d) for d in documents]

    def _hunk(self, d: int, n: int, line: int, hunk: CommitHunk) -> None:
        if self._last is not None and self._last[0] != d:
            self.events.append(Focused(t=self.now, d=d))
        start = self.documents[d].snapshot().line_start(line) if line < self._lines(d) else len(self.text(d))
        place = (*self.place(d, start), *self.place(d, start + sum(map(len, hunk.old))))
        for piece_start, old, new in self._pieces(start, hunk):
            self._replace(d, piece_start, old, new)
        minus, plus = ("".join(f"{sign}{text}" for text in side) for sign, side in (("-", hunk.old), ("+", hunk.new)))
        diff = f"@@ -{hunk.first + 1},{len(hunk.old)} +{line + 1},{len(hunk.new)} @@\n{minus}{plus}"
        self.events.append(Marked(t=self.now, n=n, d=d, diff=diff, span=place, new="".join(hunk.new)))

    def _lines(self, d: int) -> int:
        return self.documents[d].snapshot().line_count

    def _pieces(self, start: int, hunk: CommitHunk) -> Iterator[tuple[int, str, str]]:
        """Line by line if the numbers of removed and added lines agree; otherwise all at once, without what stays at
        either end."""
        paired = len(hunk.old) == len(hunk.new)
        pairs = zip(hunk.old, hunk.new, strict=True) if paired else [("".join(hunk.old), "".join(hunk.new))]
        for old, new in pairs:
            made = difference(old, new)
            yield start + made.start, old[made.start : made.end], made.text
            start += len(new)

    def _replace(self, d: int, start: int, old: str, new: str) -> None:
        whole = "\n" in old or len(old) > LONGEST_TAKEN_BACK
        for size in [len(old)] if whole else [1] * len(old):
            old = old[: len(old) - size]
            self._stroke(d, start + len(old), size, "", "delete")
        for text in keystrokes(new):
            self._stroke(d, start, 0, text, "newline" if text.startswith("\n") else "type")
            start += len(text)

    def _stroke(self, d: int, start: int, removed: int, text: str, why: str) -> None:
        stroke = Stroke(start, removed, text, self.text(d)[start - 1 : start], start + len(text), why)
        last = self._last[1] if self._last and self._last[0] == d else None
        pause = self._pause(kind_of(stroke, last))
        if last is None or last.cursor != start + removed:
            self.now += pause // 2
            pause -= pause // 2
            self.select(d, [(start, start + removed)])
        self.now += pause
        self.change(d, [(start, start + removed, text)], why)
        self.select(d, [(stroke.cursor, stroke.cursor)])
        self._last = d, stroke

    def _pause(self, kind: str) -> int:
        return draw(self._model, kind, self._chance)


def keystrokes(text: str) -> Iterator[str]:
    """Characters; a line break brings the indentation of the next line along, as editors do."""
    at = 0
    while at < len(text):
        end = at + 1
        if text[at] == "\n":
            while end < len(text) and text[end] in " \t":
                end += 1
        yield text[at:end]
        at = end


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=["vscode", "git"])
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--limit", type=int, default=20, help="only this many small commits, newest first")
    parser.add_argument("--name", default="", help="the name of the repository")
    parser.add_argument("--licence", help="the repository's")
    parser.add_argument("--since", default="", help="only commits after this revision")
    parser.add_argument("--paths", nargs="+", default=["*"], help="only changes of files like these")
    given = parser.parse_args()
    for session, path in _sessions_of(given):
        check(session)
        write(session, path)
        sys.stdout.write(f"{path}\n")


def _sessions_of(given: argparse.Namespace) -> Iterator[tuple[RecordedSession, Path]]:
    if given.kind == "git":
        given.out.mkdir(parents=True, exist_ok=True)
        source = given.source.resolve()
        found = list(commits(source, given.name or source.name, given.licence, given.since, given.paths))[
            -given.limit :
        ]
        yield from ((session, given.out / f"{session.name}.jsonl") for session in found)
        return
    yield of_recording(msgspec.json.decode(given.source.read_bytes()), given.out.stem), given.out


if __name__ == "__main__":
    main()
