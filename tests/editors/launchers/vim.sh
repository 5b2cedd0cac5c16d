#!/bin/sh
root="$(dirname "$(readlink -f "$0")")/root"
export VIMRUNTIME="$root/usr/share/vim/vim90"
loader="$root/lib/x86_64-linux-gnu"
exec "$loader/ld-linux-x86-64.so.2" --library-path "$loader:$root/{libraries}" "$root/usr/bin/vim.basic" "$@"
