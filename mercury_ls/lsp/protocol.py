"""LSP over pygls: messages of our own as typed data, an error reply to every malformed request."""

import asyncio
import contextlib
import inspect
import json
import logging
import re
import uuid
from collections.abc import Callable, Generator, Sequence
from typing import Any, Protocol, TypeVar, cast

import msgspec
from cattrs import Converter, transform_error
from lsprotocol import types as lsp
from msgspec import UNSET, Struct, UnsetType
from pygls.exceptions import JsonRpcInternalError, JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.protocol import (
    JsonRPCNotification,
    JsonRPCRequestMessage,
    JsonRPCResponseMessage,
    LanguageServerProtocol,
    lsp_method,
)

from mercury_ls.lsp.transport import FrameError, OversizedError
from mercury_ls.wording import one_line

log = logging.getLogger(__name__)


class _Wire(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Plain data in the spelling of JSON."""


class Position(_Wire, frozen=True):
    line: int
    character: int


class _Range(_Wire, frozen=True):
    start: Position
    end: Position


class SyncedDocument(_Wire, frozen=True):
    """`version` is that of the text in which a position counts. Few clients send it: see `Server.dated`."""

    uri: str
    version: int | None = None


class _SelectedCompletion(_Wire, frozen=True):
    range: _Range
    text: str


class InlineContext(_Wire, frozen=True):
    """`closed_files`: the client can show and apply next edits of files that are not open; `rename_provider`: the name
    of another language server that can rename in this document; `typing`: whether the user may be in the middle of an
    edit, as where no mode tells insertion from the rest; `places`: the client can go where something is broken;
    `rests`: the user has heard what follows from the last edits, and has gone to another line."""

    trigger_kind: int = 2
    selected_completion_info: _SelectedCompletion | None = None
    closed_files: bool = False
    rename_provider: str = ""
    typing: bool = True
    places: bool = False
    rests: bool = False


class PlaceParams(_Wire, frozen=True):
    """`mercury/why`, and what the fallback needs of `textDocument/completion`."""

    text_document: SyncedDocument
    position: Position


class SuggestParams(PlaceParams, frozen=True):
    """`textDocument/inlineCompletion`, with a token for drafts; `mercury/nextEdit` and Copilot's
    `textDocument/copilotInlineEdit`, with a token for the reason for silence."""

    context: InlineContext = InlineContext()
    partial_result_token: str | int | None = None


class _CommandReference(_Wire, frozen=True):
    command: str = ""
    arguments: list[Any] = []


class _ItemReference(_Wire, frozen=True):
    command: _CommandReference = _CommandReference()


class ShownParams(_Wire, frozen=True):
    item: _ItemReference


class PartialAcceptParams(_Wire, frozen=True):
    item: _ItemReference
    accepted_length: int


class DidFocusParams(_Wire, frozen=True):
    text_document: SyncedDocument | UnsetType = UNSET


class StatusParams(_Wire, frozen=True):
    """`mercury/status`: the state of everything, and on request digests of the texts as the server has them."""

    digests: bool = False


class StatsParams(_Wire, frozen=True):
    """`mercury/stats`: what became of suggestions, in numbers."""


class SnoozeParams(_Wire, frozen=True):
    """`mercury/snooze`: no suggestions for some minutes; 0 ends it."""

    minutes: float = 5.0


class _CancelParams(_Wire, frozen=True):
    """`$/cancelRequest`: pygls looks up any id, and fails on those that cannot be hashed."""

    id: str | int


class AcceptParams(_Wire, frozen=True):
    """`mercury/didAccept` and `mercury/didReject`: what became of a suggestion. `edits` is how many of the edits of an
    offer were made, if the client lets its user leave some out."""

    id: str
    edits: int | None = None


class ClientDiagnostic(_Wire, frozen=True):
    """The part of an LSP diagnostic that matters here; severity 1 is an error, 4 a hint."""

    range: _Range
    message: str = ""
    severity: int | None = None


class DiagnosticsParams(_Wire, frozen=True):
    """`mercury/didChangeDiagnostics`: what the editor's other language servers report about a document."""

    text_document: SyncedDocument
    diagnostics: tuple[ClientDiagnostic, ...] = ()


class NamesParams(_Wire, frozen=True):
    """`mercury/names`, our request to the client: which names the document's other language servers know at a place in
    this version. What is not known by then is left out."""

    text_document: SyncedDocument
    position: Position
    timeout_ms: int


class NamedItem(_Wire, frozen=True):
    """An entry of a completion list: what it inserts, and LSP's number of its kind."""

    name: str
    kind: int = 0


class NamesAnswer(_Wire, frozen=True):
    """`is_incomplete` if there may be others, since a list was cut, or somebody who knows them did not answer."""

    items: tuple[NamedItem, ...] = ()
    is_incomplete: bool = False


METHODS: dict[str, type[_Wire]] = {
    "$/cancelRequest": _CancelParams,
    "textDocument/completion": PlaceParams,
    "textDocument/inlineCompletion": SuggestParams,
    "textDocument/didShowCompletion": ShownParams,
    "textDocument/didPartiallyAcceptCompletion": PartialAcceptParams,
    "textDocument/didShowInlineEdit": ShownParams,
    "textDocument/didFocus": DidFocusParams,
    "textDocument/copilotInlineEdit": SuggestParams,
    "signIn": StatusParams,
    "signOut": StatusParams,
    "checkStatus": StatusParams,
    "mercury/status": StatusParams,
    "mercury/stats": StatsParams,
    "mercury/why": PlaceParams,
    "mercury/snooze": SnoozeParams,
    "mercury/nextEdit": SuggestParams,
    "mercury/didChangeDiagnostics": DiagnosticsParams,
    "mercury/didAccept": AcceptParams,
    "mercury/didReject": AcceptParams,
}

DATED = frozenset({"textDocument/completion", "textDocument/inlineCompletion"})
"""Their positions count in the version that the server has when they arrive."""

Reply = TypeVar("Reply", bound=_Wire)

PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32602, -32603
NOT_INITIALIZED = -32002


class _ClientServer(Protocol):
    """One client's server, as its connection sees it."""

    @property
    def session(self) -> object | None: ...
    def dated(self, params: PlaceParams) -> PlaceParams: ...
    def lost(self, uri: str, reason: str) -> None: ...
    async def close(self) -> None: ...


class LspProtocol(LanguageServerProtocol):
    """One client's connection. The session keeps the texts; pygls' workspace is never used."""

    server: _ClientServer

    def __init__(self, server: LanguageServer, converter: Converter) -> None:
        super().__init__(server, converter)
        self.finished = asyncio.Event()
        self.exit_code = 0
        self._given_up: set[str] = set()
        """The requests of our own that the client may still answer, though nobody waits any more."""

    def attach(self, write: Callable[[bytes], None]) -> None:
        self.set_writer(_Outlet(write, self.finished), include_headers=False)

    def replace(self, method: str, handler: Callable[[Any], None]) -> None:
        """This handler takes the place of pygls' own."""
        self.fm.add_builtin_feature(method, handler)  # pyright: ignore[reportUnknownMemberType]

    # Incoming messages

    def receive(self, body: bytes) -> None:
        """Handle one message; a request, however malformed, is always answered."""
        try:
            data = json_object(json.loads(body))
        except (ValueError, RecursionError) as error:
            return self.refuse(None, PARSE_ERROR, f"the message is not JSON: {error}")
        if data is None:
            return self.refuse(None, INVALID_REQUEST, "a message must be one JSON object; LSP has no batches")
        if problem := _envelope_problem(data):
            return self.refuse(data.get("id"), INVALID_REQUEST, problem)
        if "method" not in data and data.get("id") in self._given_up:
            return self._given_up.remove(data["id"])
        if "method" not in data and not self.awaits(data):
            return log.warning("the client answered request %r, which was never sent", data.get("id"))
        if problem := self.untimely(data):
            return self.refuse(data["id"], INVALID_REQUEST if self.server.session else NOT_INITIALIZED, problem)
        if self.comes_early(data):
            return log.warning("%s arrived before initialize was answered and is ignored", data["method"])
        try:
            message = self.structure_message(data)
            if "id" in data and not hasattr(message, "id"):
                return self.refuse(data["id"], INVALID_REQUEST, f"{data['method']} is a notification and has no id")
            return self.handle_message(message)
        except (JsonRpcInvalidParams, JsonRpcInternalError) as error:
            return self.misunderstood(data, error)
        except Exception as error:  # the messages that came with this one must still be handled
            log.exception("%s could not be handled", data.get("method", "a response"))
            return self.refuse(data["id"], INTERNAL_ERROR, repr(error)) if {"id", "method"} <= data.keys() else None

    def malformed(self, error: FrameError) -> None:
        """The id is unknown, and so is from now on the text of a document that the message was about."""
        self.refuse(None, INVALID_REQUEST, str(error))
        if isinstance(error, OversizedError):
            for uri in _uris_in(error.ends):
                self.server.lost(uri, f"the editor sent {error}")

    async def closed(self) -> None:
        await self.server.close()

    def awaits(self, answer: dict[str, Any]) -> bool:
        """Whether this is an answer to one of our requests: pygls keeps them in one table with the client's."""
        id = answer.get("id", "")
        is_answer = id in self._result_types
        if "error" in answer:
            self._result_types.pop(id, None)
        return is_answer

    def untimely(self, data: dict[str, Any]) -> str:
        if "id" not in data or "method" not in data:
            return ""
        if self._shutdown:
            return "the server is shutting down"
        if self.server.session is None and data["method"] != lsp.INITIALIZE:
            return "the first request must be initialize"
        if data["method"] == lsp.INITIALIZE and self.server.session is not None:
            return "initialize has been answered already"
        return ""

    def comes_early(self, data: dict[str, Any]) -> bool:
        """Whether this is a notification for which there is no session yet; `exit` needs none."""
        return self.server.session is None and "id" not in data and data.get("method", lsp.EXIT) != lsp.EXIT

    def structure_message(self, data: dict[str, Any]) -> Any:
        method = data.get("method")
        reply = self._result_types.get(data.get("id", ""))
        if "result" in data and isinstance(reply, type) and issubclass(reply, _Wire):
            return self.answered(data, reply)
        if method not in METHODS:
            return super().structure_message({"params": None, **data} if method in NO_PARAMS else data)
        try:
            params = msgspec.convert(data.get("params") or {}, METHODS[method], strict=True)
        except (msgspec.ValidationError, UnicodeError, RecursionError) as error:
            raise JsonRpcInvalidParams() from error
        if method in DATED and isinstance(params, PlaceParams):
            params = self.server.dated(params)
        if "id" in data:
            return JsonRPCRequestMessage(data["id"], method, data["jsonrpc"], params)
        return JsonRPCNotification(method, data["jsonrpc"], params)

    def answered(self, data: dict[str, Any], reply: type[_Wire]) -> JsonRPCResponseMessage:
        del self._result_types[data["id"]]
        try:
            result = msgspec.convert(data["result"], reply | None, strict=True)
        except (msgspec.ValidationError, UnicodeError, RecursionError) as error:
            raise JsonRpcInvalidParams() from error
        return JsonRPCResponseMessage(data["id"], data["jsonrpc"], result)

    def misunderstood(self, data: dict[str, Any], error: Exception) -> None:
        reasons = _explain(error.__cause__ or error)
        log.warning("%s has unusable parameters: %s", data.get("method", "a response"), reasons)
        if "id" in data and "method" in data:
            self.refuse(data["id"], INVALID_PARAMS, f"{data['method']}: {reasons}")
        elif "id" in data and (waiting := self._request_futures.pop(data["id"], None)):
            waiting.set_exception(JsonRpcInvalidParams(f"the client's answer: {reasons}"))

    def refuse(self, request: Any, code: int, problem: str) -> None:
        """An error reply, built by hand: LSP's own type does not allow the null id that JSON-RPC requires."""
        log.warning("refused a message: %s", problem)
        self._send_data({"jsonrpc": "2.0", "id": request, "error": {"code": code, "message": one_line(problem)}})

    def _send_response(self, msg_id: str | int, result: Any = None, error: lsp.ResponseError | None = None) -> None:
        """Clients show an error's message. The traceback, with paths of this machine, is in the log alone."""
        if error is not None:
            error = lsp.ResponseError(error.code, one_line(error.message))
        super()._send_response(msg_id, result, error)

    # Requests of our own

    async def ask(self, method: str, params: _Wire, reply: type[Reply]) -> Reply | None:
        """The client's reply, which may be null; the client hears of it if nobody waits any more."""
        id = uuid.uuid4().hex
        waiting = self.send_request_async(method, msgspec.to_builtins(params), id)
        self._result_types[id] = reply
        try:
            return await waiting
        except asyncio.CancelledError:
            if self._request_futures.pop(id, None) is not None:
                del self._result_types[id]
                self._given_up.add(id)
                self.notify(lsp.CANCEL_REQUEST, lsp.CancelParams(id))
            raise

    # What pygls would do differently

    def shut_down(self, _: None) -> None:
        """Requests in progress are cancelled. A copy of the table, since each cancelled request is removed from it."""
        for request, future in list(self._request_futures.items()):
            if request != self.msg_id:
                future.cancel()
        self._shutdown = True

    @lsp_method(lsp.WORKSPACE_EXECUTE_COMMAND)
    def lsp_workspace__execute_command(self, params: lsp.ExecuteCommandParams) -> Generator[Any, Any, Any]:
        """pygls wants all arguments of a command where there is a list of them, even those that have a default."""
        commands = cast("dict[str, Callable[..., Any]]", self.fm.commands)  # pyright: ignore[reportUnknownMemberType]
        if params.command in commands and params.arguments is not None:
            params.arguments = _completed(commands[params.command], params.arguments)
        return (yield from super().lsp_workspace__execute_command(params))

    def exit(self, _: None) -> None:
        self.exit_code = 0 if self._shutdown else 1
        self.finished.set()


NO_PARAMS = {lsp.SHUTDOWN, lsp.EXIT}


def _completed(command: Callable[..., Any], arguments: Sequence[Any]) -> list[Any]:
    """The arguments of a command, the first of which is the server, with the defaults of those that are missing."""
    _, *named = inspect.signature(getattr(command, "func", command)).parameters.values()
    return [
        *arguments,
        *(parameter.default for parameter in named[len(arguments) :] if parameter.default is not parameter.empty),
    ]


class _Outlet:
    """Where replies go; a client that is gone ends the connection instead of raising an error."""

    def __init__(self, write: Callable[[bytes], None], finished: asyncio.Event) -> None:
        self._write = write
        self._finished = finished

    def write(self, data: bytes) -> None:
        try:
            self._write(data)
        except (OSError, RuntimeError, ValueError) as error:
            log.info("the client is gone: %s", error)
            self._finished.set()

    def close(self) -> None:
        self._finished.set()


URI = re.compile(rb'"uri"\s*:\s*("(?:[^"\\]|\\.){1,4096}")')
"""The key outside of texts: within them a backslash precedes each quote."""


def _uris_in(json_text: bytes) -> set[str]:
    uris: set[str] = set()
    for match in URI.findall(json_text):
        with contextlib.suppress(ValueError):
            uris.add(json.loads(match))
    return uris


def json_object(value: object) -> dict[str, Any] | None:
    """The object that was decoded from JSON; None if it is anything else."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _envelope_problem(data: dict[str, Any]) -> str:
    if data.get("jsonrpc") != "2.0":
        return 'a message needs "jsonrpc": "2.0"'
    if not isinstance(data.get("method", ""), str):
        return "method must be a string"
    if not isinstance(data.get("id", 0), (int, str)) and not ("error" in data and data["id"] is None):
        return "id must be a number or a string"
    if not {"method", "result", "error"} & data.keys():
        return "a message needs a method, a result or an error"
    return ""


def _explain(error: BaseException) -> str:
    if isinstance(error, msgspec.ValidationError | UnicodeError | RecursionError):
        return str(error)
    return "; ".join(transform_error(error, path="params"))
