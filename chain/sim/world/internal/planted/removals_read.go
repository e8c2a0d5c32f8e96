package planted

// Reads that grow.
var readRemovals = []Bug{
	{
		ID: "FP08-no-index-named", File: "storage/sqlstore/mysql/mysql.go",
		Old:  "	UseIndex:    \" FORCE INDEX (%s)\",\n",
		New:  "",
		What: "old pages of a history on MariaDB are reached through every newer row", Package: "./storage/sqlstore/mysql",
		Test: "TestFP08_OldPagesAreNotReachedThroughNewerRows",
	},
	{
		ID: "FP12-plans-of-an-empty-table", File: "storage/sqlstore/session.go",
		Old:     "!s.own || !s.work.Add(more)",
		New:     "!s.own || s.work.Add(more) || true",
		What:    "a writing connection keeps the plans that were made while a table was empty",
		Package: "storage/sqlstore/postgres", Test: "TestFP12_LookupsOfAYoungTable",
	},
	{
		ID: "FP12-statistics-of-tenants", File: "storage/sqlstore/postgres/postgres.go",
		Old:     "	AfterTable:  `ALTER TABLE %s ALTER COLUMN part SET STATISTICS 0`, // see replan",
		New:     "",
		What:    "the server expects as many rows of each tenant as of the average",
		Package: "storage/sqlstore/postgres", Test: "TestFP12_LookupsOfAHotTenantAmongMany",
	},
	{
		ID: "FP02-parallel-reads", File: "storage/sqlstore/postgres/postgres.go",
		Old:     `"max_parallel_workers_per_gather"] = "0"`,
		New:     `"max_parallel_workers_per_gather"] = "2"`,
		What:    "the server starts workers to read a page",
		Package: "storage/sqlstore/postgres", Test: "TestFP02_ReadingStartsNoWorkers",
	},
	{
		ID: "FP06-another-order", File: "activity.go",
		Old:     `Order: []storage.Order{{Column: "created_at", Desc: true}}, Limit: exportPage,`,
		New:     `Order: []storage.Order{{Column: "updated_at", Desc: true}}, Limit: exportPage,`,
		What:    "each page of an export sorts all older lines",
		Package: ".", Test: "TestFP06_ExportReadsEachLineOnce",
	},
	{
		ID: "FP04-asked-again", File: "storage/once.go",
		Old:     "if o.known == nil {",
		New:     "if true {",
		What:    "each layer asks the store for the key of a request",
		Package: "httpapi", Test: "TestFP04_AKeyIsLookedUpOnce",
	},
	{
		ID: "FP08-whole-rows", File: "chain/incoming/watch.go",
		Old:     "Limit: syncPage, IDs: many,",
		New:     "Limit: syncPage,",
		What:    "the first look at a long directory reads whole rows",
		Package: "chain/incoming", Test: "TestFP08_TheFirstLookReadsIDs",
	},
	{
		ID: "FP05-sorted-for-a-page", File: "activity.go",
		Old:  "\t\tOrder: []storage.Order{{Column: \"created_at\", Desc: true}},\n\t}",
		New:  "\t\tOrder: []storage.Order{{Column: \"updated_at\", Desc: true}},\n\t}",
		What: "each page of the history sorts all lines", Package: ".", Test: "TestFP05_APageOfTheHistoryReadsItself",
	},
}
