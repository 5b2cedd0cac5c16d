"""The application of the HTTP port: endpoints, the document that describes them, and the page at `/`."""

import logging
from importlib import resources

import msgspec
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from mercury_ls.web import chat, completions, edits, feedback, infill, playground, status
from mercury_ls.web.access import Access, Guard
from mercury_ls.web.chat_schemas import ChatBody, ChatResponse
from mercury_ls.web.endpoints import Crowd, Endpoint, routes
from mercury_ls.web.errors import ApiError, problem
from mercury_ls.web.metrics import Measured
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

log = logging.getLogger(__name__)

ENDPOINTS = (
    Endpoint(method="GET", path="/health", about="The health of the engine.", handler=status.health, gives=Health),
    Endpoint(
        method="GET",
        path="/v1/models",
        also=tuple(f"/v1/{kind}/completions/models" for kind in ("chat", "fim", "edit")),
        about="The model that answers.",
        handler=status.models,
        gives=ModelList,
    ),
    Endpoint(
        method="GET",
        path="/v1/models/{id}",
        about="One model of the list.",
        handler=status.model,
        gives=ModelCard,
        refuses=("404",),
    ),
    Endpoint(
        method="POST",
        path="/v1/completions",
        also=("/v1/fim/completions",),
        about="Fill a gap.",
        handler=completions.complete,
        streams=True,
        takes=CompletionRequest,
        gives=CompletionResponse,
    ),
    Endpoint(
        method="POST",
        path="/v1/chat/completions",
        about="Continue a conversation.",
        handler=chat.chat,
        streams=True,
        takes=ChatBody,
        gives=ChatResponse,
        refuses=("404",),
    ),
    Endpoint(
        method="POST",
        path="/v1/edit/completions",
        about="Rewrite what should change next, in Inception's dialect.",
        handler=edits.edit,
        takes=EditRequest,
        gives=EditResponse,
    ),
    Endpoint(
        method="POST",
        path="/infill",
        about="Fill a gap, in llama.cpp's dialect.",
        handler=infill.infill,
        takes=InfillBody,
        gives=InfillResponse | list[InfillResponse],
    ),
    Endpoint(
        method="POST",
        path="/feedback",
        also=("/v1/feedback",),
        about="Report whether an answer was accepted.",
        handler=feedback.hear,
        takes=Feedback,
        gives=Heard,
    ),
    Endpoint(
        method="POST",
        path="/playground/watch",
        about="A draft, pass by pass: a stream of frames for the page at /.",
        handler=playground.watch,
        takes=WatchRequest,
        gives=Frame,
        streams=True,
    ),
    Endpoint(
        method="GET",
        path="/playground/statistics",
        about="What happened to suggestions on this machine, and their cost.",
        handler=playground.statistics,
        gives=Statistics,
    ),
    Endpoint(method="GET", path="/metrics", about="Figures for Prometheus.", handler=status.metrics, gives=None),
)


def application(service: Service, access: Access, crowd: Crowd | None = None) -> Starlette:
    """The application; it needs no lifespan, and its creator closes the service."""
    described = msgspec.json.encode(document(ENDPOINTS))

    async def openapi(request: Request) -> Response:
        return Response(described, media_type="application/json")

    async def page(request: Request) -> Response:
        return Response((STATIC / "index.html").read_bytes(), media_type="text/html", headers=PAGE_HEADERS)

    return Starlette(
        routes=[
            *routes(ENDPOINTS, service, crowd or Crowd()),
            Route("/openapi.json", openapi),
            Route("/", page),
            Mount("/static", StaticFiles(directory=str(STATIC))),
        ],
        middleware=[Middleware(Measured, metrics=service.metrics), Middleware(Guard, access=access)],
        exception_handlers={404: _missing, 405: _missing, 500: _broken},
    )


PAGE_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; img-src 'self' data:;"
    " style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}


async def _missing(request: Request, error: Exception) -> Response:
    path, status = request.url.path[:200], getattr(error, "status_code", 404)
    if status == 405:
        allowed = (getattr(error, "headers", None) or {}).get("Allow", "")
        return problem(ApiError(405, f"{path} does not support {request.method}: use {allowed}"), {"allow": allowed})
    paths = ", ".join(route.path for route in request.app.routes if isinstance(route, Route))
    return problem(ApiError(404, f"{path} does not exist: use one of {paths}", code="unknown_url"))


async def _broken(request: Request, error: Exception) -> Response:
    return problem(ApiError(500, "the server failed: its log says how", code="server_error"))
