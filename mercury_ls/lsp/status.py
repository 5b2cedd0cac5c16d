"""What users ask about the server: how it is, what it has done, why it is silent, and to be silent for a while."""

import hashlib
from typing import Any

import msgspec
from lsprotocol import types as lsp

from mercury_ls import __version__
from mercury_ls.lsp.protocol import PlaceParams, Position, SnoozeParams, StatsParams, StatusParams
from mercury_ls.lsp.server import Server, status_fields
from mercury_ls.session.session import Session
from mercury_ls.session.stats import markdown, plain, recent
from mercury_ls.wording import one_line, remarks


async def status(ls: Server, params: StatusParams) -> dict[str, Any]:
    ls.follow_user_file()
    session = ls.started
    documents = session.files.documents
    digests = (
        {"digests": {uri: hashlib.sha256(d.text.encode()).hexdigest() for uri, d in documents.items()}}
        if params.digests
        else {}
    )
    return {
        **status_fields(session.engine.status),
        **digests,
        "version": __version__,
        "documents": len(documents),
        "accepted": session.tally.counts["accepted"],
        "rejected": session.tally.counts["rejected"],
        "today": msgspec.to_builtins(recent(session.stats.rows(), 1, session.stats.today)),
        "sent": one_line(session.questions.sent),
        "snoozed": session.clock() < session.questions.snoozed_until,
        "bar": session.questions.budgets.bar,
        "pendingWork": ls.pending_work,
        "problems": [one_line(ls.described(problem)) for problem in [*ls.wiring.loaded.problems, *_unread(session)]],
        "decisions": [*map(one_line, session.decisions)],
    }


def _unread(session: Session) -> list[str]:
    """The files that the index lacks, since they could not be read to their end."""
    return [f"{path} is not in the index: {reason}" for path, reason in session.files.workspace.index.unread.items()]


def status_command(ls: Server) -> dict[str, Any]:
    fields = status_fields(ls.started.engine.status)
    ls.show(
        lsp.MessageType.Info, "; ".join([f"{fields['state']} {fields['model']} {fields['detail']}", *fields["remarks"]])
    )
    return fields


def stats(ls: Server, params: StatsParams) -> dict[str, Any]:
    counted = ls.started.stats
    rows = counted.rows()
    pages = {"page": markdown(rows, counted.where), "plain": plain(rows, counted.where)}
    return {**pages, "days": msgspec.to_builtins(rows)}


async def why(ls: Server, params: PlaceParams) -> dict[str, str]:
    ls.follow_user_file()
    uri = params.text_document.uri
    offset = ls.offset(uri, params.position)
    reasons = {
        "reason": await ls.started.completions.why(uri, offset),
        "nextEdit": await ls.started.next_edits.why(uri, offset),
    }
    return {name: one_line(text) for name, text in {**reasons, "model": _about_model(ls)}.items()}


def _about_model(ls: Server) -> str:
    """In one line; empty if there is nothing to say."""
    session = ls.started
    info, questions = session.engine.status.info, session.questions
    if info is None:
        return ""
    pace = [str(questions.pace)] if questions.pace.first_token_ms else []
    parts = [*remarks(info), *([*pace, str(questions.budgets)] if info.strong else [])]
    return f"{info.model}: {'; '.join(parts)}" if parts else ""


async def why_command(ls: Server, uri: str = "", line: int = 0, character: int = 0) -> str:
    """In one sentence. Without a place, which no menu of commands can name, for where something was last typed."""
    session = ls.started
    place = (uri, ls.offset(uri, Position(line, character))) if uri else session.files.last_place()
    reason = "no document is open"
    if place:
        reason = f"{await session.completions.why(*place)}; next edits: {await session.next_edits.why(*place)}"
        if model := _about_model(ls):
            reason = f"{reason}; {model}"
    reason = one_line(reason)
    ls.show(lsp.MessageType.Info, reason)
    return reason


async def snooze(ls: Server, params: SnoozeParams) -> dict[str, float]:
    ls.started.questions.snooze(params.minutes)
    return {"minutes": params.minutes}


def snooze_command(ls: Server, minutes: float = 5.0) -> None:
    minutes = max(minutes, 0.0)
    ls.started.questions.snooze(minutes)
    length = f"{minutes:g} {'minute' if minutes == 1 else 'minutes'}"
    ls.show(lsp.MessageType.Info, f"no suggestions for {length}" if minutes else "suggestions are on again")
