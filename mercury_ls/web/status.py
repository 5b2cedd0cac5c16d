"""The server about itself: its health, its models, and the document that describes it."""

from typing import Literal

from mercury_engine.api import PROTOCOL_VERSION
from mercury_ls import __version__
from mercury_ls.serve.asgi import Response
from mercury_ls.web.endpoints import EndpointCall
from mercury_ls.web.errors import ApiError
from mercury_ls.web.metrics import CONTENT_TYPE
from mercury_ls.web.schemas import Health, ModelCard, ModelList

HEALTH: dict[str, Literal["ok", "error"]] = {"ready": "ok", "unavailable": "error"}


async def health(call: EndpointCall) -> Health:
    state = call.service.engine.status.state
    return Health(HEALTH.get(state, "loading"), state, PROTOCOL_VERSION, __version__)


async def models(call: EndpointCall) -> ModelList:
    return ModelList(data=[ModelCard(id=call.service.model)])


async def model(call: EndpointCall) -> ModelCard:
    listed = await models(call)
    for card in listed.data:
        if card.id == call.id:
            return card
    names = ", ".join(card.id for card in listed.data)
    raise ApiError(404, f"no model {call.id!r}: use {names}", "model", "model_not_found")


async def metrics(call: EndpointCall) -> Response:
    metrics = call.service.metrics
    metrics.ready.set(call.service.engine.status.state == "ready")
    return Response(metrics.text(), media_type=CONTENT_TYPE)
