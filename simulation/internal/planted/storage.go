package planted

// What goes wrong in stores, and in how everybody uses them.
var storageBugs = []Bug{
	{
		ID: "lost-version-check", File: "storage/verdict/judge.go",
		Old:  `if at(rows[i].Table, rows[i].ID) != rows[i].Version {`,
		New:  `if at(rows[i].Table, rows[i].ID) < rows[i].Version {`,
		What: "a row is overwritten by who read an older version of it",
	},
	{
		ID: "guard-not-held", File: "storage/verdict/judge.go",
		Old:  `if at(c.Require[i].Table, c.Require[i].ID) != c.Require[i].Version {`,
		New:  `if at(c.Require[i].Table, c.Require[i].ID) < c.Require[i].Version {`,
		What: "a Change is made although what it relied on has moved on",
	},
	{
		ID: "claim-without-fence", File: "storage/memory/rows.go",
		Old:  "r.Version++\n",
		New:  "",
		What: "a claim leaves the version as it was: two workers hold one row",
	},
	{
		ID: "due-once", File: "storage/memory/memory.go",
		Old:  `if r.Due > 0 {`,
		New:  `if r.Due > 0 && r.Version == 1 {`,
		What: "a row that is put due again is never claimed again",
	},
	{
		ID: "claim-across-partitions", File: "storage/memory/rows.go",
		Old:  `return (c.Partition == "" || d.p.name == c.Partition) && !slices.Contains(c.Except, d.p.name)`,
		New:  `return !slices.Contains(c.Except, d.p.name)`,
		What: "a claim of one network's work takes another network's",
	},
	{
		ID: "query-across-partitions", File: "storage/memory/rows.go",
		Old: `if q.Partitions == nil {`,
		New: `if len(filters) > 0 {
		q.Partitions = nil
	}
	if q.Partitions == nil {`,
		What: "a query with conditions reads the rows of all tenants",
	},
	{
		ID: "sqlite-claim-without-fence", File: "storage/sqlstore/read.go", Store: "sqlite",
		Old:  `" = ?, claims = claims + 1 WHERE "`,
		New:  `" = ? WHERE "`,
		What: "a claim leaves the stored version as it was",
	},
	{
		ID: "sqlite-held-not-written", File: "storage/sqlstore/write.go", Store: "sqlite",
		Old:  `[]string{"posted", "held", "seq"}`,
		New:  `[]string{"posted", "seq"}`,
		What: "what is held is stored with a new balance and never changed after that",
	},
	{
		ID: "sqlite-real-units", File: "storage/sqlstore/write.go", Store: "sqlite",
		Old:  `int64(b.Posted), int64(b.Held), b.Seq)`,
		New:  `int64(float32(b.Posted)), int64(b.Held), b.Seq)`,
		What: "balances are stored as floating point numbers",
	},
	{
		ID: "sqlite-half-a-change", File: "storage/verdict/judge.go", Store: "sqlite",
		Old:  "post, err := j.post(c)\n\tif err != nil {\n",
		New:  "post, err := j.post(c)\n\tif err != nil {\n\t\tj.applyRows(it)\n",
		What: "a Change that is short of funds leaves its rows behind",
	},
	{
		ID: "sqlite-version-not-written", File: "storage/sqlstore/store.go", Store: "sqlite",
		Old:  `"version = "+brought("version")+" - "+claims,`,
		New:  `"version = "+d.Table(t.Name)+".version"+claims[:0],`,
		What: "a row that is changed keeps its version",
	},
	{
		ID: "sqlite-balances-of-others", File: "storage/sqlstore/read.go", Store: "sqlite",
		Old:  `s.d.Table("balances") + " WHERE part = ?"`,
		New:  `s.d.Table("balances") + " WHERE part >= ?"`,
		What: "a tenant's balances come with those of others",
	},
	{
		ID: "conflict-taken-for-done", File: "storage/decide.go",
		Old:  "if err = CommitOne(ctx, s, c); !errors.Is(err, ErrConflict) {\n\t\t\treturn err",
		New:  "if err = CommitOne(ctx, s, c); err == nil || errors.Is(err, ErrConflict) {\n\t\t\treturn nil",
		What: "who lost a race believes that he has won it",
	},
	{
		ID: "unknown-taken-for-done", File: "storage/decide.go",
		Old:  `return fmt.Errorf("%w: %w", ErrUnknown, err)`,
		New:  `return nil`,
		What: "a commit of which nobody knows the outcome is taken for done",
	},
	{
		ID: "idempotency-not-kept", File: "storage/once.go",
		Old:  "if o.Key == \"\" {\n\t\treturn nil\n\t}",
		New:  "if o.Key == \"\" || o.Encode != nil {\n\t\treturn nil\n\t}",
		What: "the first answer to a key is not kept",
	},
	{
		ID: "idempotency-purged-in-flight", File: "storage/once.go",
		Old:  `OnceTable.Row(o.Key, version, now.Add(OnceFor),`,
		New:  `OnceTable.Row(o.Key, version, now,`,
		What: "the first answer to a key is forgotten at the next purge",
	},
	{
		ID: "place-moved-too-far", File: "storage/stream/deliver.go",
		Old:  `Seen: events[len(events)-1].Number, Updated: now}`,
		New:  `Seen: events[len(events)-1].Number + 1, Updated: now}`,
		What: "a consumer passes over the next event",
	},
}
