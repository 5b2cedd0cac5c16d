"""What the last edit leaves where no rule knows what to write: uses of a name that went, lists that lack a name which
came, and values that changed and are told or expected elsewhere. The user is led there.

    left = yield from undone(situation, project)      # Left("`os` is still used: main.py:4", …)
"""

from collections.abc import Generator
from itertools import chain

from mercury_ls.code.modules import Project
from mercury_ls.next_edit.kinds.rename.unjudged import listed_places
from mercury_ls.next_edit.places import Left, named_from
from mercury_ls.next_edit.rule import in_label
from mercury_ls.next_edit.situation import Situation
from mercury_ls.next_edit.undone import gone, lists, values

MOST_PLACES = 32


def undone(situation: Situation, project: Project) -> Generator[None, None, Left]:
    """Nothing where the last edit is not in the text as it was made."""
    edit = situation.edits[-1]
    home = next((file for file in situation.files if file.path == edit.path), None)
    if home is None or home.tree is None or edit.line >= home.line_count:
        return Left("")
    if not home.text.startswith(edit.after, home.line_start(edit.line)):
        return Left("")
    still_used = {
        f"{in_label(name)} is still used": places for name, places in (yield from gone.uses(edit, home, project))
    }
    reasons = chain(still_used.items(), lists.lacking(edit, home, situation.files), values.told(edit, home, project))
    notes, places = list[str](), list[gone.Place]()
    for reason, places_left in reasons:
        notes.append(f"{reason}: {listed_places(named_from(home, *place) for place in places_left)}")
        places += places_left
        yield
    return Left("; ".join(notes), tuple(places[:MOST_PLACES]))
