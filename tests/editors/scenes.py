"""What is typed in every editor, and what has to come of it."""

from typing import NamedTuple

__all__ = ["BLOCK", "RENAMED", "SHAPES", "SHOP", "Scene"]


class Scene(NamedTuple):
    """A file, what is typed at its end, and how an engine that copies goes on."""

    text: str
    typed: str
    rest: str

    @property
    def whole(self) -> str:
        return self.text + self.typed + self.rest


SHOP = Scene(
    """\
def total(items):
    return sum(item.price * item.quantity for item in items)


def count(items):
    """,
    "return sum(it",
    "em.price * item.quantity for item in items)",
)

BLOCK = Scene(
    """\
def load(path):
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
