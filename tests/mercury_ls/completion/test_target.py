from pathlib import Path

from mercury_ls.completion.target import Silence, at_cursor
from mercury_ls.settings.schema import SuggestSettings
from tests.cases import Case, each_case
from tests.marked import marked


@each_case(Path(__file__).with_name("target.txt"))
def test_target_is_where_and_how_much_is_asked_for(case: Case) -> None:
    """`line` or `block`, with what is replaced in «…», or why nothing is; settings stand behind the language."""
    language, *given = case.key.split()
    settings = {
        name: {"off": False}.get(value, value or True)
        for name, _, value in (setting.partition("=") for setting in given)
    }
    snapshot, offset = marked(case.drawn.replace("«", "").replace("»", ""), language)
    asked = {name: bool(settings.pop(name, False)) for name in ("invoked", "strong", "edited")}
    found = at_cursor(snapshot, offset, SuggestSettings(**settings), **asked)
    if isinstance(found, Silence):
        assert found.reason.startswith(case.expected)
    else:
        replaced = case.drawn.partition("«")[2].partition("»")[0]
        assert ("block" if found.block else "line", snapshot.text[found.start : found.end]) == (case.expected, replaced)
