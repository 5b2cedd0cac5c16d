"""Prompts of other people's models as programs send them, and answers in kind: what `dialects` and `edits` write is
read here."""

from mercury_engine.prompts.received import sweep, zeta
from mercury_engine.prompts.received.gap import gap_in
from mercury_engine.prompts.received.inception import edit_in as edit_in
from mercury_engine.prompts.received.parts import ReceivedGap, ReceivedRegion


def received(prompt: str) -> ReceivedGap | ReceivedRegion | None:
    """What a prompt asks for, by the tokens in it; None if it is plain text."""
    return zeta.region_in(prompt) or sweep.region_in(prompt) or gap_in(prompt)
