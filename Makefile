.PHONY: whole nocgo viewers coins test fmt lint bench fuzz generate planted vuln failover kills dust bench-reads worlds mutation

test: ## everything that CI runs
	./test.sh

whole: ## every test in every place: on all stores, nodes and ways of a page, of which ./test.sh draws some
	./test.sh tools
	PATH=$(CURDIR)/.tools/bin:$$PATH CRYPTOPAY_TEST_FULL=1 CRYPTOPAY_TEST_DRAW= go test -p 3 -timeout 3h ./...

fmt:
	./test.sh tools
	.tools/bin/gofumpt -w $$(git ls-files '*.go')

lint:
	./test.sh tools
	.tools/bin/golangci-lint run ./...

generate: ## MACHINE.md of every state machine and its golden table; the schema of a new SQLite file; NOTICE; docs/packages.md, currencies.md and routes.md; the list of what is exported; the answers that /docs/ shows
	go test ./payment ./withdrawal ./wallet ./wallet/treasury ./chain/outgoing -run Machine -update
	go test ./storage/sqlstore/sqlite -run TestWholeSchema -update
	go test ./internal/docs -run 'TestImports|TestCurrenciesPage' -update
	go test ./internal/licences ./internal/api -update
	go test ./httpapi -run 'TestManual_Every|TestRoutesPage' -update

bench: ## the figures of docs/evidence/performance.md, as ratios within one run
	go test -run '^$$' -bench . -benchtime 1s -count 6 $(or $(PKG),./...)

fuzz: ## every fuzz target, one after another: FUZZTIME=10m; figures in .tools/fuzz.txt
	./fuzz.sh

kills: ## a thousand kills of the gateway, and of processes that hear events, on each durable store; an hour
	./test.sh tools
	go test ./examples/gateway -run TestL01 -kills 1000 -timeout 3h -v
	go test ./storage/stream -run FE01_L01 -kills 1000 -timeout 3h -v

bench-reads: ## what merchants and the operator read, at 10^4, 10^5 and 10^6 rows of a tenant, on real databases; hours
	./test.sh tools
	CRYPTOPAY_TEST_FULL=1 go test -run '^$$' -bench Reads -benchtime 3x -timeout 12h -reads.rows $(or $(ROWS),10000,100000,1000000) .

dust: ## ten thousand payments of two cents: what forwarding costs is at most half of what it moves
	go test ./wallet/treasury -run TestFT02_Dust -dust 10000 -timeout 2h -v

coins: ## payouts of 3 to 200 coins, and of N=2000 that are merged first, on real nodes of BTC and LTC
	./test.sh tools
	CRYPTOPAY_TEST_FULL=1 go test ./internal/e2e -run 'TestCoinsFN02|TestCoinsFT04' -coins $(or $(N),2000) -timeout 1h -v

viewers: ## live viewers of the checkout in one process, from another: memory per viewer above a bare stream, and that a change reaches all: N=10000, PAYMENTS=1
	ulimit -n 65536 2>/dev/null; go test ./httpapi/checkout -v -run TestViewers -viewers $(or $(N),10000) -viewers.payments $(or $(PAYMENTS),1) -timeout 30m -count 1

worlds: ## worlds of a week from seeds that no run had before: N=20000
	go test ./simulation -run 'TestWorld$$' -v -world.promises -world.seeds=$(or $(N),20000) -world.from=0 -timeout 4h

failover: ## leaders of replicated databases are killed in the middle of a run; installs Debian packages
	./test.sh tools
	command -v patroni >/dev/null && command -v etcd >/dev/null && command -v redis-server >/dev/null || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql patroni etcd-server redis-server; }
	CRYPTOPAY_FAILOVER=1 CRYPTOPAY_TEST_FULL=1 go test ./internal/failover -timeout 30m -v -count 1

vuln: ## what is known of the modules' vulnerabilities: VULNDB=https://vuln.go.dev asks the live database
	./test.sh tools
	.tools/bin/govulncheck -db $(VULNDB) ./...

planted: ## every planted bug must be found: RUN=regexp plants some (RUN=F: the removals of docs/evidence/faults.md), without it docs/evidence/reliability.md is written; WORLDS=1: those alone that worlds find; KEEP=file: goes on where a run of the same program was stopped
	./test.sh tools
	PATH=$(CURDIR)/.tools/bin:$$PATH CRYPTOPAY_TEST_FULL=1 nice go run -tags planted ./simulation/internal/planted/hunt $(if $(WORLDS),-worlds) $(if $(KEEP),-keep '$(KEEP)') $(if $(RUN),-tell -run '$(RUN)',-write docs/evidence/reliability.md)

mutation: ## what the tests of one package find: PKG=ledger; N=200 mutants, drawn by SEED=1, for FOR=1h at most; RESUME=file goes on from there, AGAIN=1 with its survivors; FURTHER=0 runs its own tests alone, FAST=1 with -short; writes docs/evidence/mutation.md
	./test.sh tools
	PATH=$(CURDIR)/.tools/bin:$$PATH CRYPTOPAY_TEST_FULL=1 nice go run ./internal/mutation -pkg '$(PKG)' -n $(or $(N),200) -seed $(or $(SEED),1) -for $(or $(FOR),1h) $(if $(RESUME),-resume '$(RESUME)') $(if $(AGAIN),-again) $(if $(FURTHER),-further $(FURTHER)) $(if $(FAST),-fast) -write docs/evidence/mutation.md

nocgo: ## the signer without cgo, and so without a hardware module
	go test ./examples/signer -run TestFS07_WithoutCgo -count 1
