#!/bin/sh
here="$(dirname "$(readlink -f "$0")")"
exec "$here/../node/node" "$here/node_modules/code-server/lib/vscode/out/server-main.js" "$@"
