"""OpenVINO as it is imported here: without the package that tells its makers of every import, and without the model
converter, which takes half as long to import as all the rest.

The first takes consent for granted, and keeps an identifier of the user in the home folder. OpenVINO does without
either where it is not installed.
"""

import sys

sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]
sys.modules["openvino.tools.ovc"] = None  # type: ignore[assignment]

import openvino as ov  # noqa: E402, TID251
from openvino import opset13 as ops  # noqa: E402, TID251

__all__ = ["ops", "ov"]
