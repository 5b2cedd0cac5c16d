#!/bin/sh
# The one command for a day with a GPU: tests, then the benchmark; what it says and the figures come home.
#     sh kernels/gpu/day.sh
# With .trip/msgspec-*.whl carried along where Python has no msgspec.
set -eu
cd "$(dirname "$0")/../.."
OUT=${OUT:-kernels-day} TRIP=${TRIP:-.trip} PYTHON=${PYTHON:-python3}
export PYTHONPATH=.:engine:kernels:training PYTHONUNBUFFERED=1 TOKENIZERS_PARALLELISM=false
mkdir -p "$OUT"

"$PYTHON" -c "import msgspec" 2> /dev/null || "$PYTHON" -m pip install --quiet --no-index "$TRIP"/msgspec-*.whl

# Each part has its share of the ten minutes. One whose time is up says what it found, one that hangs is killed.
status=0
timeout --foreground -k 20 "${TEST_SECONDS:-190}" sh kernels/gpu/test.sh > "$OUT/tests.txt" 2>&1 || status=$?
tail -n 20 "$OUT/tests.txt"
timeout --foreground -k 20 "${BENCH_SECONDS:-350}" "$PYTHON" -m bench.kernels --plot "$OUT" ${BENCH_OPTIONS:-} \
    > "$OUT/bench.txt" 2>&1 || status=$?
grep -v '^{' "$OUT/bench.txt" | tail -n 80
grep '^{' "$OUT/bench.txt" | tail -n 1 > "$OUT/figures.json" || true
exit "$status"
