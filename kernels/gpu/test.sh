#!/bin/sh
# Runs the kernels, the runtime and the engine on the GPU of this machine, and says on which; without one it says so.
#     sh kernels/gpu/test.sh
set -eu
cd "$(dirname "$0")/../.."
export PYTHONPATH=.:engine:kernels:training PYTHONUNBUFFERED=1 TOKENIZERS_PARALLELISM=false

status=0
python3 - << 'END' || status=$?
import sys

import torch

if not torch.cuda.is_available():
    print(f"skipped: torch {torch.__version__} finds no GPU; `make test` runs the kernels in the interpreter")
    sys.exit(3)
import triton

at = "sm_{}{}".format(*torch.cuda.get_device_capability())
print(f"{torch.cuda.get_device_name()}, {at}, torch {torch.__version__}, triton {triton.__version__}")
END
if [ "$status" = 3 ]; then exit 0; fi
[ "$status" = 0 ] || exit "$status"
# The settings of the project name plug-ins that a rented machine does not have. Several processes compile at once, and a
# fault that leaves one of them without a GPU spares the others.
exec python3 -c "import signal, sys, pytest
signal.signal(signal.SIGTERM, signal.default_int_handler)
sys.exit(pytest.main())" -c /dev/null --rootdir . --import-mode importlib -q -p no:cacheprovider -W ignore \
    -n "${TEST_PROCESSES:-6}" -o faulthandler_timeout=100 --durations 5 \
    tests/kernels tests/engine/model/gpu tests/bench/kernels
