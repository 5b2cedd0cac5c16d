"""OpenVINO, imported without its telemetry and without the model converter.

Telemetry reports every import, assumes consent, and stores a user id in the home folder. The converter adds half to the
time of the import. OpenVINO works without either.
"""

import importlib.util
import sys

from mercury_engine.api import WITHOUT_OPENVINO, EngineError

sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]
sys.modules["openvino.tools.ovc"] = None  # type: ignore[assignment]

if importlib.util.find_spec("openvino") is None:
    raise EngineError(WITHOUT_OPENVINO)

import openvino as ov  # noqa: E402, F401, TID251
from openvino import opset13 as ops  # noqa: E402, F401, TID251
