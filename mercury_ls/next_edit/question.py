"""What is known when a next edit is asked for."""

from collections.abc import Mapping

from msgspec import field
from msgspec.structs import asdict

from mercury_engine.api import Edit
from mercury_ls.code.diagnostics import FileDiagnostic
from mercury_ls.code.documents import Snapshot
from mercury_ls.code.edits import TextEdit
from mercury_ls.code.modules import Project
from mercury_ls.completion.suggest import Question
from mercury_ls.next_edit.candidates import Candidate
from mercury_ls.next_edit.cost import Cost
from mercury_ls.next_edit.situation import Situation


class NextQuestion(Question, frozen=True, kw_only=True):
    """`neighbours` are the files besides the current one that may be edited as well: open ones, and those of the
    workspace that have been read for it; `diagnostics` are of the current one, `broken` the errors that came with the
    last edits, by the file. A client that `shows_places` can go to one.

    What follows from the last `fresh` edits comes first: the user made them instead of accepting an offer. `refused`
    are edits of a next-edit model that the user rejected, as `widened` has them, since its answer stays the same while
    little else changes, and lines to which the user was led. A user who `is_typing` may be about to delete more. `cost`
    is what answering has taken. A user who `rests` has heard what follows by rule and has gone to another line:
    only this line is asked about.
    """

    neighbours: tuple[Snapshot, ...] = ()
    diagnostics: tuple[FileDiagnostic, ...] = ()
    broken: Mapping[str, tuple[FileDiagnostic, ...]] = {}
    shows_places: bool = False
    project: Project | None = None
    fresh: int = 0
    refused: frozenset[tuple[str, str, str]] = frozenset()
    is_typing: bool = True
    rests: bool = False
    cost: Cost = field(default_factory=Cost)

    @classmethod
    def of(cls, question: Question) -> "NextQuestion":
        """The question about a place, with nothing yet of what a next edit also depends on."""
        return cls(**asdict(question))

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The user's own, without what accepted offers did."""
        return self.history.edits(self.recent_edits, own=True)

    @property
    def is_for_a_rewriter(self) -> bool:
        """Whether a next-edit model has something to do: on request always, otherwise once any text has changed, unless
        it rewrites the cursor's line alone. Its silence can be trusted, also where rules have nothing to learn from."""
        return self.rewrites and (self.invoked or (self.history.mark > 0 and not self.rewrites_lines))

    @property
    def situation(self) -> Situation:
        return Situation(
            snapshot=self.snapshot,
            offset=self.offset,
            edits=self.edits,
            neighbours=self.neighbours,
            project=self.project,
            accepted=self.history.accepted(),
            may_delete_more=self.is_typing and self.history.has_deletion_at(self.snapshot.path, self.offset),
        )

    @property
    def files(self) -> dict[str, Snapshot]:
        return {snapshot.uri: snapshot for snapshot in (self.snapshot, *self.neighbours)}

    def diagnostics_of(self, snapshot: Snapshot) -> tuple[FileDiagnostic, ...]:
        """Those that are known of a file: none unless it is the current one."""
        return self.diagnostics if snapshot.uri == self.snapshot.uri else ()

    def bar_for(self, candidate: Candidate, fitted: float) -> float:
        """How likely an edit has to be; higher where it is likely that nothing is due. A model that chooses the lines
        itself has taken that into account."""
        if self.invoked:
            return min(self.bar, fitted)
        if candidate.kind == "region" and not self.rewrites_lines:
            return self.bar
        return max(self.bar, fitted / candidate.p_due)

    def is_reversal(self, uri: str, edit: Candidate | TextEdit) -> bool:
        """Whether the edit restores what the user has just changed."""
        file = self.files[uri]
        return self.history.reverses(file.path, file.text, edit.start, edit.end, edit.text or "")
