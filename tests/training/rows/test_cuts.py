"""What is asked for is code of the kind it is said to be."""

import random

import pytest

from mercury_training.corpus.syntax import count_errors
from mercury_training.rows.cuts import Cut, cuts, is_copy, surroundings

PYTHON = '''"""Shapes: nothing in here may be asked for."""

import math
from collections import OrderedDict


class Shape:
    """A shape, about which this sentence says little."""

    def __init__(self, width, height):
        self.width = width
        self.height = height  # in metres, always

    def area(self):
        if self.width < 0:
            raise ValueError("a width cannot be negative")
        product = self.width * self.height
        return product

    def diagonal(self):
        squares = self.width**2 + self.height**2
        return math.sqrt(squares)
'''
GO = """package shapes

import "math"

// Shape is documented here.
type Shape struct {
	Width, Height float64
}

func (s Shape) Area() float64 {
	if s.Width < 0 {
		panic("negative")
	}
	product := s.Width * s.Height
	return product
}

// Diagonal is documented at some length, because a file has to have one.
func (s Shape) Diagonal() float64 {
	squares := s.Width*s.Width + s.Height*s.Height // in square metres, always
	return math.Sqrt(squares)
}
"""
RUST = """use std::f64;

/// A documented shape.
pub struct Shape {
    width: f64,
    height: f64,
}

impl Shape {
    pub fn area(&self) -> f64 {
        if self.width < 0.0 {
            panic!("negative");
        }
        let product = self.width * self.height;
        product
    }

    pub fn diagonal(&self) -> f64 {
        let squares = self.width * self.width + self.height * self.height;
        squares.sqrt()
    }
}
"""
TYPESCRIPT = """import { sqrt } from "./math";

/** A documented shape. */
export class Shape {
  constructor(
    private width: number,
    private height: number,
  ) {}

  area(): number {
    if (this.width < 0) {
      throw new Error("negative");
    }
    const product = this.width * this.height;
    return product;
  }

  diagonal(): number {
    const squares = this.width ** 2 + this.height ** 2;
    return sqrt(squares);
  }
}
"""
FILES = {"python": PYTHON, "go": GO, "rust": RUST, "typescript": TYPESCRIPT, "tsx": TYPESCRIPT}


def many(language):
    return {cut for seed in range(30) for cut in cuts(language, FILES[language], random.Random(seed))}


@pytest.mark.parametrize("language", FILES)
def test_cuts_of_every_kind_are_found(language):
    assert {(cut.kind, cut.sub) for cut in many(language)} == {
        ("single_line", "full_line"),
        ("single_line", "line_tail"),
        ("multi_line", "block"),
        ("multi_line", "body"),
        ("random_span", "chars"),
    }


@pytest.mark.parametrize("language", FILES)
def test_cuts_are_what_they_are_called(language):
    text = FILES[language]
    for cut in many(language):
        middle, before, after = text[cut.start : cut.stop], text[: cut.start], text[cut.stop :]
        head = before.rpartition("\n")[2]
        if cut.kind == "random_span":
            continue
        assert not after.partition("\n")[0].strip() or cut.kind == "single_line", "it ends with its line"
        assert middle == middle.strip()
        assert ("\n" in middle) == (cut.kind == "multi_line")
        assert cut.sub == "line_tail" or not head.strip(), "it begins behind the indentation"
        if cut.kind == "multi_line":
            closing = {"python": "pass", "go": "", "rust": "", "typescript": "", "tsx": ""}[language]
            assert count_errors(language, before + closing + after) == 0, "whole statements, which others can replace"


@pytest.mark.parametrize("language", FILES)
def test_comments_strings_and_imports_are_not_asked_for(language):
    text = FILES[language]
    for cut in many(language):
        first = text[cut.start : cut.stop].split("\n")[0]
        assert not any(word in first for word in ("documented", "nothing in here", "little", "import "))


def test_files_that_do_not_parse_are_left_out():
    assert cuts("python", PYTHON.replace("class Shape:", "class :"), random.Random(0)) == []


def test_same_seed_cuts_the_same():
    assert cuts("python", PYTHON, random.Random(5)) == cuts("python", PYTHON, random.Random(5))


@pytest.mark.parametrize(
    ("marked", "copied"),
    [
        ("total = price * count\nother = 1\n$total = price * count$\n", True),
        ("$total = price * count$\nother = 1\n", False),
        ("a = 1\n$a = 1$\n", False),
    ],
)
def test_copy_is_long_and_stands_elsewhere(marked, copied):
    before, middle, after = marked.split("$")
    cut = Cut(len(before), len(before) + len(middle), "single_line", "full_line")
    assert is_copy(before + middle + after, cut) is copied


def test_surroundings_are_nearest_lines_of_code():
    before, middle, after = "a\nb\n\nc\nd\n  ", "e\nf", " g\n\nh\ni\nj\nk\n"
    cut = Cut(len(before), len(before) + len(middle), "multi_line", "block")
    assert surroundings(before + middle + after, cut) == "b\nc\nd\n  e\nf g\nh\ni\nj"
