"""The application of the HTTP port: endpoints, the document that describes them, and the page at `/`."""

from collections.abc import Container
from contextlib import suppress
from importlib import resources

from msgspec.structs import replace

from mercury_ls.serve.access import Access
from mercury_ls.serve.asgi import (
    DisconnectedError,
    Handler,
    Receive,
    RefusedError,
    Response,
    Scope,
    Send,
    as_json,
    routed,
)
from mercury_ls.web import chat, completions, edits, feedback, infill, playground, status
from mercury_ls.web.chat_schemas import ChatBody, ChatResponse
from mercury_ls.web.endpoints import Answering, Crowd, Endpoint
from mercury_ls.web.errors import ApiError, problem
from mercury_ls.web.metrics import measured
from mercury_ls.web.openapi import document
from mercury_ls.web.playground import Frame, Statistics, WatchRequest
from mercury_ls.web.schemas import (
    CompletionRequest,
    CompletionResponse,
    EditRequest,
    EditResponse,
    Feedback,
    Health,
    Heard,
    InfillBody,
    InfillResponse,
    ModelCard,
    ModelList,
)
from mercury_ls.web.service import Service

STATIC = resources.files("mercury_ls.web") / "static"

MODELS = tuple(f"/v1/{kind}/completions/models" for kind in ("chat", "fim", "edit"))
ENDPOINTS = (
    Endpoint("GET", "/health", "The health of the engine.", status.health, Health),
    Endpoint("GET", "/v1/models", "The model that answers.", status.models, ModelList, also=MODELS),
    Endpoint("GET", "/v1/models/{id}", "One model of the list.", status.model, ModelCard, refuses=("404",)),
    Endpoint(
        "POST",
        "/v1/completions",
        "Fill a gap.",
        completions.complete,
        CompletionResponse,
        CompletionRequest,
        also=("/v1/fim/completions",),
        streams=True,
    ),
    Endpoint(
        "POST",
        "/v1/chat/completions",
        "Continue a conversation.",
        chat.chat,
        ChatResponse,
        ChatBody,
        streams=True,
        refuses=("404",),
        converses=True,
    ),
    Endpoint(
        "POST",
        "/v1/edit/completions",
        "Rewrite what should change next, in Inception's dialect.",
        edits.edit,
        EditResponse,
        EditRequest,
    ),
    Endpoint(
        "POST",
        "/infill",
        "Fill a gap, in llama.cpp's dialect.",
        infill.infill,
        InfillResponse | list[InfillResponse],
        InfillBody,
    ),
    Endpoint(
        "POST",
        "/feedback",
        "Report whether an answer was accepted.",
        feedback.hear,
        Heard,
        Feedback,
        also=("/v1/feedback",),
    ),
    Endpoint(
        "POST",
        "/playground/watch",
        "A draft, pass by pass: a stream of frames for the page at /.",
        playground.watch,
        Frame,
        WatchRequest,
        streams=True,
    ),
    Endpoint(
        "GET",
        "/playground/statistics",
        "What happened to suggestions on this machine, and their cost.",
        playground.statistics,
        Statistics,
    ),
    Endpoint("GET", "/metrics", "Figures for Prometheus.", status.metrics, None),
)


def application(service: Service, access: Access, crowd: Crowd | None = None) -> Handler:
    """The application; its creator closes the service."""
    crowd = crowd or Crowd()
    routes: dict[str, dict[str, Handler]] = {}
    for endpoint in ENDPOINTS:
        answering = Answering(endpoint, service, crowd)
        methods = ("GET", "HEAD") if endpoint.method == "GET" else (endpoint.method,)
        routes |= dict.fromkeys((endpoint.path, *endpoint.also), dict.fromkeys(methods, answering))
    routes |= {path: dict.fromkeys(("GET", "HEAD"), page) for path, page in _pages().items()}

    async def handle(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            with suppress(DisconnectedError):
                scope["user"] = access.admitted(scope)
                await routed(routes, scope["method"], _path_of(scope, routes))(scope, receive, send)
        except RefusedError as refused:
            await problem(refused).send(send)
        except Exception:
            if "status" not in scope:
                await problem(ApiError(500, "the server failed: its log says how")).send(send)
            raise

    return measured(handle, service.metrics)


def _path_of(scope: Scope, routes: Container[str]) -> str:
    path = scope["path"].rstrip("/") or "/"
    folder, _, scope["id"] = path.rpartition("/")
    return path if path in routes or (some := f"{folder}/{{id}}") not in routes else some


def _pages() -> dict[str, Response]:
    return {
        "/openapi.json": as_json(document(ENDPOINTS)),
        "/": replace(_static("index.html"), headers=PAGE_HEADERS),
        **{f"/static/{file.name}": _static(file.name) for file in STATIC.iterdir()},
    }


def _static(name: str) -> Response:
    return Response((STATIC / name).read_bytes(), media_type=MEDIA_TYPES[name.rpartition(".")[2]])


MEDIA_TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
}
PAGE_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; img-src 'self' data:;"
    " style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}
