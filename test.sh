#!/usr/bin/env bash
# Everything that has to hold before a change lands. It installs what the tests
# need beside the project (.tools), or says in one line what is missing.
#
#   ./test.sh          all checks. What is tried on many stores, nodes and ways of a page is tried
#                      on some of them: the commit draws which. make whole tries all
#   ./test.sh tools    only install the tools
set -euo pipefail
cd "$(dirname "$0")"
root=$PWD tools=$PWD/.tools bin=$PWD/.tools/bin

gofumpt=mvdan.cc/gofumpt@v0.12.0
golangci=github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
btcd=github.com/btcsuite/btcd@v0.26.2
deadcode=golang.org/x/tools/cmd/deadcode@v0.52.0
apidiff=golang.org/x/exp/cmd/apidiff@v0.0.0-20261113113407-e3970619a1a4
govulncheck=golang.org/x/vuln/cmd/govulncheck@v1.1.4
npm=internal/testenv/npm # the lockfile of what the tests use of npm

part='' began=0 minutes='' quiet='' memory=''
took() { # notes how long the part that ends now took
	[ -z "$part" ] || minutes+=$(printf '%5.1f min  %s' "$(((SECONDS - began) * 10 / 60))e-1" "$part")$'\n'
	part=$1 began=$SECONDS
}
say() {
	took "$*"
	printf '\n== %s (after %s min)\n' "$*" $((SECONDS / 60))
}
ending() { # what each part took, also where one has failed
	[ -z "$memory" ] || rm -rf "$memory"
	took ''
	[ "$quiet" ] || printf '\n%s%5.1f min  in all\n' "$minutes" "$((SECONDS * 10 / 60))e-1" || true
}
die() {
	printf 'test.sh: %s\n' "$*" >&2
	exit 1
}

listed='' # the packages' lists are fresh
debian() { # debian COMMAND PACKAGE…: install the packages where COMMAND is missing
	local cmd=$1
	shift
	command -v "$cmd" >/dev/null && return
	[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null ||
		die "missing $cmd: install it (Debian: apt-get install $*) and run ./test.sh again"
	[ -n "$listed" ] || apt-get update -qq
	listed=yes
	DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

tool() { # tool NAME MODULE@VERSION: one Go tool at a pinned version
	local name=$1 want=$2
	[ "$(cat "$bin/$name.version" 2>/dev/null)" = "$want" ] && return
	echo "installing $want"
	GOFLAGS= GOBIN=$bin go install "$want" && echo "$want" >"$bin/$name.version"
}

install() {
	command -v go >/dev/null || die "missing go: install Go 1.26 or newer and run ./test.sh again"
	mkdir -p "$bin"
	debian gcc gcc libc6-dev # the race detector links with cgo
	programs &               # mostly waits for downloads, beside what compiles
	local programs=$!
	tool btcd "$btcd"
	tool gofumpt "$gofumpt"
	tool golangci-lint "$golangci"
	tool deadcode "$deadcode"
	[ -z "$(git tag -l 'v*')" ] || tool apidiff "$apidiff" # nothing to compare with
	tool govulncheck "$govulncheck"
	GOFLAGS= go build -buildvcs=false -o "$bin/gethnode" ./internal/testenv/gethnode
	wait "$programs"
}

programs() { # what is not written in Go
	debian npm nodejs npm
	debian curl curl ca-certificates
	debian jq jq
	debian python3 python3
	debian php php-cli # receivers of webhooks are tried in it
	debian openssl openssl
	debian redis-server redis-server
	debian mariadbd mariadb-server galera-4 rsync
	ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || debian pg_ctl postgresql # outside the PATH
	debian litecoind litecoind
	debian hledger hledger
	debian bean-check beancount
	debian softhsm2-util softhsm2 # a hardware module in software
	debian promtool prometheus # rules are tested with it, and against it
	debian chromium-headless-shell chromium-headless-shell # the pages are tried in it
	if ! cmp -s "$npm/package-lock.json" "$tools/npm.version"; then
		echo "installing what $npm/package-lock.json names"
		cp "$npm/package.json" "$npm/package-lock.json" "$tools/"
		# Not npm ci: it also wants each package's builds for other systems.
		npm install --prefix "$tools" --ignore-scripts --no-audit --no-fund --silent || die "npm could not install it"
		cp "$npm/package-lock.json" "$tools/npm.version"
	fi
	examples/typescript/install.sh "$tools/typescript"
}

# Packages in which goroutines meet. In a world only one of them runs at a time, and so
# it is in the tests of orders, of the treasury, of the interface and of an App but for those
# that are named below.
race=(./storage ./storage/{lane,memory,redisstore,seal,storagetest,stream} ./storage/sqlstore/... ./chain/incoming/... ./chain/internal/... ./chain/sim
	./chain/keys/... ./chain/rates/... ./chain/several ./webhook/... ./withdrawal/... ./wallet ./payment/... ./httpapi/{auth,client,limit}/... ./internal/fairpool)

trap ending EXIT
[ "${1:-}" = tools ] && quiet=yes
say tools
install
[ -z "$quiet" ] || exit 0
# With the first of these set a test whose node is missing fails instead of being skipped. What
# still skips are cases of the conformance suite that a network has no notion of
# (memos on Ethereum, coins on account chains), each by name, and what the second does not draw.
export CRYPTOPAY_TEST_FULL=1 PATH=$bin:$PATH
export CRYPTOPAY_TEST_DRAW=${CRYPTOPAY_TEST_DRAW:-$((16#$(git rev-parse --short=8 HEAD)))}
export GOFLAGS="${GOFLAGS:-} -vet=off -ldflags=-w" # golangci-lint has vetted everything, and nobody debugs these programs
# The databases of tests lie in memory where there is room for them and programs may run
# there: kill -9 takes nothing from it either.
memory=$(mktemp -d /dev/shm/cryptopay.XXXXXX 2>/dev/null || true)
if [ -n "$memory" ]; then
	chmod 1777 "$memory"
	printf '#!/bin/sh\n' >"$memory/runs"
	chmod +x "$memory/runs"
	if [ "$(df -Pm "$memory" | awk 'NR == 2 { print $4 }')" -ge 10000 ] && "$memory/runs" 2>/dev/null; then
		export GOTMPDIR=${GOTMPDIR:-${TMPDIR:-/tmp}} TMPDIR=$memory
	fi
fi

say gofumpt
unformatted=$(git ls-files -z --cached --others --exclude-standard '*.go' | xargs -0 gofumpt -l)
[ -z "$unformatted" ] || die "run 'make fmt': $unformatted"

say "modules are as they were downloaded, and go.mod and go.sum name those that are used"
go mod verify
GOFLAGS= go mod tidy -diff || die "run 'go mod tidy'"

say golangci-lint
golangci-lint run --allow-parallel-runners ./...

say deadcode
dead=$(deadcode -test ./...)
[ -z "$dead" ] || die "unreachable functions:
$dead"

say "govulncheck, by the database in internal/vulndb"
rm -rf "$tools/vulndb" && mkdir "$tools/vulndb" && tar xzf internal/vulndb/*.tar.gz -C "$tools/vulndb"
govulncheck -db "file://$tools/vulndb" -scan package ./...

say "what the last version exports is still there"
internal/api/diff.sh "$bin/apidiff"

say "go test, with what CRYPTOPAY_TEST_DRAW=$CRYPTOPAY_TEST_DRAW draws"
export GOGC=300 # programs of tests are small: collecting less often saves a tenth of their CPU
# Later parts kill processes more often and play more worlds, and make nocgo compiles all that there
# is once more. Three packages at a time: many wait for servers.
later='^(TestL01_W02_H01_KilledGatewayLosesAndDoublesNothing|TestFE01_L01_KilledConsumers|TestWorld|TestFS07_WithoutCgo)$'
go test -p 3 -timeout 75m -skip "$later" ./... 2>&1 | tee "$tools/test.log"
say "kill -9, thirty times on durable stores; make kills does a thousand on each"
go test -timeout 20m -count 1 ./examples/gateway -run TestL01 -kills 30 -v | grep -v '^===' | tee -a "$tools/test.log"
go test -timeout 20m -count 1 ./storage/stream -run FE01_L01 -kills 30
say "go test -race, where concurrency lives"
# SQLite and two packages that only compute are compiled without the detector: with it they take ten times as long. A package
# with generic code must not be added: the linker could use its copy, which the detector does not see, in all others.
within=(-gcflags={modernc.org/sqlite/lib,github.com/decred/dcrd/dcrec/secp256k1/v4,golang.org/x/crypto/scrypt}=-race=false)
# Migrations, plans and settings of a database are looked at by one goroutine, and so is what a store finds beside what the
# reference finds; files of seeds, schedules and bombs take long and meet nobody. Of many tenants or addresses no more meet than of few.
alone='^(TestU01_.*|TestPrefix|TestSchemaAndPrefix|TestFP12_LookupsOf.*|TestFP12_ClaimsGoByTime|TestFP08_.*|TestQueriesFindWhatTheReferenceFinds|TestClaimsTakeWhatTheReferenceTakes|TestManySealsAndAccounts|TestL12_EveryByte.*|TestL12_SealsAreTheSame.*|TestL09_MissingTables|TestSeedFile.*|TestK02_ErrorsSayNothing|TestSourceAgainstReference|TestH05_GzipBomb|TestH08_Schedule|TestWholeSchema|TestSchemaOf.*|TestMigrationsMatch.*|TestU02_.*|TestL06_.*|TestL07_ReplicasAreRefused|TestGalera'
alone+='|TestL01_KilledProcess|TestFE01_L01_KilledConsumers|TestW03_OldTransactionsReviveForEver|TestWatched_NeverANoToAMember|TestFS03_MoreTenantsBehindThanAreLeftOut|TestFS03_ScheduleHoldsForEach|TestTurnsOfManyTenants|TestO05_CountsAreBounded|TestScreen_RandomWorlds|TestUncountedBehindATokenOfNobodys|TestPermanentAddress_Many.*|TestFN05_EveryOpenPaymentIsListed)$'
go test -race "${within[@]}" -short -timeout 20m -skip "$alone" "${race[@]}"
go test -race "${within[@]}" -short -timeout 20m -run 'TwoProcesses|TwoWorkers|Concurrent|Run|Clock|C04|FS01' ./chain/outgoing .
go test -race "${within[@]}" -short -timeout 20m -run 'Load|Once|Large|OneReport|Limit' ./httpapi

say "a thousand worlds, each of a week; make worlds plays seeds that no run had before"
go test ./simulation -run 'TestWorld$' -v -world.seeds=1000 -world.from=1000001 -world.promises -timeout 20m
go test ./simulation -run 'TestWorld$' -v -world.store=sqlite -world.seeds=3 -world.from=1000001 -timeout 10m

# Fuzzing compiles all that a package imports anew: here of small ones alone.
say "fuzzing what strangers send, briefly; make fuzz has every target"
FUZZTIME=5s FUZZWORKERS=2 FUZZOUT=$tools/fuzz-brief.txt ./fuzz.sh ledger/FuzzParseAmount chain/address/FuzzParse chain/internal/transport/FuzzSplit

say "the gateway, as a merchant walks it"
examples/gateway/walk.sh

say "the shop, as a customer walks it"
examples/shop/walk.sh # go run ./examples/shop, which serves until it is stopped

say "the same in TypeScript, with types made of the service's document"
examples/typescript/walk.sh "$tools/typescript"

printf '\n== ok\n'
