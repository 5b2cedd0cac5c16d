"""OpenVINO reports nothing to its makers: the package that would is never imported."""

import subprocess
import sys

IMPORTED = """
import sys
from mercury_engine.model.silent_openvino import ops, ov
print(sys.modules["openvino_telemetry"], any(name.startswith("openvino_telemetry.") for name in sys.modules))
"""


def test_telemetry_is_never_imported():
    done = subprocess.run([sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["None", "False"]
