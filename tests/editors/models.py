"""Which models the tests of editors run with: the fake one and quicksilver, or what `MERCURY_TEST_MODEL` names.

That is the one variable for all of them: the name or the folder of a model that takes the place of quicksilver.
"""

import os

from mercury_engine.model_folders import FAKE

__all__ = ["FAKE", "MODELS", "SHIPPED", "STEADY", "named", "parameter"]

SHIPPED = "shipped"
MODELS = (FAKE, SHIPPED)
STEADY = {"MERCURY_ENGINE_DEADLINE_MS": "60000", "MERCURY_SUGGEST_MINIMUM_PROBABILITY": "0.05"}
"""An answer then depends on text and weights alone: not on how busy the machine is, nor on how sure a model is."""


def parameter(item, name: str) -> object:
    """A parameter of a test, if it has it."""
    return item.callspec.params.get(name) if hasattr(item, "callspec") else None


def named(model: str) -> str:
    """The value of `engine.model` for one of `MODELS`."""
    if model == FAKE:
        return FAKE
    return os.environ.get("MERCURY_TEST_MODEL") or "quicksilver"
