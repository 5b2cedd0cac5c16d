"""Where names are declared that files import from each other in circles."""

from mercury_ls.code.documents import Document
from mercury_ls.code.index.definitions import meaning_of
from mercury_ls.code.modules import Project

FILES = 44
ANSWERS = 500
"""Each file asks each other one a few times at most: 1,892 imports, followed for twelve steps, are far more."""


def test_imports_of_all_names_in_circles_are_followed_once():
    def text(number: int) -> str:
        stars = "".join(f"from m{other} import *\n" for other in range(FILES) if other != number)
        return stars + ("class Thing: ...\n" if number == 7 else "print(Thing, Other)\n")

    texts = {f"/p/m{number}.py": text(number) for number in range(FILES)}
    files = [Document(f"file://{path}", path, "python", 1, text).snapshot() for path, text in texts.items()]
    project = Project(files, exists=texts.__contains__, budget=ANSWERS)
    thing = meaning_of(project, files[0], "Thing", len(files[0].text))
    assert (thing.is_known, [definition.file.path for definition in thing.definitions]) == (True, ["/p/m7.py"])
    other = meaning_of(project, files[0], "Other", len(files[0].text))
    assert (other.is_known, other.definitions) == (True, ())
