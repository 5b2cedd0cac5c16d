"""The names that the editor knows at a place: its plugin asks the document's other language servers for us."""

import re
from collections.abc import Awaitable, Callable

from lsprotocol.types import CompletionItemKind as Kind

from mercury_engine.api import NameKind
from mercury_ls.code import traits
from mercury_ls.code.languages import find
from mercury_ls.lsp.protocol import NamedItem, NamesAnswer, NamesParams, Position, Signature, SyncedDocument
from mercury_ls.names.known import Name, NameList, NamesRequest

PATIENCE_MS = 2000
"""Nobody waits for it: what comes late serves the next key there. Who has not answered by then hangs."""

KINDS: dict[int, NameKind] = {
    Kind.Class: "class",
    Kind.Constant: "constant",
    Kind.Constructor: "class",
    Kind.Enum: "class",
    Kind.EnumMember: "constant",
    Kind.Event: "property",
    Kind.Field: "property",
    Kind.Function: "function",
    Kind.Interface: "class",
    Kind.Method: "function",
    Kind.Module: "module",
    Kind.Property: "property",
    Kind.Struct: "class",
    Kind.TypeParameter: "class",
    Kind.Value: "variable",
    Kind.Variable: "variable",
}
"""What is a name, and of which kind; no texts, keywords and snippets. Some servers do not say."""
UNSAID = 0

MOST_ITEMS = 8192
"""No more of a list is read: nothing else runs meanwhile, and of as many names only a part is kept."""
LONGEST_LABEL = 500
"""No more of a parameter is read: the patterns take the square of what another server sends."""
INSERTED = re.compile(r"\W*?(?P<name>[#$]?[^\W\d][\w$]*[!?]?)(?P<rest>\s*([(<{=!?…]|:(?!:)).*|)\Z", re.DOTALL)
"""`foo(…)`, `★ foo`, `.foo`, `foo (as Bar)`, `foo=`; neither `foo.bar` nor `["foo"]`."""
QUOTES = ("'", '"', "[", "`")
PARAMETER = re.compile(r"(\*{0,2}|\.{3})([^\W\d]\w*)\??\s*(?::[^=]*)?(?:=.*)?", re.DOTALL)
"""`x`, `x: int = 1`, `x?: T`, `**more`, `...rest`; not the marks `*` and `/`."""
BEFORE_TYPE = re.compile(r"()([^\W\d]\w*+)\s.*", re.DOTALL)
BEHIND_TYPE = re.compile(r".*?(?<!\w)()([^\W\d]\w*+)\s*+(?:=.*)?", re.DOTALL)
"""`int x = 1`; with the type first nothing else stands behind the name."""


class EditorAnalyser:
    """Knows what the document's other language servers know, of any language, where the cursor is."""

    languages: frozenset[str] | None = None
    only_cursor: bool = True

    def __init__(
        self,
        client: Callable[[str, NamesParams, type[NamesAnswer]], Awaitable[NamesAnswer | None]],
        place: Callable[[NamesRequest], Position | None],
    ) -> None:
        """`client` answers a request, `place` is where in the client's version of the document it is asked about."""
        self._client = client
        self._place = place

    async def ask(self, ask: NamesRequest) -> NameList | None:
        place = self._place(ask)
        if place is None:
            return None
        document, is_call = SyncedDocument(ask.uri, ask.version), ask.role == "keyword"
        params = NamesParams(document, place, PATIENCE_MS, is_call)
        answer = await self._client("mercury/names", params, NamesAnswer)
        return answer and known(answer, ask)

    async def close(self) -> None:
        """There is nothing of our own to close."""


def known(answer: NamesAnswer, ask: NamesRequest) -> NameList:
    """Of a call its parameters, elsewhere all names but those."""
    if ask.role == "keyword":
        return _parameters(answer.signature or Signature(), ask.path)
    items = answer.items[:MOST_ITEMS]
    names = (name for item in items if (name := _named(item)) and name.kind != "parameter")
    return NameList.of(names, complete=len(items) == len(answer.items) and not answer.is_incomplete)


def _parameters(signature: Signature, path: str) -> NameList:
    """In their order, without those that take any others: with these a call is not complete."""
    language = find("", path)
    id = language.id if language else ""
    patterns = (PARAMETER, BEFORE_TYPE if id == "go" else BEHIND_TYPE)
    kind: NameKind = "keyword" if id in traits.KEYWORD_ARGUMENTS else "parameter"
    labels = [label[:LONGEST_LABEL] for label in signature.parameters[:MOST_ITEMS]]
    matches = [next(filter(None, (pattern.fullmatch(label) for pattern in patterns)), None) for label in labels]
    groups = [match.groups("") for match in matches if match is not None]
    names = [Name(name, kind) for mark, name in groups if not mark]
    return NameList.of(names, complete=bool(names) and ("**" not in [mark for mark, _ in groups]))


def _named(item: NamedItem) -> Name | None:
    """None of what is no name; `timeout=` is a parameter."""
    inserted = INSERTED.match(item.name) if item.kind == UNSAID or item.kind in KINDS else None
    if inserted is None or item.name.startswith(QUOTES):
        return None
    return Name(inserted["name"], "parameter" if inserted["rest"].startswith("=") else KINDS.get(item.kind, ""))
