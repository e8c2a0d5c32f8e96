package planted

// The host hears of the house: sweeps, orders of the house's own, halts, forks, funds, and
// what operators do.
var houseBugs = []Bug{
	{
		ID: "sweep-ends-alone-told", File: "wallet/treasury/told.go",
		Old:  `if j.s.State == j.from && j.note.Waiting == j.told.Waiting && !long {`,
		New:  `if j.s.State != SweepDone && j.s.State != SweepReplaced && !long {`,
		What: "the host hears of a sweep when it has ended, and not before",
	},
	{
		ID: "order-told-by-its-reason", File: "chain/outgoing/told.go",
		Old:     `if kind == "" || v.State == was && v.Reason == waited {`,
		New:     `if kind == "" || v.Reason == waited {`,
		What:    "the host hears of an order of the house's own only where its reason to wait changes",
		Package: "chain/outgoing", Test: "TestFE01_EveryMoveOfAnOrderIsTold",
	},
	{
		ID: "lift-not-told", File: "chain/outgoing/told.go",
		Old:     `tell(h, false)`,
		New:     `continue`,
		What:    "the host hears that a network is halted, and never that it was lifted",
		Package: ".", Test: "TestFE01_HostHearsOfHaltsForksAndOperators/memory",
	},
	{
		ID: "new-order-not-told", File: "chain/outgoing/told.go",
		Old:     `if r.Table != Intents.Table || r.Version > 0 {`,
		New:     `if r.Table != Intents.Table || r.Version >= 0 {`,
		What:    "the host does not hear that gas is sent until it is signed",
		Package: ".", Test: "TestFE01_HostHearsOfTheHouse/memory",
	},
	{
		ID: "resume-not-told", File: "chain/incoming/fork.go",
		Old:     `if halted != "" {`,
		New:     `if halted == "" {`,
		What:    "the host hears of a halt after a fork, and never that it was resumed",
		Package: ".", Test: "TestFE01_HostHearsOfHaltsForksAndOperators/memory",
	},
	{
		ID: "fork-not-told", File: "chain/incoming/fork.go",
		Old: "		err = n.tellFork(&c, cur.Head, ancestor.Height)\n", New: "",
		What:    "the host hears of no fork but those that an operator ends",
		Package: ".", Test: "TestFE01_HostHearsOfHaltsForksAndOperators/memory",
	},
	{
		ID: "operator-not-told", File: "chain/outgoing/halt.go",
		Old:     `c.Tell = append(tell, c.Tell...)`,
		New:     `c.Tell = tell`,
		What:    "the host does not hear who halted a network",
		Package: ".", Test: "TestFE01_HostHearsOfHaltsForksAndOperators/memory",
	},
	{
		ID: "funds-never-enough", File: "wallet/treasury/told.go",
		Old:     `if (was.Lacking > 0) == (g.Lacking > 0) {`,
		New:     `if was.Lacking > 0 || g.Lacking == 0 {`,
		What:    "the host hears that the operator's coins are too few, and never that they are enough",
		Package: ".", Test: "TestFE01_HostHearsOfTheHouse/memory",
	},
	{
		ID: "long-wait-not-told", File: "withdrawal/waits.go",
		Old:     `Put: []storage.Row{Waits.Row(r.ID, r.Version, time.Time{}, wait)}, Tell: []storage.Event{long},`,
		New:     `Put: []storage.Row{Waits.Row(r.ID, r.Version, time.Time{}, wait)}, Tell: []storage.Event{long}[:0],`,
		What:    "that a withdrawal has waited for long is told to nobody where the process dies before its notice",
		Package: ".", Test: "TestFE01_AlertOfAProcessThatDies",
	},
	{
		ID: "house-events-kept", File: "consumers.go",
		Old:     `n, failed := s.a.keepStream(ctx, s.a.joined(), p, now)`,
		New:     `n, failed := s.a.keepStream(ctx, s.a.joined(), max(p, storage.System), now)`,
		What:    "events of networks are never forgotten, and a new consumer does not hear the old ones",
		Package: ".", Test: "TestFE01_HostHearsOfTheHouse/memory",
	},
}
