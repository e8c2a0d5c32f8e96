package planted

// Lines that withdrawals lack.
var withdrawalOmissions = []Bug{
	{
		ID: "omit-withdrawal-cancel-stop", File: "withdrawal/step.go",
		Old: `	if err == nil && submitted == nil && !w.Live() {
		err = s.takeBack(ctx, &w)
	}
`,
		New:     "",
		What:    "what was submitted for a withdrawal that was cancelled meanwhile is not stopped",
		Package: "withdrawal", Test: "TestW17_CancelWhileNothingCanBeTaken",
	},
	{
		ID: "omit-withdrawal-daily-limit", File: "withdrawal/create.go",
		Old: `	if w.Counter != "" {
		change.Level = []storage.Level{{Name: w.Counter, Delta: int64(w.Requested), Max: int64(ceiling.Daily)}}
	}
`,
		New:     "",
		What:    "the daily limit is not counted",
		Package: "withdrawal", Test: "TestCeilings",
	},
	{
		ID: "omit-withdrawal-review-notice", File: "withdrawal/step.go",
		Old: `	m.notice(NoticeReview, reason)
`,
		New:     "",
		What:    "nobody is told that a withdrawal waits for a person",
		Package: "withdrawal", Test: "TestOperators",
	},
	{
		ID: "omit-withdrawal-retry", File: "withdrawal/step.go",
		Old: `	default:
		m.wait(WaitingPayout, retry)
	}`,
		New:     "\t}",
		What:    "a hand-over that failed is not noted: it is tried again at the end of the lease, without a reason",
		Package: "withdrawal", Test: "TestW14_WaitsForThePayoutSide",
	},
	{
		ID: "omit-withdrawal-fee-sanity", File: "withdrawal/estimate.go",
		Old: `	if most, err := max(asked, least).MulDiv(uint64(s.c.MaxFeeTimes), 1, ledger.Down); network < 0 || err == nil && network > most {
		return Price{}, fmt.Errorf("%w: a quote of %d units for %d is absurd", ErrFee, network, asked)
	}
`,
		New: `	_ = least
`,
		What:    "an absurd quote of the network's fee is taken",
		Package: "withdrawal", Test: "TestW14_AbsurdFeeEstimate",
	},
	{
		ID: "omit-withdrawal-completed-at", File: "withdrawal/move.go",
		Old: `		m.w.CompletedAt = m.now
`,
		New:     "",
		What:    "a completed withdrawal does not say when",
		Package: "withdrawal", Test: "TestTheWayToCompleted",
	},
	{
		ID: "omit-withdrawal-limit-given-back", File: "withdrawal/move.go",
		Old: `		m.post = append(m.post, releaseTx(&m.w, m.now))
		m.uncount()`,
		New:     "\t\tm.post = append(m.post, releaseTx(&m.w, m.now))",
		What:    "what a withdrawal that failed took of the daily limit is not given back",
		Package: "withdrawal", Test: "TestCeilings",
	},
	{
		ID: "omit-withdrawal-conflict-notice", File: "withdrawal/step.go",
		Old: `	if err == nil && !ended {
		s.c.Notify(storage.Apart(ctx), Notice{
			Tenant: w.Tenant, Withdrawal: w.ID, Kind: NoticeConflict,
			Detail: "it is " + string(w.Status) + ", and the payout side may have something of it under way",
		})
	}
`,
		New: `	_ = ended
`,
		What:    "nobody is told that something of a cancelled withdrawal may be under way",
		Package: "withdrawal", Test: "TestW17_SignedAfterItWasCancelledIsReported",
	},
	{
		ID: "omit-withdrawal-retired", File: "withdrawal/step.go",
		Old: `	if slices.Contains(s.c.Retired, m.w.Currency) {
		m.halted("the currency is retired", retry)
		return nil, nil
	}
`,
		New: `	_ = slices.Contains[[]string]
`,
		What:    "a withdrawal of a retired currency is handed over",
		Package: ".", Test: "TestFM05_RetiredWaitsAndCanBeCancelled/chain",
	},
}
