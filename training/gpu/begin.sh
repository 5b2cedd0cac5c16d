#!/bin/sh
# First command on the machine, with .trip carried along: unpacks, tries, begins. Options are those of training.
#     sh training/gpu/begin.sh [--micro 65536]
set -eu
cd "$(dirname "$0")/../.."
TRIP=${TRIP:-.trip} PLACE=${PLACE:-/tmp/trip} PRESET=${PRESET:-small} MINUTES=${MINUTES:-19}
export PYTHONPATH=engine:training:kernels PYTHONUNBUFFERED=1 TOKENIZERS_PARALLELISM=false
export TORCHINDUCTOR_CACHE_DIR="$PLACE/inductor"

python3 -c "import msgspec" 2> /dev/null || python3 -m pip install --quiet --no-index "$TRIP"/msgspec-*.whl
python3 -c "
import sys
from pathlib import Path
from mercury_training.corpus.pack import unpack
unpack(*map(Path, sys.argv[1:]))" "$TRIP/corpus.tar" "$PLACE/corpus"

# What an earlier try left says nothing of this one; what it learned stays beside it.
rm -rf "$PLACE/smoke" "$PLACE/ended"
[ ! -d "$PLACE/run" ] || mv "$PLACE/run" "$PLACE/run.$(date +%s)"

# Eight updates pass through all three shapes of rows: what is compiled here is found again by the run.
timeout 360 python3 -m mercury_training.train --data "$PLACE/corpus" --preset "$PRESET" --steps 8 \
    --out "$PLACE/smoke" "$@"

# shellcheck disable=SC2016
setsid nohup sh -c 'place=$1; shift; python3 -m mercury_training.train "$@"; echo $? > "$place/ended"' sh "$PLACE" \
    --data "$PLACE/corpus" --preset "$PRESET" --minutes "$MINUTES" --checkpoint-minutes 4 --evaluate-minutes 4 \
    --out "$PLACE/run" "$@" > "$PLACE/run.log" 2>&1 < /dev/null &

export POLLS="${FIRST_POLLS:-4}"
exec sh training/gpu/wait.sh
