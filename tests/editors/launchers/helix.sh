#!/bin/sh
root="$(dirname "$(readlink -f "$0")")/root"
export HELIX_RUNTIME="$root/usr/lib/hx/runtime"
exec "$root/{libraries}/ld-linux-x86-64.so.2" --library-path "$root/{libraries}" "$root/usr/bin/hx" "$@"
