#!/usr/bin/env bash
# Walks the whole interface with curl and jq, as a merchant would: token,
# payment, pay, mine, webhook, balance, wallet, transfer, withdrawal, history,
# export. It starts a gateway and a receiver of its own in a temporary folder,
# and stops with an error at the first answer that is not the expected one.
#
#   examples/gateway/walk.sh
set -euo pipefail
cd "$(dirname "$0")/../.."
for tool in curl jq go; do
	command -v "$tool" >/dev/null || { echo "walk.sh: $tool is missing: install it first" >&2; exit 1; }
done

DIR=$(mktemp -d)
PIDS=()
finish() {
	code=$?
	for pid in "${PIDS[@]}"; do kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null || true; done
	[ $code -eq 0 ] || { echo "walk.sh: failed; the gateway said:" >&2; tail -n 20 "$DIR/gateway.log" >&2; }
	rm -rf "$DIR"
	exit $code
}
trap finish EXIT

say() { printf '\n— %s\n' "$*"; }
die() { echo "walk.sh: $*" >&2; exit 1; }
# expect WHAT ACTUAL EXPECTED
expect() { [ "$2" = "$3" ] || die "$1 is $2, expected $3"; echo "  $1: $2"; }
# call METHOD PATH [BODY]: an authorised request; stops on an error answer.
call() {
	curl -sS --fail-with-body -X "$1" -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' ${3+-d "$3"} "$BASE$2" || die "$1 $2 failed"
}
# refused STATUS CODE METHOD PATH [BODY]: a request that must be refused so.
refused() {
	local answer status
	answer=$(curl -sS -w '\n%{http_code}' -X "$3" -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' ${5+-d "$5"} "$BASE$4")
	status=${answer##*$'\n'}
	expect "$3 $4 is refused with" "$status $(jq -r .error.code <<<"${answer%$'\n'*}")" "$1 $2"
}
# address_of FILE: waits until a program has said where it listens.
address_of() {
	for _ in $(seq 300); do
		if grep -q 'http://127.0.0.1:[0-9]' "$1"; then
			grep -o 'http://127.0.0.1:[0-9]*' "$1" | head -n 1
			return
		fi
		sleep 0.1
	done
	die "a program did not start: $(cat "$1")"
}

say "A gateway on simulated chains, and a receiver of its webhooks"
go build -o "$DIR" ./examples/gateway ./examples/receiver
"$DIR/receiver" -addr 127.0.0.1:0 -tolerance 10000h -secret-file "$DIR/secret" >"$DIR/events" 2>"$DIR/receiver.log" &
PIDS+=($!)
RECEIVER=$(address_of "$DIR/receiver.log")
export CRYPTOPAY_CLIENT_ID=walker CRYPTOPAY_CLIENT_SECRET=walker-secret-of-the-day CRYPTOPAY_ALLOW_PRIVATE_CALLBACKS=1 CRYPTOPAY_API_KEY=walker-key-of-the-day
"$DIR/gateway" -addr 127.0.0.1:0 -store "sqlite:$DIR/walk.db" -networks TRX,ETH,BTC >"$DIR/gateway.out" 2>"$DIR/gateway.log" &
PIDS+=($!)
BASE=$(address_of "$DIR/gateway.out")
expect "status" "$(curl -sS "$BASE/status/" | jq -r .status)" ok

say "A token"
TOKEN=$(curl -sS -u "$CRYPTOPAY_CLIENT_ID:$CRYPTOPAY_CLIENT_SECRET" -d 'grant_type=client_credentials' -d 'scope=read write admin' "$BASE/o/token/" | jq -er .access_token)
expect "account" "$(call GET /user/me/ | jq -r .transaction_fee)" 0.50

say "Webhooks"
call POST /user/webhooks/ "{\"callback_url\": \"$RECEIVER\"}" | jq -er .secret >"$DIR/secret"
expect "test delivery" "$(call POST /user/webhooks/test/ '{"event_type": "payment_status_update"}' | jq -r .status)" delivered

say "Currencies and rates"
call GET '/currencies/?full=true&min_max=true' | jq -c '.currencies[] | select(.currency == "USDTTRC20")'
call GET '/rates/?currency_from=USD&currency_to=BTC&amount=100' | jq -c .

say "A payment"
PAYMENT=$(call POST /payments/ '{"amount": "25.00", "currency": "USDTTRC20", "order_id": "walk-1"}')
ID=$(jq -r .transaction_id <<<"$PAYMENT")
expect "status" "$(jq -r .status <<<"$PAYMENT")" waiting
jq '{address, currency, amount: .amount_crypto}' <<<"$PAYMENT" | curl -sS --fail-with-body -H 'Content-Type: application/json' -d @- "$BASE/dev/pay" | jq -c .
expect "status" "$(call POST /payments/status/ "{\"transaction_id\": \"$ID\"}" | jq -r .status)" confirming
call POST /dev/mine '{"blockchain": "TRX", "blocks": 90}' >/dev/null
expect "status" "$(call POST /payments/status/ "{\"transaction_id\": \"$ID\"}" | jq -r .status)" completed
expect "payments listed" "$(call GET '/payments/?status=completed' | jq -r .count)" 1
refused 400 invalid_request POST /payments/ '{"amount": "-1", "currency": "USDTTRC20"}'
refused 422 invalid_currency POST /payments/ '{"amount": "5", "currency": "DOGETRC20"}'
# 0.5 % of 25 is the platform's.
expect "balance" "$(call GET /user/balances/ | jq -r .account.USDTTRC20.amount)" 24.87500000

say "A wallet and transfers"
WALLET=$(call POST /wallets/ '{"name": "Savings", "external_id": "savings"}' | jq -r .wallet_id)
call POST /wallets/transfer-to-user/ "{\"wallet_id\": \"$WALLET\", \"currency\": \"USDTTRC20\", \"amount\": \"10\"}" | jq -c .
call POST /dev/settle '{}' >/dev/null
expect "wallet has" "$(call POST /wallets/balances/ '{"external_id": "savings"}' | jq -r '.balances[0].available_balance')" 10.00000000
call POST /wallets/withdraw-to-master/ "{\"wallet_id\": \"$WALLET\", \"currency\": \"USDTTRC20\", \"amount\": \"4\"}" >/dev/null
call POST /dev/settle '{}' >/dev/null
expect "wallet has" "$(call POST /wallets/balances/ '{"external_id": "savings"}' | jq -r '.balances[0].available_balance')" 6.00000000
expect "transfers completed" "$(call POST /wallets/transfer-history/ '{"status": "completed"}' | jq -r .pagination.total)" 2
expect "wallets by API key" "$(curl -sS -H "X-API-Key: $CRYPTOPAY_API_KEY" "$BASE/wallets/" | jq -r .total)" 1

say "A withdrawal"
TO=TJRabPrwbZy45sbavfcjinPJC18kjpRTv8
expect "address is valid" "$(call POST /withdrawal/validate-address/ "{\"address\": \"$TO\", \"blockchain\": \"TRX\"}" | jq -r .is_valid)" true
call POST /withdrawal/estimate/ "{\"amount\": \"12\", \"currency\": \"USDTTRC20\", \"address\": \"$TO\"}" | jq -c .
OUT=$(curl -sS --fail-with-body -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -H 'Idempotency-Key: walk-out' \
	-d "{\"amount\": \"12\", \"currency\": \"USDTTRC20\", \"address\": \"$TO\", \"custom_id\": \"invoice-7\"}" "$BASE/withdrawal/" | jq -r .withdrawal_id)
AGAIN=$(curl -sS --fail-with-body -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -H 'Idempotency-Key: walk-out' \
	-d "{\"amount\": \"12\", \"currency\": \"USDTTRC20\", \"address\": \"$TO\", \"custom_id\": \"invoice-7\"}" "$BASE/withdrawal/" | jq -r .withdrawal_id)
expect "the same key gives" "$AGAIN" "$OUT"
refused 400 insufficient_balance POST /withdrawal/ "{\"amount\": \"1000\", \"currency\": \"USDTTRC20\", \"address\": \"$TO\"}"
call POST /dev/mine '{"blockchain": "TRX", "blocks": 24}' >/dev/null
expect "withdrawal" "$(call GET "/withdrawal/$OUT/" | jq -r .status)" completed

say "History and export"
expect "history has" "$(call GET '/transactions/transactions/?page_size=10' | jq -r .count)" 2
expect "movements" "$(call GET '/user/balances/history/?currency=USDTTRC20' | jq -r .total)" 4
call POST /transactions/export/ '{"format": "csv"}' | tee "$DIR/export.csv"
expect "exported lines" "$(wc -l <"$DIR/export.csv" | tr -d ' ')" 3

say "What the receiver got"
for _ in $(seq 100); do
	grep -q '"status":"completed".*invoice-7' "$DIR/events" && break
	sleep 0.1
done
jq -r '"  " + .event + " " + (.data.status // "")' "$DIR/events" | sort | uniq -c
grep -q '"status":"completed".*invoice-7' "$DIR/events" || die "the withdrawal's webhook did not come"
if grep -q refused "$DIR/receiver.log"; then die "a webhook had a bad signature"; fi

say "A graceful stop"
kill -TERM "${PIDS[1]}"
wait "${PIDS[1]}" || die "the gateway did not exit with 0"
PIDS=("${PIDS[0]}")
echo "  done"
