"""Where the user is led because the last edits have broken something, or left it, and nobody knows what to write.

broken = candidates(question)      # new errors that other language servers report, the nearest first: for a model, too
answer = leading_there(question, broken, answer)
answer = leading_to_left(question, undone, answer)      # what a rename or other parameters leave
"""

from collections.abc import Iterator, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from mercury_ls.code.documents import Snapshot, closed_file
from mercury_ls.code.edits import TextEdit, is_word
from mercury_ls.completion.offers import PLACE, Answer, Offer
from mercury_ls.next_edit.candidates import SURE, Candidate, lines_of
from mercury_ls.next_edit.places import Left
from mercury_ls.next_edit.question import NextQuestion
from mercury_ls.next_edit.situation import edited_lines

LESS_LIKELY = 0.001
"""By how much each place is less likely than the one before."""
LABEL, LEFT = "new error", "look here"
MOST_BROKEN = 16


class _Broken(Struct, frozen=True):
    snapshot: Snapshot
    start: int
    end: int

    @property
    def line(self) -> int:
        return self.snapshot.line_of(self.start)

    @property
    def text(self) -> str:
        return self.snapshot.text[self.start : self.end]


def candidates(question: NextQuestion) -> list[Candidate]:
    """One for each line, but for those that the user has edited and that of the cursor."""
    broken = _broken(question)
    if not broken or _is_writing(question) or _is_unfinished(question, broken):
        return []
    elsewhere = filter(partial(_is_elsewhere, question), reversed(broken))
    first_of_lines = {(place.snapshot.uri, place.line): place for place in elsewhere}
    ordered = _ordered(question, [*first_of_lines.values()])
    return [_candidate(place, number) for number, place in enumerate(ordered)]


def _broken(question: NextQuestion) -> list[_Broken]:
    errors = ((question.files[uri], error) for uri, errors in question.broken.items() for error in errors)
    return [_Broken(file, error.start, error.end) for file, error in errors]


def leading_there(question: NextQuestion, broken: Sequence[Candidate], answer: Answer) -> Answer:
    """The answer, or the first of the places if there is nothing to offer and the client can go there."""
    if answer.offer or not broken or not question.shows_places:
        return answer
    place = _Broken(question.files[broken[0].uri], broken[0].start, broken[0].end)
    return replace(answer, offers=(_offer_to_go_to(place, LABEL),))


def leading_to_left(question: NextQuestion, undone: Left, answer: Answer) -> Answer:
    """The same for the places that a note names, as far as the user has not been there."""
    if not question.shows_places or _is_writing(question):
        return answer
    words = (_Broken(_in_editor(file), at, _word_end(file.text, at)) for file, at in undone.places)
    places = [place for place in words if _is_worth_going_to(question, place)]
    leads = tuple(_offer_to_go_to(place, LEFT, undone.note) for place in _ordered(question, places))
    return replace(answer, offers=leads[:1])


def _in_editor(file: Snapshot) -> Snapshot:
    """The file as an editor knows it: one that was read for its names alone has no address."""
    return file if file.uri else closed_file(file.path, file.text)


def _is_worth_going_to(question: NextQuestion, place: _Broken) -> bool:
    is_new = _key(place) not in question.refused
    return is_new and _is_elsewhere(question, place)


def visited(snapshot: Snapshot, place: TextEdit) -> tuple[str, str, str]:
    """How the place of such an offer is remembered."""
    return _key(_Broken(snapshot, place.start, place.end))


def _key(place: _Broken) -> tuple[str, str, str]:
    line = place.snapshot.line(place.line)
    return place.snapshot.uri, line, line


def _offer_to_go_to(place: _Broken, label: str, note: str = "") -> Offer:
    uri, base = place.snapshot.uri, {place.snapshot.uri: place.snapshot}
    return Offer((TextEdit(place.start, place.end, place.text, uri),), SURE, base, kind=PLACE, label=label, note=note)


def _word_end(text: str, start: int) -> int:
    return next((at for at in range(start, len(text)) if not is_word(text[at])), len(text))


def _is_writing(question: NextQuestion) -> bool:
    """Whether the user may be in the middle of a word of the last edit."""
    snapshot, offset = question.snapshot, question.offset
    if not question.is_typing or snapshot.line_of(offset) not in _edited(question, snapshot, newest=True):
        return False
    return is_word(snapshot.text[offset - 1 : offset])


def _is_unfinished(question: NextQuestion, broken: Sequence[_Broken]) -> bool:
    """Whether the last edit is itself at fault: what it breaks elsewhere may not stay."""
    return any(place.line in _edited(question, place.snapshot, newest=True) for place in broken)


def _is_elsewhere(question: NextQuestion, place: _Broken) -> bool:
    at_cursor = place.snapshot.uri == question.snapshot.uri and place.line == question.snapshot.line_of(question.offset)
    return not at_cursor and place.line not in _edited(question, place.snapshot)


def _edited(question: NextQuestion, snapshot: Snapshot, *, newest: bool = False) -> set[int]:
    """The lines that the last edits left in a file."""
    ranges = [(start, end) for age, (start, end) in edited_lines(snapshot, question.edits) if not (newest and age)]
    return {line for start, end in ranges for line in lines_of(snapshot, start, end)}


def _ordered(question: NextQuestion, places: Sequence[_Broken]) -> Iterator[_Broken]:
    """Those in the user's file first, the nearest before others."""
    here, uri = question.snapshot.line_of(question.offset), question.snapshot.uri

    def distance(place: _Broken) -> tuple[bool, str, int]:
        is_here = place.snapshot.uri == uri
        return not is_here, "" if is_here else place.snapshot.uri, abs(place.line - here) if is_here else place.line

    return iter(sorted(places, key=distance)[:MOST_BROKEN])


def _candidate(place: _Broken, number: int) -> Candidate:
    end = min(place.end, place.snapshot.line_end(place.line))
    return Candidate(
        uri=place.snapshot.uri,
        start=place.start,
        end=max(end, place.start),
        text=None,
        kind=PLACE,
        rule=None,
        features={},
        p_edit=SURE - number * LESS_LIKELY,
    )
