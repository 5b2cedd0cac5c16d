#!/bin/sh
root="$(dirname "$(readlink -f "$0")")/root"
share="$root/usr/share/emacs/30.2"
programs="$root/usr/libexec/emacs/30.2/x86_64-linux-gnu"
packages="$(printf '%s:' "$root"/usr/share/emacs/site-lisp/elpa-src/*)"
export EMACSLOADPATH="$packages$share/lisp" EMACSDATA="$share/etc" EMACSDOC="$share/etc" EMACSPATH="$programs"
export TERMINFO_DIRS="$root/usr/share/terminfo:/usr/share/terminfo:/lib/terminfo"
exec "$root/{libraries}/ld-linux-x86-64.so.2" --library-path "$root/{libraries}" "$root/usr/bin/emacs-nox" \
  --dump-file="$(echo "$programs"/*.pdmp)" \
  --eval "(setq native-comp-enable-subr-trampolines nil native-comp-jit-compilation nil)" "$@"
