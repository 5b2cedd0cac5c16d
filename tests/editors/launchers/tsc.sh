#!/bin/sh
here="$(dirname "$(readlink -f "$0")")"
exec "$here/../node/node" "$here/node_modules/typescript/lib/tsc.js" "$@"
