package planted

// Lines that the reader of chains lacks.
var incomingOmissions = []Bug{
	{
		ID: "omit-incoming-head-age", File: "chain/incoming/settle.go",
		Old: `	if age := asked.Sub(tip.Head.Time); n.cfg.HeadAge > 0 && age > n.cfg.HeadAge {
		err := fmt.Errorf("%w: %s: its head %d is of %s, more than %s ago", ErrStuck, n.name, tip.Head.Height, tip.Head.Time.UTC().Format(time.RFC3339), n.cfg.HeadAge)
		n.setStuck(err.Error())
		return 0, err
	}
`,
		New:     "",
		What:    "transfers become final by a node whose head is old",
		Package: "chain/incoming", Test: "TestD18_StuckHeadStopsCredits",
	},
	{
		ID: "omit-incoming-mempool-gone", File: "chain/incoming/settle.go",
		Old: `	gone, err := n.vanish(ctx, cur, version, waits)
	return worked + gone, err`,
		New:     "\treturn worked, nil",
		What:    "what left the mempool stays seen",
		Package: "chain/incoming", Test: "TestD01_RevertedIsNoDeposit",
	},
	{
		ID: "omit-incoming-unlisted-cap", File: "chain/incoming/sight.go",
		Old: `			if unlisted[t.Block.Hash] > n.cfg.MaxUnlisted {
				if known, err = n.known(ctx, known); err != nil {
					return nil, nil, err
				}
				if !known[contractKey(n.lists.info, t.Contract)] {
					continue
				}
			}
`,
		New: `			_ = known
`,
		What:    "all worthless tokens of a block are recorded",
		Package: "chain/incoming", Test: "TestD19_FloodIsBounded",
	},
	{
		ID: "omit-incoming-page-cut", File: "chain/incoming/scan.go",
		Old: `		if i > 0 && len(found) >= n.cfg.MaxRows {
			blocks = blocks[:i]
			break
		}
`,
		New:     "",
		What:    "one Change holds all transfers of a page",
		Package: "chain/incoming", Test: "TestD19_ManyFullBlocksAreManyChanges",
	},
	{
		ID: "omit-incoming-pool-refill", File: "chain/incoming/pool.go",
		Old: `		n, ferr := p.fill(ctx, network)
		worked += n
		err = errors.Join(err, ferr)
`,
		New: `		_ = network
`,
		What:    "no address is derived ahead",
		Package: "chain/incoming", Test: "TestPool_TakeNeverDerivesWhenFilled",
	},
	{
		ID: "omit-incoming-watched-next-page", File: "chain/incoming/watch.go",
		Old: `		if more && err == nil {
			continue
		}
`,
		New: `		_ = more
`,
		What:    "a process that starts watches the first five thousand addresses",
		Package: "chain/incoming", Test: "TestFP08_TheFirstLookReadsIDs",
	},
	{
		ID: "omit-incoming-conflict", File: "chain/incoming/sight.go",
		Old: `		if t.Block.Hash != "" {
			b.conflict(s)
		}
`,
		New:     "",
		What:    "a transfer whose input another mined one has spent waits to be mined",
		Package: "chain/incoming", Test: "TestD15_ConflictInABlockIsGone",
	},
	{
		ID: "omit-incoming-missing-marks", File: "chain/incoming/settle.go",
		Old: `	if worked, err = n.commitAt(ctx, "gone", version, put, drop...); err != nil {`,
		New: `	_ = drop
	if worked, err = n.commitAt(ctx, "gone", version, put); err != nil {`,
		What:    "marks of transfers that do not wait any more stay",
		Package: ".", Test: "TestFN13_MempoolsThatDifferDoNotFlap",
	},
}
