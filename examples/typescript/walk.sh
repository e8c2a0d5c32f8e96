#!/usr/bin/env bash
# Generates types from a gateway's document, compiles walk.ts with them under
# tsc --strict, and runs it against that gateway.
#
#   examples/typescript/walk.sh [FOLDER for what npm installs]
set -euo pipefail
cd "$(dirname "$0")/../.."
for tool in curl go node npm; do
	command -v "$tool" >/dev/null || { echo "walk.sh: $tool is missing: install it first" >&2; exit 1; }
done
from=$PWD/examples/typescript
work=${1:-.tools/typescript}
mkdir -p "$work"
work=$(cd "$work" && pwd)

"$from/install.sh" "$work"
cp "$from"/{walk.ts,tsconfig.json} "$work"

DIR=$(mktemp -d)
PID=''
finish() {
	code=$?
	[ -z "$PID" ] || { kill "$PID" && wait "$PID"; } 2>/dev/null || true
	[ $code -eq 0 ] || { echo "walk.sh: failed; the gateway said:" >&2; tail -n 20 "$DIR/gateway.log" >&2; }
	rm -rf "$DIR"
	exit $code
}
trap finish EXIT

go build -o "$DIR" ./examples/gateway
export CRYPTOPAY_CLIENT_ID=typescript CRYPTOPAY_CLIENT_SECRET=typescript-secret-of-the-day
"$DIR/gateway" -addr 127.0.0.1:0 -store memory -networks TRX >"$DIR/gateway.out" 2>"$DIR/gateway.log" &
PID=$!
for _ in $(seq 300); do
	BASE=$(grep -o 'http://127.0.0.1:[0-9]*' "$DIR/gateway.out" | head -n 1) && [ -n "$BASE" ] && break
	sleep 0.1
done
export BASE
[ -n "$BASE" ] || { echo "walk.sh: the gateway did not start" >&2; exit 1; }

cd "$work"
curl -sS --fail "$BASE/openapi.json" -o openapi.json
node_modules/.bin/openapi-typescript openapi.json -o schema.d.ts >/dev/null
node_modules/.bin/tsc
node out/walk.js
