#!/bin/sh
root="$(dirname "$(readlink -f "$0")")/root"
export VIMRUNTIME="$root/usr/share/nvim/runtime"
export LUA_CPATH="$root/{libraries}/lua/5.1/?.so;;"
exec "$root/{libraries}/ld-linux-x86-64.so.2" --library-path "$root/{libraries}" "$root/usr/bin/nvim" "$@"
