"""The names that the editor knows at a place: its plugin asks the document's other language servers for us."""

import re
from collections.abc import Awaitable, Callable

from lsprotocol.types import CompletionItemKind as Kind

from mercury_ls.lsp.protocol import NamedItem, NamesAnswer, NamesParams, Position, SyncedDocument
from mercury_ls.names.known import NameList, NamesRequest

PATIENCE_MS = 2000
"""Nobody waits for it: what comes late serves the next key there. Who has not answered by then hangs."""

KINDS = frozenset(
    {
        Kind.Class,
        Kind.Constant,
        Kind.Constructor,
        Kind.Enum,
        Kind.EnumMember,
        Kind.Event,
        Kind.Field,
        Kind.Function,
        Kind.Interface,
        Kind.Method,
        Kind.Module,
        Kind.Property,
        Kind.Struct,
        Kind.TypeParameter,
        Kind.Value,
        Kind.Variable,
    }
)
"""What is a name; no texts, keywords and snippets. Some servers do not say."""
UNSAID = 0

MOST_ITEMS = 8192
"""No more of a list is read: nothing else runs meanwhile, and of as many names only a part is kept."""
INSERTED = re.compile(r"\W*?(?P<name>[#$]?[^\W\d][\w$]*[!?]?)(?P<rest>\s*([(<{=!?…]|:(?!:)).*|)\Z", re.DOTALL)
"""`foo(…)`, `★ foo`, `.foo`, `foo (as Bar)`, `foo=`; neither `foo.bar` nor `["foo"]`."""
QUOTES = ("'", '"', "[", "`")


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
        params = NamesParams(SyncedDocument(ask.uri, ask.version), place, PATIENCE_MS)
        answer = await self._client("mercury/names", params, NamesAnswer)
        return answer and known(answer)

    async def close(self) -> None:
        """There is nothing of our own to close."""


def known(answer: NamesAnswer) -> NameList:
    """All names but those of parameters."""
    items = answer.items[:MOST_ITEMS]
    names = {name: None for item in items if (name := _named(item))}
    return NameList(tuple(names), complete=len(items) == len(answer.items) and not answer.is_incomplete)


def _named(item: NamedItem) -> str:
    """Nothing of what is no name; `timeout=` is a parameter."""
    inserted = INSERTED.match(item.name) if item.kind == UNSAID or item.kind in KINDS else None
    if inserted is None or item.name.startswith(QUOTES) or inserted["rest"].startswith("="):
        return ""
    return inserted["name"]
