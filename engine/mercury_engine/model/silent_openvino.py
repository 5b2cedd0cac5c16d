"""OpenVINO, imported without its telemetry and without the model converter.

Telemetry reports every import, assumes consent, and stores a user id in the home folder. The converter adds half to the
time of the import. OpenVINO works without either.
"""

import sys

from mercury_engine.api import WITHOUT_OPENVINO, EngineError

sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]
sys.modules["openvino.tools.ovc"] = None  # type: ignore[assignment]

try:
    import openvino as ov  # noqa: TID251
    from openvino import opset13 as ops  # noqa: TID251
except ModuleNotFoundError as error:
    raise EngineError(WITHOUT_OPENVINO) from error

__all__ = ["ops", "ov"]
