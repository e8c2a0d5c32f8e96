package main

// suite is the tests of one package, or some of them.
type suite struct {
	dir  string   // of the package, from the module's root
	args []string // for its test program
}

// worlds are a few brief ones. They play what a seed draws on the whole library.
var worlds = suite{"simulation", []string{"-test.run=^TestWorld$", "-world.seeds=20", "-world.shrink=false"}}

// further are the suites that a package belongs to besides its own tests, the
// fastest first. A store runs storage/storagetest, and a chain client
// chain/chaintest, in its own tests.
var further = map[string][]suite{
	".":                        {worlds},
	"chain":                    {{dir: "chain/sim"}, worlds},
	"chain/incoming":           {worlds},
	"chain/internal/follow":    {{dir: "chain/evm"}},
	"chain/internal/proof":     {{dir: "chain"}, {dir: "chain/outgoing"}, {dir: "chain/sim"}},
	"chain/internal/transport": {{dir: "chain/evm"}},
	"chain/keys":               {worlds},
	"chain/outgoing":           {worlds},
	"chain/rates":              {worlds},
	"chain/sim":                {worlds},
	"httpapi":                  {{dir: "httpapi/client"}},
	"httpapi/auth":             {{dir: "httpapi"}},
	"httpapi/limit":            {{dir: "httpapi/limit/redislimit"}, {dir: "httpapi"}},
	"internal/fairpool":        {{dir: "webhook"}},
	"internal/fault":           {{dir: "payment"}, {dir: "withdrawal"}, {dir: "wallet"}, {dir: "httpapi"}},
	"internal/fsm":             {{dir: "payment"}, {dir: "withdrawal"}, {dir: "wallet"}, worlds},
	"internal/safehttp":        {{dir: "chain/rates"}, {dir: "webhook"}},
	"ledger":                   {{dir: "storage/memory"}, worlds},
	"payment":                  {worlds},
	"storage":                  {{dir: "storage/memory"}, {dir: "storage/sqlstore/sqlite"}, worlds},
	"storage/lane":             {{dir: "storage/sqlstore/sqlite"}},
	"storage/memory":           {worlds},
	"storage/sqlstore":         {{dir: "storage/sqlstore/sqlite"}, {dir: "storage/sqlstore/postgres"}, {dir: "storage/sqlstore/mysql"}},
	"storage/verdict":          {{dir: "storage/memory"}, {dir: "storage/sqlstore/sqlite"}, worlds},
	"wallet":                   {worlds},
	"wallet/treasury":          {worlds},
	"webhook":                  {worlds},
	"withdrawal":               {worlds},
}
