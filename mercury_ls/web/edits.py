"""Next edits in Inception's dialect: /v1/edit/completions."""

import time

from mercury_engine.prompts.received import edit_in
from mercury_ls.web.completions import new_id, text_of, usage
from mercury_ls.web.endpoints import EndpointCall
from mercury_ls.web.errors import ApiError
from mercury_ls.web.schemas import EditChoice, EditRequest, EditResponse, Rewritten
from mercury_ls.web.service import Wish


async def edit(call: EndpointCall) -> EditResponse:
    """The code to edit after the edit, in a fence; "None" if no edit is due."""
    body: EditRequest = call.body
    region = edit_in(body.messages[0].content)
    if region is None:
        raise ApiError(
            400,
            "the message has no code to edit: put it between <|code_to_edit|> and <|/code_to_edit|>",
            "messages[0].content",
            "missing_tags",
        )
    text, wish = text_of(region), Wish(id=new_id(), effort=body.reasoning_effort, deadline_ms=body.deadline_ms)
    answer, new = await call.service.rewrite(text, (region.start, region.end), wish, call.client)
    return EditResponse(
        id=wish.id,
        created=int(time.time()),
        model=call.service.model,
        choices=[EditChoice(message=Rewritten(content=region.answer(new)))],
        usage=usage(call, text, answer),
    )
