#!/usr/bin/env bash
# Starts the shop as its first line says, orders a lamp, plays a customer who pays, and stops the
# shop: it must end by itself, without an error.
#
#   examples/shop/walk.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
dir=$(mktemp -d)
set -m # the shop is a group of its own: a signal is for all of it, as that of a terminal
go run ./examples/shop -addr 127.0.0.1:0 -dir "$dir" -block 100ms >"$dir/out" 2>"$dir/err" &
shop=$!
finish() {
	code=$?
	kill -KILL -- -$shop 2>/dev/null || true
	[ $code -eq 0 ] || { echo "walk.sh: failed; the shop said:" >&2; cat "$dir/out" "$dir/err" >&2; }
	rm -rf "$dir"
	exit $code
}
trap finish EXIT
# wait_for COMMAND…: until it succeeds, for five minutes: the first start compiles
wait_for() {
	for _ in $(seq 600); do
		"$@" && return
		kill -0 $shop 2>/dev/null || return 1
		sleep 0.5
	done
	return 1
}
shown() { curl -sS -b "$dir/jar" "$base$1" | grep -q "$2"; }

wait_for grep -q '^networks' "$dir/out"
base=$(sed -n 's|^shop  *\(http.*\)/$|\1|p' "$dir/out")
send() { curl -sS -f -o "$dir/page" -b "$dir/jar" -c "$dir/jar" "$@"; }
send "$base/"
send -d product=lamp -d do=add "$base/cart"
send "$base/cart"
number=$(sed -n 's|.*name="number" value="\([A-Z2-7]*\)".*|\1|p' "$dir/page")
send -d "number=$number" -d coin=USDTERC20 "$base/orders"
send -d who=pays "$base/orders/$number/customer"
wait_for shown "/orders/$number" 'state paid'
send "$base/pay/docs/"
kill -INT -- -$shop
wait $shop || true # go run says 1 for a program that was interrupted, whatever that says
grep -q ^stopped "$dir/out"
echo "the shop at $base took order $number, was paid, and stopped"
