#!/bin/sh
# At home: joins the pieces that lie in one folder, 1-model/ and 2-start/ among them.
#     sh training/gpu/join.sh PIECES runs/small
set -eu
pieces=$(realpath "$1")
mkdir -p "$2"
target=$(realpath "$2")
cd "$pieces"
sha256sum --check --quiet sums
cat piece.* | tar -C "$target" -xf -
