"""What is typed in every editor, and what has to come of it."""

from typing import NamedTuple

__all__ = ["BLOCK", "CARRIED", "RENAMED", "SHAPES", "SHOP", "WIDE", "Scene"]


class Scene(NamedTuple):
    """A file, what is typed at its end, and how an engine that copies goes on.

    It repeats itself, so that a model that has learned a little goes on too; how, is its own affair. Wherever that ends
    between two words, the line is well formed.
    """

    text: str
    typed: str
    rest: str

    @property
    def before(self) -> str:
        """The text when all is typed."""
        return self.text + self.typed

    @property
    def whole(self) -> str:
        return self.before + self.rest


SHOP = Scene(
    """\
def total(item):
    return tax(item.price, item.weight)


def paid(item):
    return tax(item.price, item.weight)


def sold(item):
    return tax(item.price, item.weight)


def count(item):
    """,
    "return tax(it",
    "em.price, item.weight)",
)

WIDE = Scene(
    """\
def sold(item):
    'née 🦀'; return tax(item.price, item.weight)


def count(item):
    'née 🦀'; """,
    SHOP.typed,
    SHOP.rest,
)
"""With characters that count as one, two or four, by who counts."""

BLOCK = Scene(
    """\
def load(path):
    with open(path) as file:
        data = file.read()
        return data.strip()


def fetch(path):
    with open(path) as file:
        data = file.read()
        return data.strip()


def again(path):
    """,
    "with open(path) as file:",
    "\n        data = file.read()\n        return data.strip()",
)

SHAPES = """\
def area(width, height):
    return width * height


def volume(width, height, depth):
    return area(width, height) * depth


print(area(1, 2))
"""
RENAMED = SHAPES.replace("area", "surface", 1)
"""As the user has left it: renamed where it is defined."""
CARRIED = SHAPES.replace("area", "surface")
"""What the next edit makes of it."""
