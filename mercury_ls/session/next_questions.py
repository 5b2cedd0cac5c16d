"""What is asked to find the next edit: the place, the files that may be edited as well, and what is known of them."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import PurePath

from msgspec.structs import replace

from mercury_engine.api import Edit
from mercury_ls.code.diagnostics import FileDiagnostic, Reports
from mercury_ls.code.differences import WORD
from mercury_ls.code.documents import Snapshot, closed_file
from mercury_ls.code.edits import widened
from mercury_ls.code.importers import IMPORTING, Importers
from mercury_ls.code.modules import Project, family
from mercury_ls.completion.budgets import LONGEST_DEADLINE_MS
from mercury_ls.completion.offers import Offer
from mercury_ls.completion.suggest import OPINION_MS
from mercury_ls.next_edit.broken import visited
from mercury_ls.next_edit.kinds.rename.unjudged import listed_places
from mercury_ls.next_edit.kinds.rename.uses import knows_imports
from mercury_ls.next_edit.places import path_from
from mercury_ls.next_edit.question import NextQuestion
from mercury_ls.next_edit.renamed import Sought, may_use, renamed_symbols, sought, sought_calls, sought_quotes
from mercury_ls.session.open_files import OpenFiles
from mercury_ls.session.questions import Questions
from mercury_ls.session.requests import ANYONE, Asker, NextEditRequest
from mercury_ls.wording import counted

MOST_CLOSED = 4
"""Files that are not open and mention what was edited, where nothing tells which of them use it."""
MOST_REFUSED = 64
ONLY_OPEN = "only open files are looked at: no project folder (.git, pyproject.toml …)"
FIXTURES = "conftest.py"
"""What it declares, tests are given without an import."""
FOLDER_MODULES = frozenset({"__init__", "index", "mod"})
"""Files that import statements name by their folder."""
MOST_USING = 256
"""Files that are not open and may use what was renamed, or call the function whose parameters were edited."""
MOST_QUOTING = 48
"""Files that are not open and have words of a message."""
MOST_WITH_MEMBERS = 48
"""Further ones that have the name of a member, but not that of its type."""


class NextQuestions:
    """Owns what a question about the next edit depends on besides the files: what the client says of itself and of its
    documents, and which edits its user has refused."""

    def __init__(self, files: OpenFiles, questions: Questions):
        self._files = files
        self._questions = questions
        self._refused: deque[tuple[str, str, str]] = deque(maxlen=MOST_REFUSED)
        self._askers: dict[str, Asker] = {}
        self._diagnosed: dict[str, tuple[int, tuple[FileDiagnostic, ...]]] = {}
        self._reports: dict[str, Reports] = {}

    def asker(self, uri: str, default: Asker = ANYONE) -> Asker:
        """What the client last said of itself in this document, for requests that do not say it."""
        return self._askers.get(uri, default)

    def asked_by(self, asker: Asker, uri: str) -> None:
        self._askers = {u: last for u, last in self._askers.items() if u in self._files.documents} | {uri: asker}

    def diagnosed(self, uri: str, version: int, diagnostics: tuple[FileDiagnostic, ...]) -> None:
        """What the editor's language servers say about this version of a document."""
        self._diagnosed = {u: reported for u, reported in self._diagnosed.items() if u in self._files.documents}
        self._diagnosed[uri] = version, diagnostics

    def reported(self, snapshot: Snapshot, diagnostics: tuple[FileDiagnostic, ...]) -> bool:
        """All that they say about a document; returns whether other errors came with the last edits than were known."""
        self.diagnosed(snapshot.uri, snapshot.version, diagnostics)
        self._reports = {uri: reports for uri, reports in self._reports.items() if uri in self._files.documents}
        reports = self._reports.setdefault(snapshot.uri, Reports())
        before = reports.new
        reports.take(snapshot, diagnostics, self._files.history.mark)
        return before != reports.new

    def visited(self, offer: Offer) -> None:
        """The user has been led to a place, or does not want to be."""
        for edit in offer.edits if offer.is_place else ():
            self._refused.append(visited(offer.base[edit.uri], edit))
            if edit.uri in self._reports:
                self._reports[edit.uri].forget(offer.base[edit.uri], edit.start)

    def _broken(self) -> dict[str, tuple[FileDiagnostic, ...]]:
        """The errors that came with the last edits."""
        documents, since = self._files.documents, self._files.history.since
        fresh = {
            uri: reports.fresh(documents[uri].snapshot(), since)
            for uri, reports in self._reports.items()
            if uri in documents
        }
        return {uri: errors for uri, errors in fresh.items() if errors}

    def refuse(self, offer: Offer) -> None:
        """What a model proposed is not to be proposed again: its answer stays the same while little else changes."""
        if offer.evidence:
            self._refused += [(edit.uri, *widened(offer.base[edit.uri].text, edit)) for edit in offer.edits]

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The user's own."""
        return self._files.history.edits(self._questions.settings.context.recent_edits, own=True)

    @property
    def leads_elsewhere(self) -> bool:
        """Whether other files may know what the edits changed."""
        edits = self.edits
        homes = {document.path: document.snapshot() for document in self._files.documents.values()}
        took_names = bool(edits) and not {*WORD.findall(edits[-1].before)} <= {*WORD.findall(edits[-1].after)}
        return took_names or bool(sought(edits, homes) or sought_calls(edits, homes))

    def about(self, request: NextEditRequest, fresh: int = 0) -> tuple[NextQuestion, str]:
        """The question, and what a rename would leave undone. What follows from the last `fresh` edits comes first."""
        snapshot, workspace = self._files.documents[request.uri].snapshot(), self._files.workspace
        importers = cache(self._importers)
        broken = self._broken()
        neighbours, note = self._others(snapshot, request.asker, importers)
        near = {snapshot.uri, *(file.uri for file in neighbours)}
        neighbours += tuple(self._files.documents[uri].snapshot() for uri in broken if uri not in near)
        version, diagnostics = self._diagnosed.get(request.uri, (snapshot.version, ()))
        question = self._questions.about(snapshot, request.offset, invoked=request.invoked)
        next_question = replace(
            NextQuestion.of(question),
            judge=self._questions.judge("nextEdit"),
            deadline_ms=self._deadline_ms(request),
            refused=frozenset(self._refused),
            fresh=fresh,
            is_typing=request.asker.is_typing,
            neighbours=neighbours,
            project=Project((), workspace.read, workspace.exists, self._where, importers, workspace.tried),
            diagnostics=diagnostics if version == snapshot.version else (),
            broken=broken,
            shows_places=request.asker.places,
            rests=request.rests,
        )
        return next_question, note

    def _deadline_ms(self, request: NextEditRequest) -> float:
        """A rewrite is of use as long as the text stays as it is: only the user's own limit ends it early."""
        info = self._questions.engine.status.info
        is_rewritten = info is not None and info.rewrites
        if info is not None and info.rewrites_lines:
            is_rewritten = request.invoked or request.rests
        usual = LONGEST_DEADLINE_MS if is_rewritten else OPINION_MS
        return self._questions.settings.engine.deadline_ms or usual

    def _where(self, name: str, near: str) -> list[str] | None:
        """The files in which a name occurs, if all are known."""
        workspace = self._files.workspace
        return None if workspace.gap() else workspace.index.mentioning([frozenset({name})], near)

    def _importers(self) -> Importers:
        """Which files import which, with what is written in open ones."""
        importers = self._files.workspace.importers.copy()
        for document in self._files.documents.values():
            importers.keep(document.path, document.text)
        return importers

    def _others(
        self, snapshot: Snapshot, asker: Asker, importers: Callable[[], Importers]
    ) -> tuple[tuple[Snapshot, ...], str]:
        """The other open files, closed ones that mention what was just changed, and what is left in others."""
        edits = self.edits
        neighbours = self._neighbours(snapshot, edits)
        homes = {file.path: file for file in (snapshot, *neighbours)}
        renamed, called, quoted = sought(edits, homes), sought_calls(edits, homes), sought_quotes(edits)
        known = frozenset(name for symbol in (*renamed, *called) for name in symbol.names)
        used = [Sought(frozenset({name}), edits[-1].path) for name in renamed_symbols(edits) if name not in known]
        near = {file.uri for file in (snapshot, *neighbours)}
        open_files = (*neighbours, *self._open_mentioning([*renamed, *called, *quoted], near))
        knows = knows_imports(snapshot)
        paths, paths_of_calls = (self._closed_paths(symbols, snapshot, importers) for symbols in (renamed, called))
        most = MOST_USING if knows else MOST_CLOSED
        notes = [self._left_by_a_rename(snapshot, paths, asker)] if renamed else []
        notes += [self._left_in_closed(snapshot, paths_of_calls, asker, most)] if called else []
        notes += [self._left_undecoded((*renamed, *called), snapshot)]
        closed = dict.fromkeys(self._read([] if asker.renamer or not knows else paths[:MOST_USING], renamed))
        closed |= dict.fromkeys(self._read(paths_of_calls[:most], called))
        members = [*([] if asker.renamer else renamed), *called] if knows else []
        closed |= dict.fromkeys(self._with_members(members, snapshot, {*paths, *paths_of_calls}, importers))
        closed |= dict.fromkeys(self._quoting(quoted, snapshot))
        closed |= dict.fromkeys(self._read(self._closed_paths(used, snapshot, importers)[:MOST_CLOSED], used))
        return (*open_files, *(closed if asker.closed else ())), "; ".join(dict.fromkeys(filter(None, notes)))

    def _neighbours(self, snapshot: Snapshot, edits: Iterable[Edit]) -> list[Snapshot]:
        """The open documents used last, and those of the user's last edits: what is learned from an edit depends on
        its file."""
        documents = self._files.documents
        recent = [neighbour for neighbour in self._files.neighbours(snapshot.uri) if neighbour.uri in documents]
        edited_paths = {edit.path for edit in edits} - {file.path for file in (snapshot, *recent)}
        return [*recent, *(document.snapshot() for document in documents.values() if document.path in edited_paths)]

    def _open_mentioning(self, symbols: Sequence[Sought], but: set[str]) -> Iterator[Snapshot]:
        """The open documents that may use one of these symbols by their text."""
        for uri, document in self._files.documents.items():
            if uri not in but and _may_use_any(document.text, symbols):
                yield document.snapshot()

    def _closed_paths(self, symbols: Sequence[Sought], near: Snapshot, importers: Callable[[], Importers]) -> list[str]:
        """Those that mention the file of a symbol as well come first: they may import it. Where files need an import to
        use it, those without one come last, and are left out if the whole project is known."""
        closed = self._closed_mentioning(symbols, near.path)
        needs_import = family(near.path) in IMPORTING and not any(symbol.member for symbol in symbols)
        if not closed or not needs_import:
            return closed
        paths = {symbol.path for symbol in symbols}
        seeing = frozenset[str]().union(*map(importers().seeing, paths))
        is_fixture = FIXTURES in {PurePath(path).name for path in paths}
        if self._files.workspace.gap() or is_fixture:
            return sorted(closed, key=lambda path: path not in seeing)
        return [path for path in closed if path in seeing]

    def _closed_mentioning(self, symbols: Sequence[Sought], near: str) -> list[str]:
        mentioning, names = self._files.workspace.index.mentioning, [symbol.names for symbol in symbols]
        importing = [symbol.names | {_module(symbol.path)} for symbol in symbols]
        open_paths = {document.path for document in self._files.documents.values()}
        paths = dict.fromkeys((*mentioning(importing, near), *mentioning(names, near)))
        return [path for path in paths if path not in open_paths]

    def _read(self, paths: Iterable[str], symbols: Sequence[Sought]) -> Iterator[Snapshot]:
        """Those of the closed files that may use one of these symbols by their text."""
        for path in paths:
            if (text := self._files.workspace.text(path)) and _may_use_any(text, symbols):
                yield closed_file(path, text, self._files.workspace.tried)

    def _quoting(self, messages: Sequence[Sought], near: Snapshot) -> Iterator[Snapshot]:
        """Closed files in any language that may quote one of these messages: tests, documentation."""
        open_paths = {document.path for document in self._files.documents.values()}
        paths = self._files.workspace.index.quoting([message.names for message in messages], near.path)
        closed = [path for path in paths if path not in open_paths][:MOST_QUOTING]
        return filter(None, map(self._files.workspace.closed, closed))

    def _with_members(
        self, symbols: Sequence[Sought], near: Snapshot, but: set[str], importers: Callable[[], Importers]
    ) -> Iterator[Snapshot]:
        named = [replace(symbol, names=frozenset({symbol.member})) for symbol in symbols if symbol.member]
        if named:
            further = [path for path in self._closed_paths(named, near, importers) if path not in but]
            yield from self._read(further[:MOST_WITH_MEMBERS], named)

    def _left_by_a_rename(self, snapshot: Snapshot, paths: Sequence[str], asker: Asker) -> str:
        """An offer of only a part of a rename says so. `paths` are closed files that may use the name."""
        gap = self._files.workspace.gap()
        if asker.renamer and (paths or gap):
            return f"undo and use the rename of {asker.renamer}, which reaches the whole project"
        if paths and asker.closed and not knows_imports(snapshot):
            return f"{counted(len(paths), 'file')} may use this name too: imports in this language are not understood"
        return self._left_in_closed(snapshot, paths, asker, MOST_USING)

    def _left_in_closed(self, snapshot: Snapshot, paths: Sequence[str], asker: Asker, most: int) -> str:
        """An offer says if not all of these closed files are searched, only the first `most`, or if there may be
        others."""
        if paths and not asker.closed:
            return f"{counted(len(paths), 'closed file')} may use this name too"
        if len(paths) > most:
            return f"{counted(len(paths) - most, 'more file')} may use this name"
        if gap := self._files.workspace.gap():
            return f"more files may use this name: {gap}"
        return "" if self._files.workspace.covers(snapshot.path) else ONLY_OPEN

    def _left_undecoded(self, symbols: Sequence[Sought], near: Snapshot) -> str:
        """Closed files are read as UTF-8 alone; an open one is as its editor has read it."""
        open_paths = {document.path for document in self._files.documents.values()}
        paths = self._files.workspace.index.undecoded((symbol.names for symbol in symbols), near.path)
        names = [path_from(near, path) for path in paths if path not in open_paths]
        is_not = "is not" if len(names) == 1 else "are not"
        listed = listed_places(names)
        return f"{counted(len(names), 'file')} that {is_not} UTF-8 may use this name: {listed}" if names else ""


def _module(path: str) -> str:
    """The word by which most import statements name the file."""
    file = PurePath(path)
    return file.parent.name if file.stem in FOLDER_MODULES or file.suffix == ".go" else file.stem


def _may_use_any(text: str, symbols: Sequence[Sought]) -> bool:
    return any(may_use(text, symbol) for symbol in symbols)
