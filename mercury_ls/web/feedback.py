"""Feedback on answers: /feedback, counted like an editor's reports, and learned from."""

from mercury_ls.web.endpoints import EndpointCall
from mercury_ls.web.schemas import Feedback, Heard


async def hear(call: EndpointCall) -> Heard:
    body: Feedback = call.body
    service, id, client = call.service, body.request_id, call.client
    if body.user_action == "accept":
        return Heard(service.accepted(id, client, None if body.characters is None else int(body.characters)))
    return Heard(service.rejected(id, client) if body.user_action == "reject" else service.passed_over(id, client))
