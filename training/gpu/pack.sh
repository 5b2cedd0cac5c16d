#!/bin/sh
# At home: packs a corpus into .trip/corpus.tar, in the room that a machine's 64 MiB leaves beside the working tree.
#     sh training/gpu/pack.sh corpus/v2
set -eu
corpus=$(realpath "$1")
cd "$(dirname "$0")/../.."
TRIP=${TRIP:-.trip}

tree=$(git ls-files -z --cached --others --exclude-standard | xargs -0 du --bytes --total | tail -n 1 | cut -f 1)
room=${MEBIBYTES:-$(((64 * 1024 * 1024 - tree) / 1024 / 1024 - 1))}
if [ "$room" -lt 16 ]; then
    echo "$0: the working tree takes $((tree / 1024 / 1024)) of 64 MiB, which leaves $room for the corpus:" \
        "work from a branch without the models" >&2
    exit 1
fi
mkdir -p "$TRIP"
python3 -m mercury_training.corpus pack "$corpus" "$TRIP/corpus.tar" --mebibytes "$room"
