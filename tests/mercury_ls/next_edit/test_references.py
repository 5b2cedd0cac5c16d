import re
from pathlib import Path

from mercury_ls.code.index.symbol import symbol_at
from mercury_ls.code.modules import Project
from mercury_ls.next_edit.kinds.rename.uses import Uses
from tests.cases import Case, drawn_with, each_case
from tests.marked import marked


@each_case(Path(__file__).parent / "cases/references.txt")
def test_symbol_is_referred_to_by_its_uses_alone(case: Case) -> None:
    """`$0` stands before the new name `b`, and each `«a»` stood for the same."""
    snapshot, offset = marked(case.drawn.replace("«", "").replace("»", ""), case.key)
    places = [match.start() for match in re.finditer(r"\ba\b", snapshot.text)]
    uses = Uses("a", "b", symbol_at("a", "b", snapshot, offset), snapshot, snapshot, Project((snapshot,)))
    references = [(at, at + 1, "") for at in places if uses.may_refer(at)]
    assert drawn_with(snapshot.text, references) == case.drawn.replace("$0", "")
