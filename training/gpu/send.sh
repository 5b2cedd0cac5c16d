#!/bin/sh
# Last commands: four pieces of 15 MiB a call, first those with the model, then those with what a longer run starts from.
#     sh training/gpu/send.sh 0      and 1, 2, until it says that there are no more
set -eu
PLACE=${PLACE:-/tmp/trip} PIECE=${PIECE:-15M}
export PLACE

if [ ! -f "$PLACE/pieces/sums" ]; then
    rm -rf "${PLACE:?}/home" "$PLACE/pieces"
    mkdir -p "$PLACE/home" "$PLACE/pieces"
    python3 - << 'END'
import os
import shutil
from pathlib import Path

from safetensors.torch import load_file, save_file

run, home = Path(os.environ["PLACE"], "run"), Path(os.environ["PLACE"], "home")
start = run / "pre-decay"
if not start.exists():
    start = sorted(path for path in (run / "checkpoints").iterdir() if path.name.isdigit())[-1]
for folder, name, file in ((run / "model", "1-model", "model"), (start, "2-start", "weights")):
    if not folder.exists():
        continue
    (home / name).mkdir()
    weights = load_file(folder / f"{file}.safetensors")
    save_file({n: weight.bfloat16() for n, weight in weights.items()}, home / name / f"{file}.safetensors")
    for path in folder.glob("*.json"):
        shutil.copy(path, home / name)
END
    cp "$PLACE/run/log.jsonl" "$PLACE/run/curve.svg" "$PLACE/home"
    tar -C "$PLACE/home" --sort=name -cf - . | split --bytes="$PIECE" --numeric-suffixes - "$PLACE/pieces/piece."
    (cd "$PLACE/pieces" && sha256sum piece.* > sums.partial && mv sums.partial sums)
fi

cd "$PLACE/pieces"
for number in 0 1 2 3; do
    name=$(printf "piece.%02d" $((4 * $1 + number)))
    [ ! -f "$name" ] || cp "$name" "$OUT"
done
cp sums "$OUT"
next=$(printf "piece.%02d" $((4 * $1 + 4)))
if [ -f "$next" ]; then echo "more: send $(($1 + 1))"; else echo "no more: join them at home"; fi
