"""Names that exist may follow where an answer reaches a place for one, and nowhere else."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mercury_engine.api import Members
from mercury_engine.decode.names import KnownNames
from tests.engine.tiny import TOKENIZER

SHAPE = Members("self", ("width", "height", "with_name"), (0, 0, 0))
HERE = Members("", ("width", "height", "with_name"), (0, 0, 0))


def check(head, said, following, known, expected):
    """The names at `following`, after an answer to `head` has begun with what is `said`."""
    _, part = TOKENIZER.split_part(head)
    said = part + said if said else ""
    left = "" if said else part
    names = KnownNames(TOKENIZER, known, head, part)
    found = names.candidates(said.encode(), left.encode(), TOKENIZER.encode(following)[0])
    assert [TOKENIZER.decode(candidate.path) for candidate in found] == expected


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("return self.", [".width", ".height", ".with_name"]),
        ("return self.wi", [".width", ".with_name"]),
        ("return f(x).", [").width", ").height", ").with_name"]),
        ("return self.nothing", []),
    ],
)
def test_at_the_cursor_names_go_on_with_what_is_typed(head, expected):
    check(head, "", ".", [HERE], expected)


def test_typed_text_may_be_part_of_the_name():
    check("return self.with_", "", "_", [HERE], ["_name"])


@pytest.mark.parametrize(
    ("said", "following", "expected"),
    [
        ("self", ".width", [".width", ".height", ".with_name"]),
        ("f(self", ".width", [".width", ".height", ".with_name"]),
        ("self.", "wi", ["width", "height", "with_name"]),
        ("self.wi", "dth", []),
        ("self", "(", []),
        ("myself", ".width", []),
        ("other.self", ".width", []),
        ("'self", ".width", []),
        ("x  # self", ".width", []),
        ("other", ".width", []),
    ],
)
def test_answer_reaches_member_behind_known_receiver(said, following, expected):
    check("return ", said, following, [SHAPE], expected)


SCOPE = Members("", ("total", "items"), (0, 0), role="scope")


@pytest.mark.parametrize(
    ("head", "said", "following", "expected"),
    [
        ("x = ", "", " total", [" total", " items"]),
        ("x = to", "", " total", [" total"]),
        ("x = ", "len(", "total", ["total", "items"]),
        ("x = ", "count +", " total", [" total", " items"]),
        ("x = ", "count +", " other", []),
        ("x = ", "", " other", []),
        ("x = ", "self", ".total", []),
        ("def f(a):\n    x = ", "f(a)\n    return", " total", [" total", " items"]),
        ("", "def", " total", []),
        ("", "x = 'a +", " total", []),
    ],
)
def test_names_in_scope_may_begin_an_expression_beside_others(head, said, following, expected):
    check(head, said, following, [SCOPE], expected)


KEYWORDS = Members("draw", ("width", "height"), (0, 0), role="keyword")
HERE_TOO = Members("", ("width", "height"), (0, 0), role="keyword")


@pytest.mark.parametrize(
    ("head", "said", "following", "known", "expected"),
    [
        ("x = ", "draw(", "width", KEYWORDS, ["width=", "height="]),
        ("x = ", "draw(1,", " width", KEYWORDS, [" width=", " height="]),
        ("x = ", "paint(1,", " width", KEYWORDS, []),
        ("x = ", "draw(1,", " other", KEYWORDS, []),
        ("draw(1, ", "", " width", HERE_TOO, [" width=", " height="]),
        ("draw(1, he", "", " height", HERE_TOO, [" height="]),
        ("draw(", "1,", " width", HERE_TOO, [" width=", " height="]),
        ("draw(", "f(1,", " width", HERE_TOO, []),
    ],
)
def test_argument_may_be_named_beside_others(head, said, following, known, expected):
    check(head, said, following, [known], expected)


@pytest.mark.parametrize(
    ("head", "said", "following", "known", "expected"),
    [
        ("from math import ", "", " name", Members("", ("cos", "tan"), (0, 0), role="import"), [" cos", " tan"]),
        ("from ", "math import", " name", Members("math", ("cos", "tan"), (0, 0), role="import"), [" cos", " tan"]),
        ("from ", "cmath import", " name", Members("math", ("cos", "tan"), (0, 0), role="import"), []),
    ],
)
def test_imports_are_limited_to_existing_names(head, said, following, known, expected):
    check(head, said, following, [known], expected)


def test_members_of_other_languages_stand_behind_other_joints():
    check("let x = ", "shape::", "width", [Members("shape", ("height",), (0,))], ["height"])
    check("x = ", "self->shape", "->width", [Members("self->shape", ("height",), (0,))], ["->height"])


def test_underscores_at_the_end_are_left_to_the_model():
    check("super().", "", ".", [Members("", ("__init__", "_"), (0, 0))], ["().__init", "()._"])


def test_list_that_may_lack_names_leaves_others_free():
    some = Members("self", ("width",), (0,), complete=False)
    check("return ", "self", ".width", [some], [".width"])
    check("return ", "self", "._", [some], [])


@pytest.mark.parametrize(
    ("head", "names", "likeliest"),
    [
        ("self.width = other.", ("height", "width"), "width"),
        ("draw(row_count=table.", ("columns", "count"), "count"),
        ("x = self.", ("__width__", "_width"), "_width"),
    ],
)
def test_text_speaks_for_some_names(head, names, likeliest):
    _, part = TOKENIZER.split_part(head)
    known = KnownNames(TOKENIZER, [Members("", names, (0,) * len(names))], head, part)
    found = known.candidates(b"", part.encode(), TOKENIZER.encode(".")[0])
    best = max(zip(found, names, strict=True), key=lambda pair: pair[0].evidence)
    assert best[1] == likeliest


def test_used_name_speaks_for_itself():
    known = KnownNames(TOKENIZER, [Members("", ("width", "height"), (0, 3))], "x = self.", ".")
    width, height = known.candidates(b"", b".", TOKENIZER.encode(".")[0])
    assert height.evidence > width.evidence


@pytest.mark.parametrize(
    ("text", "complete", "expected"),
    [
        (" self.width + self.depth", True, " self.width + self"),
        (" self.depth", True, " self"),
        (" self.depth = 3", True, " self.depth = 3"),
        (" self.depth == 3", True, " self"),
        (" f(self.width.real)", True, " f(self.width.real)"),
        (" self.wid", False, " self.wid"),
        (" self.wid", True, " self"),
        (" self.wid + 1", False, " self"),
        (" other.depth", True, " other.depth"),
        (" 'self.depth'", True, " 'self.depth'"),
        (" 1  # self.depth", True, " 1  # self.depth"),
        (" 1\nself.depth", True, " 1\nself"),
    ],
)
def test_answer_ends_before_name_that_cannot_exist(text, complete, expected):
    head = "return "
    known = KnownNames(TOKENIZER, [SHAPE], head, TOKENIZER.split_part(head)[1])
    assert text[: known.fitting(text, complete=complete)] == expected


def test_answer_may_end_before_its_first_name():
    known = KnownNames(TOKENIZER, [HERE], "return self.de", ".de")
    assert known.fitting(".depth", complete=True) == 0
    assert known.fitting(".width", complete=True) == 6


@pytest.mark.parametrize(
    ("text", "expected"), [("_", 1), ("_ + 1", 5), ("_ght", 0), ("_ght + self.type_", 0), ("_.real", 6)]
)
def test_name_may_have_begun_before_what_is_spelled_again(text, expected):
    known = KnownNames(TOKENIZER, [Members("", ("type_",), (0,))], "return self.type_", "_")
    assert known.fitting(text, complete=True) == expected


def test_lists_that_may_lack_names_end_no_answer():
    some = Members("self", ("width",), (0,), complete=False)
    assert KnownNames(TOKENIZER, [some], "return ", " ").fitting(" self.depth", complete=True) == len(" self.depth")


NAMES = st.text("ab_éß名1", min_size=1, max_size=6).filter(str.isidentifier) | st.just("long" * 60)
RECEIVERS = st.sampled_from(("self.", "x = f(1).", "from module import ", "réponse?.", ""))
PLACES = st.integers(0, 12)


@given(RECEIVERS, st.lists(NAMES, min_size=1, max_size=4, unique=True), PLACES, PLACES, st.booleans(), st.text())
@example("self.", ["type_", "type_name"], 5, 0, True, "(")
@example("self.", ["__init__"], 8, 0, True, "(")
@example("self.", ["long" * 60], 201, 0, True, "(")
@example("self.", ["type_", "type_name"], 5, 0, False, "n")
def test_candidate_continues_what_is_typed_as_one_of_the_names(receiver, names, typed, said, is_healed, following):
    head = receiver + names[0][:typed]
    part = TOKENIZER.split_part(head)[1] if is_healed else ""
    left = part.encode()[said:]
    token = TOKENIZER.allowed(left)[-1] if left else TOKENIZER.encode(following or " ")[0]
    before = (head.removesuffix(part) + part.encode()[:said].decode("utf-8", "ignore")).encode()
    known = KnownNames(TOKENIZER, [Members("", tuple(names), (0,) * len(names))], head, part)
    for candidate in known.candidates(part.encode()[:said], left, token):
        path = TOKENIZER.decode_bytes(candidate.path)
        assert path, "a candidate has a first token"
        assert path.startswith(left) or left.startswith(path)
        line = (before + path).decode()
        assert any(line.endswith((name, name.rstrip("_") or name)) for name in names)


@given(st.text("ab_.=é ('#\n", max_size=20), st.lists(NAMES, min_size=1, max_size=3), st.booleans())
def test_answer_is_never_longer_than_it_was(text, names, complete):
    known = KnownNames(TOKENIZER, [Members("", tuple(names), (0,) * len(names))], "return self.", "self.")
    assert 0 <= known.fitting(text, complete=complete) <= len(text)
