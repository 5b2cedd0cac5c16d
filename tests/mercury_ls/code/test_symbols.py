import re
from pathlib import Path

from mercury_ls.code.symbols import refers_to, symbol_at
from tests.cases import Case, drawn_with, each_case
from tests.marked import marked


@each_case(Path(__file__).parent / "cases/symbols.txt")
def test_symbol_is_referred_to_by_its_uses_alone(case: Case) -> None:
    """`$0` stands before the new name `b`, and each `«a»` stood for the same."""
    snapshot, offset = marked(case.drawn.replace("«", "").replace("»", ""), case.key)
    places = [match.start() for match in re.finditer(r"\ba\b", snapshot.text)]
    symbol = symbol_at("a", "b", snapshot, offset, snapshot, places)
    uses = [(at, at + 1, "") for at in places if refers_to(symbol, snapshot, at)]
    assert drawn_with(snapshot.text, uses) == case.drawn.replace("$0", "")
