package planted

// Lines that stores lack.
var storageOmissions = []Bug{
	{
		ID: "omit-memory-rollback", File: "storage/memory/ledger.go",
		Old: `			if err := b.Move(l); err != nil {
				p.undo(start)
				return true, err
			}`,
		New: `			if err := b.Move(l); err != nil {
				return true, err
			}`,
		What:    "what came before a leg that is refused stays",
		Package: "storage/memory", Test: "TestPostIsTakenBack",
	},
	{
		ID: "omit-sqlite-busy-retry", File: "storage/sqlstore/session.go",
		Old: `		if err == nil || ctx.Err() != nil || s.d.Classify(err) != ClassBusy {
			return err
		}`,
		New:     "\t\treturn err",
		What:    "a transaction does not wait again for a file that is locked",
		Package: "storage/sqlstore/sqlite", Test: "TestConformance/TwoHandlesClaim",
	},
	{
		ID: "omit-postgres-deadlock-class", File: "storage/sqlstore/postgres/check.go",
		Old: `	case "40001", "40P01": // serialization_failure, deadlock_detected
		return sqlstore.ClassRefused
`,
		New:     "",
		What:    "a deadlock is an unknown outcome",
		Package: "storage/sqlstore/postgres", Test: "TestL05_DeadlockIsTriedAgain",
	},
	{
		ID: "omit-mysql-rollback", File: "storage/sqlstore/session.go",
		Old: `	s.rollback()
	if !sent {
		return s.before(ctx, err)
	}`,
		New: `	if !sent {
		return s.before(ctx, err)
	}`,
		What:    "a transaction that failed is not rolled back, and the connection is used again",
		Package: "storage/sqlstore/sqlite", Test: "TestU02_OneVersionBehind",
	},
	{
		ID: "omit-sql-rows-error", File: "storage/sqlstore/session.go",
		Old:     "\treturn rows.Err()",
		New:     "\treturn nil",
		What:    "an answer that broke off is taken for the whole",
		Package: "storage/sqlstore/mysql", Test: "TestGalera/Conformance",
	},
	{
		ID: "omit-redis-reconnect-check", File: "storage/redisstore/watch.go",
		Old: `			d.s.doubts.Add(1)
`,
		New: `			_ = d
`,
		What:    "a server that answers after a reconnection is not asked for its settings",
		Package: "storage/redisstore", Test: "TestL08_ReadOnlyReplica",
	},
	{
		ID: "omit-redis-index-removal", File: "storage/redisstore/lua/store.lua",
		Old: `    bulk('ZREM', KEYS[t.index[i][1]], rem[i])
`,
		New:     "",
		What:    "a row is found under what it was",
		Package: "storage/redisstore", Test: "TestSameVerdictsAsMemory",
	},
	{
		ID: "omit-lane-single-retry", File: "storage/lane/lane.go",
		Old: `	if !errors.Is(err, ErrRefused) || len(changes) == 1 {
		for i := range verdicts {
			verdicts[i] = err
		}
		return
	}
	for i := range changes {
		var v []error
		if v, err = s.try(!changes[i].NoWait, changes[i:i+1]); err == nil {
			verdicts[i] = v[0]
			continue
		}
		verdicts[i] = err
		if !errors.Is(err, ErrRefused) { // the database is gone: do not ask it for each
			for k := i + 1; k < len(verdicts); k++ {
				verdicts[k] = err
			}
			return
		}
	}`,
		New: `	for i := range verdicts {
		verdicts[i] = err
	}`,
		What:    "a batch that was refused twice is not committed Change by Change",
		Package: "storage/lane", Test: "TestL05_RefusedBatch",
	},
	{
		ID: "omit-lane-context-end", File: "storage/lane/lane.go",
		Old: `			case <-ctx.Done():
				s.leave(ctx, c)
				return
			}`,
		New:     "\t\t\t}",
		What:    "a caller whose context ends goes on waiting",
		Package: "storage/lane", Test: "TestFollowerLeaves",
	},
	{
		ID: "omit-seal-last-entry", File: "storage/seal/seal.go",
		Old: `	for i := range entries {
		d := digest(&entries[i])
		m.buf = append(m.buf, d[:]...)`,
		New: `	for i := range entries {
		d := digest(&entries[i])
		if i == len(entries)-1 {
			m.marks = append(m.marks, d[:markBytes]...)
			break
		}
		m.buf = append(m.buf, d[:]...)`,
		What:    "the last entry of a range is not in the seal's hash",
		Package: "storage/seal", Test: "TestL12_SealsAreTheSameOnEveryBackend/redis",
	},
	{
		ID: "omit-move-holds", File: "storage/move/merge.go",
		Old:     "\treturn m.holds(list)",
		New:     "\treturn nil",
		What:    "holds are not carried over",
		Package: "storage/move", Test: "TestU03_InterruptedMoveGoesOn",
	},
	{
		ID: "omit-move-levels", File: "storage/move/walk.go",
		Old: `	if err := l.flush(ctx); err != nil {
		return err
	}
`,
		New:     "",
		What:    "levels are not carried over, and not compared",
		Package: "storage/move", Test: "TestU03_InterruptedAgainAndAgain",
	},
	{
		ID: "omit-lane-hand-over", File: "storage/lane/lane.go",
		Old: `			if sig == lead {
				s.handOver()
			}`,
		New:     "\t\t\t_ = sig",
		What:    "a caller who leaves at the moment at which he is to lead leaves nobody to lead",
		Package: "storage/lane", Test: "TestFollowerLeavesWhenToldToLead",
	},
	{
		ID: "omit-sql-lost-connection", File: "storage/sqlstore/store.go",
		Old:     "\tif !s.keep || ss.lost || s.closed",
		New:     "\tif !s.keep || s.closed",
		What:    "a connection in an unknown state is used again",
		Package: "storage/sqlstore/postgres", Test: "TestFaults/L02_LostAnswerToCommit",
	},
	{
		ID: "omit-redis-undue", File: "storage/redisstore/lua/store.lua",
		Old: `  bulk('ZREM', t.due, undue)
`,
		New:     "",
		What:    "a row that is done stays due",
		Package: "storage/redisstore", Test: "TestX03_WhatIsDoneIsNotDueAnyMore",
	},
	{
		ID: "omit-move-partitions", File: "storage/move/walk.go",
		Old: `	w.report()
	return w.whole(ctx)`,
		New: `	w.report()
	return nil`,
		What:    "rows of partitions that were not named are left behind without a word",
		Package: "storage/move", Test: "TestForgottenPartition",
	},
}
