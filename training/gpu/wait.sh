#!/bin/sh
# Further commands until the run has ended: each watches for nine minutes and brings the log and the curve home.
#     sh training/gpu/wait.sh
set -eu
PLACE=${PLACE:-/tmp/trip} POLLS=${POLLS:-18} PAUSE=${PAUSE:-30}

for _ in $(seq "$POLLS"); do
    [ ! -f "$PLACE/ended" ] || break
    sleep "$PAUSE"
    tail -n 1 "$PLACE/run.log"
    if command -v nvidia-smi > /dev/null; then
        nvidia-smi --query-gpu=utilization.gpu,memory.used --format=csv,noheader
    fi
done
for file in run/log.jsonl run/curve.svg run.log; do
    [ ! -f "$PLACE/$file" ] || cp "$PLACE/$file" "$OUT"
done
if [ ! -f "$PLACE/ended" ]; then
    echo "still running: wait again, at once"
elif [ "$(cat "$PLACE/ended")" != 0 ]; then
    tail -n 30 "$PLACE/run.log"
    exit 1
else
    echo "ended: send home"
fi
