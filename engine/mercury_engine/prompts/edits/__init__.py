"""The formats of next-edit models: what they read around the cursor, and what their answers change in it."""

import re

from mercury_engine.api import EngineError
from mercury_engine.prompts.edits import sweep, zeta
from mercury_engine.prompts.edits.asked import EditFormat
from mercury_engine.prompts.edits.asked import EditPrompt as EditPrompt

FORMATS = (zeta.ZETA_2_1, zeta.ZETA_2, zeta.ZETA_1, sweep.SWEEP_2, sweep.SWEEP_1)


def edit_format(name: str) -> EditFormat:
    for candidate in FORMATS:
        if candidate.name == name:
            return candidate
    names = ", ".join(candidate.name for candidate in FORMATS)
    raise EngineError(f"prompt: no such next-edit format as {name!r}; use one of {names}")


def edit_format_for(model: str) -> EditFormat | None:
    """The format of a model by its name: these models have the same special tokens as those that they were made of."""
    return next((candidate for candidate in FORMATS if re.search(candidate.names, model, re.IGNORECASE)), None)
