"""Feedback on answers: /feedback, counted like an editor's reports, and learned from."""

from mercury_ls.web.endpoints import EndpointCall
from mercury_ls.web.schemas import Heard


async def hear(call: EndpointCall) -> Heard:
    return Heard(call.service.heard(call.body, call.client))
