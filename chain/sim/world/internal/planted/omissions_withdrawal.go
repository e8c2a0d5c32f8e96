package planted

// Lines that withdrawals lack.
var withdrawalOmissions = []Bug{
	{
		ID: "omit-withdrawal-cancel-stop", File: "withdrawal/step.go",
		Old: `	if err == nil && submitted == nil && !w.Live() {
		err = s.takeBack(ctx, &w)
	}
`,
		New:  "",
		What: "what was submitted for a withdrawal that was cancelled meanwhile is not stopped",
	},
	{
		ID: "omit-withdrawal-daily-limit", File: "withdrawal/create.go",
		Old: `	if ceiling.Daily > 0 {
		w.Counter = counter(w.Currency, now)
		change.Level = []storage.Level{{Name: w.Counter, Delta: int64(w.Requested), Max: int64(ceiling.Daily)}}
	}
`,
		New:  "",
		What: "the daily limit is not counted",
	},
	{
		ID: "omit-withdrawal-review-notice", File: "withdrawal/step.go",
		Old: `	m.notice(NoticeReview, reason)
`,
		New:  "",
		What: "nobody is told that a withdrawal waits for a person",
	},
	{
		ID: "omit-withdrawal-retry", File: "withdrawal/step.go",
		Old: `	default:
		m.wait(WaitingPayout, retry)
	}`,
		New:  "\t}",
		What: "a hand-over that failed is not noted: it is tried again at the end of the lease, without a reason",
	},
	{
		ID: "omit-withdrawal-fee-sanity", File: "withdrawal/estimate.go",
		Old: `	if most, err := max(asked, least).MulDiv(uint64(s.c.MaxFeeTimes), 1, ledger.Down); network < 0 || err == nil && network > most {
		return Price{}, fmt.Errorf("%w: a quote of %d units for %d is absurd", ErrFee, network, asked)
	}
`,
		New: `	_ = least
`,
		What: "an absurd quote of the network's fee is taken",
	},
	{
		ID: "omit-withdrawal-completed-at", File: "withdrawal/move.go",
		Old: `		m.w.CompletedAt = m.now
`,
		New:  "",
		What: "a completed withdrawal does not say when",
	},
}
