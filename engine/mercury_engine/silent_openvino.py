"""OpenVINO as it is imported here: without the package that tells its makers of every import.

Consent is taken for granted there, and an identifier of the user kept in the home folder. OpenVINO does without the
package where that is not installed.
"""

import sys

sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]

import openvino as ov  # noqa: E402, TID251
from openvino import opset13 as ops  # noqa: E402, TID251

__all__ = ["ops", "ov"]
