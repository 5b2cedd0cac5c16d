#!/bin/sh
root="$(dirname "$(readlink -f "$0")")/root"
export FONTCONFIG_FILE="$root/../fonts.conf"
export LD_LIBRARY_PATH="$root/{libraries}:$root/{libraries}/pulseaudio"
exec "$root/usr/lib/chromium/chromium" "$@"
