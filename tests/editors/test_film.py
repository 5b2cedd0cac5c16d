"""A recorded terminal as a picture that moves."""

from xml.etree import ElementTree

import pyte

from tests.editors.film import Frame, draw, photograph

GREEN_ON_RED = "\x1b[38;2;0;255;0;48;2;255;0;0m"


def filmed(*texts: str) -> str:
    return draw([frame(text, 1 + number) for number, text in enumerate(texts)], "a <title>")


def frame(text: str, seconds: float) -> Frame:
    screen = pyte.Screen(20, 2)
    pyte.Stream(screen).feed(text)
    return Frame(seconds, photograph(screen), (0, 0), True, "Tab", "a & b")


def test_frames_have_their_share_of_the_time():
    drawn = filmed("one", "two", "three")
    assert "animation:f 6.00s step-end infinite" in drawn
    assert [f"{share}%{{" in drawn for share in ("0.000", "16.667", "50.000")] == [True] * 3


def test_longest_frame_is_seen_where_nothing_moves():
    drawn = filmed("one", "two", "three")
    assert ".f{transform:translateY(-172px);animation:" in drawn
    assert "@media(prefers-reduced-motion:reduce){.f{animation:none}}</style>" in drawn


def test_parts_common_to_several_frames_are_drawn_once():
    assert filmed("one", "two", "one").count(">one</text>") == 1


def test_colours_and_styles_are_the_terminals():
    drawn = filmed(f"  {GREEN_ON_RED}\x1b[1;3;9mab")
    assert '<rect x="30" width="18" height="20" fill="#ff0000"/>' in drawn
    style = "fill:#00ff00;font-weight:bold;font-style:italic;text-decoration:line-through"
    assert f'<text x="30" y="15" textLength="18" style="{style}">ab</text>' in drawn


def test_film_is_well_formed_whatever_is_written():
    drawn = filmed("<a> & 'b' \"c\"")
    texts = [node.text for node in ElementTree.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")]
    assert set(texts) == {"<a> & 'b' \"c\"", "a <title>", "Tab", "a & b"}
