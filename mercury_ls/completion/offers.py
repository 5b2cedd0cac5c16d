"""What is offered to the user: edits that are accepted together, or the reason why there are none."""

from collections.abc import Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from mercury_engine.api import Slot
from mercury_ls.code.documents import CLOSED, Snapshot
from mercury_ls.code.edits import TextEdit, difference, rebase, shifted, widened
from mercury_ls.completion.judge import Evidence
from mercury_ls.wording import decoded

PLACE = "diagnostic"
"""The kind of an offer to go where something is broken: its edit leaves the text as it is."""


class Offer(Struct, frozen=True):
    """Edits of the texts in `base`, by the id that accepting them names.

    A next edit also has a `kind`, a `label` that says what it does, and a `note` on what it leaves undone. `evidence`
    is what a model's own offer is judged by, None if others had a part in it. `tokens` are those of the draft that it
    was made of.
    """

    edits: tuple[TextEdit, ...]
    p_accept: float
    base: Mapping[str, Snapshot]
    id: str = ""
    kind: str = ""
    label: str = ""
    note: str = ""
    tokens: int = 0
    evidence: Evidence | None = None

    @property
    def edit(self) -> TextEdit:
        """The only edit of an inline suggestion."""
        return self.edits[0]

    @property
    def is_cut(self) -> bool:
        """Whether it is only the likely beginning of what its model had to say."""
        return self.evidence is not None and not self.evidence.complete

    @property
    def characters(self) -> int:
        """How many characters the user would have to type for it, without those that are there already."""
        return sum(len(difference(self.old_text(edit), edit.text).text) for edit in self.edits)

    @property
    def is_place(self) -> bool:
        return self.kind == PLACE

    def old_text(self, edit: TextEdit) -> str:
        return self.base[edit.uri].text[edit.start : edit.end]

    def version(self, uri: str) -> int | None:
        """None for a file that is not open: its text is the one on the disk."""
        version = self.base[uri].version
        return None if version == CLOSED else version

    def on(self, snapshots: Mapping[str, Snapshot], cursor: int | None = None) -> "Offer | None":
        """The same offer in these texts, without the edits that have been made; None if a text conflicts with it.

        With a `cursor` it is what is left of an inline suggestion that the user is typing.
        """
        edits: list[TextEdit] = []
        for uri, before in self.base.items():
            mine = [edit for edit in self.edits if edit.uri == uri]
            carried = shifted if self.is_place else partial(rebase, cursor=cursor)
            remaining = carried(mine, before.text, snapshots[uri].text) if uri in snapshots else None
            if remaining is None:
                return None
            edits += remaining
        return replace(self, edits=tuple(edits), base={uri: snapshots[uri] for uri in self.base})

    def makes(self, uri: str, before: str, change: TextEdit) -> bool:
        """Whether a change of this document is one of the edits, wherever that stands by now."""
        mine = [edit for edit in self.edits if edit.uri == uri]
        widened_edit = mine and widened(before, change)
        return any(widened_edit == widened(self.base[uri].text, edit) for edit in mine)


class Answer(Struct, frozen=True):
    """Offers, best first; or none, and why. `draft` is the raw text of `tokens` tokens that they were made from, `sent`
    says what went to another program for it, `slots` are the draft's, for those who watch it. While there is no draft,
    so many tokens of the prompt are `unread`, where that is known. `unshown` is what a model proposed as well, and what
    follows says whether that was right; `evidence` is what was known of the draft."""

    offers: tuple[Offer, ...] = ()
    silence: str = ""
    source: str = "model"
    step: int = 0
    draft: str = ""
    tokens: int = 0
    final: bool = False
    sent: str = ""
    slots: tuple[Slot, ...] = ()
    unshown: Offer | None = None
    evidence: Evidence | None = None
    unread: int = 0

    @property
    def offer(self) -> Offer | None:
        """The best one."""
        return self.offers[0] if self.offers else None

    @property
    def edits(self) -> tuple[TextEdit, ...]:
        return self.offers[0].edits if self.offers else ()


def with_sent(reason: str, answer: Answer) -> str:
    """A reason for those who ask why, who also want to know what left this process."""
    return f"{reason}; sent {answer.sent}" if answer.sent else reason


def described(offer: Offer, uri: str) -> str:
    return f"{offer.label} ({summary(offer.edits, uri)})"


def summary(edits: Sequence[TextEdit], uri: str) -> str:
    """Where the edits are, as seen from one document: "5 here, 4 in models.py", "2 here, 9 in 3 other files".
    A file of the same name is told by its folder: "1 here, 1 in shop/__init__.py"."""
    edits_in_file = sum(edit.uri == uri for edit in edits)
    other_uris = sorted({edit.uri for edit in edits} - {uri})
    places = [f"{edits_in_file} here"] if edits_in_file else []
    if len(other_uris) == 1:
        parts = decoded(other_uris[0]).rstrip("/").split("/")
        is_homonym = decoded(uri).endswith(f"/{parts[-1]}")
        name = "/".join(parts[-2:] if is_homonym else parts[-1:]) or other_uris[0]
        places.append(f"{len(edits) - edits_in_file} in {name}")
    elif other_uris:
        places.append(f"{len(edits) - edits_in_file} in {len(other_uris)} {'other ' if edits_in_file else ''}files")
    return ", ".join(places)
