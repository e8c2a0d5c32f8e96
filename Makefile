.PHONY: test fmt lint bench fuzz generate planted vuln

test: ## everything that CI runs
	./test.sh

fmt:
	./test.sh tools
	.tools/bin/gofumpt -w $$(git ls-files '*.go')

lint:
	./test.sh tools
	.tools/bin/golangci-lint run ./...

generate: ## MACHINE.md of every state machine and its golden table
	go test ./payment ./withdrawal ./wallet -run Machine -update

bench: ## the figures of docs/performance.md, as ratios within one run
	go test -run '^$$' -bench . -benchtime 1s -count 6 $(or $(PKG),./...)

fuzz: ## every fuzz target, one after another: FUZZTIME=10m; figures in .tools/fuzz.txt
	./fuzz.sh

vuln: ## VULNDB=file:///path/to/an/unpacked/database
	govulncheck $(if $(VULNDB),-db $(VULNDB)) -scan package ./...

planted: ## every planted bug must be found: RUN=regexp plants some, without it docs/reliability.md is written
	nice go run -tags planted ./chain/sim/world/internal/planted/hunt $(if $(RUN),-tell -run '$(RUN)',-write docs/reliability.md)
