package planted

// Lines that payments lack.
var paymentOmissions = []Bug{
	{
		ID: "omit-payment-suspense-notice", File: "payment/posting.go",
		Old: `		x.alert(AlertSuspense, e, "money that matches no payment was booked to suspense: "+string(d.Role)+d.said())
`,
		New:     "",
		What:    "nobody is told that money went to suspense",
		Package: "payment", Test: "TestMoneyIn_Late",
	},
	{
		ID: "omit-payment-deposit-cap", File: "payment/deposit.go",
		Old:     "\treturn x.maxDeposits > 0 && counted >= x.maxDeposits",
		New:     "\t_ = counted\n\treturn false",
		What:    "any number of deposits counts for one payment",
		Package: "payment", Test: "TestMoneyForNoPaymentAndTooManyDeposits",
	},
	{
		ID: "omit-payment-dust-guard", File: "payment/deposit.go",
		Old: `	case s.Amount == 0 || s.Exact.LessThan(c.Dust):
		return RoleDust
`,
		New:     "",
		What:    "dust counts for a payment",
		Package: "payment", Test: "TestMoneyIn_RecordedOnly",
	},
	{
		ID: "omit-payment-tolerance-cap", File: "payment/create.go",
		Old: `	most, err := ledger.Quo(*s.c.ToleranceUSD, q.usdRate, c.Scale, ledger.Down)
	if errors.Is(err, ledger.ErrOverflow) {
		return part, nil
	}
	return min(part, most), err`,
		New:     "\treturn part, nil",
		What:    "the tolerance of a large payment has no bound in USD",
		Package: "payment", Test: "TestFQ10_ToleranceOfAPriceInEUR",
	},
	{
		ID: "omit-payment-second-page", File: "payment/step.go",
		Old:     "\t\tworked, err = worked+n, errors.Join(err, stepErr)",
		New:     "\t\t_, err = n, errors.Join(err, stepErr)",
		What:    "a Step does not count what it expired, so that nobody asks for the next ones",
		Package: ".", Test: "TestX01_HundredsExpireAtATime",
	},
	{
		ID: "omit-payment-receivable-repay", File: "payment/posting.go",
		Old: `		if err := x.recover(e, debtor, d.Net); err != nil {
			return err
		}
`,
		New: `		_ = debtor
`,
		What:    "a deposit that is back repays nothing of what its reversal left owing",
		Package: "payment", Test: "TestFQ10_DebtOfAClosedWalletIsRepaid",
	},
	{
		ID: "omit-payment-reversed-notice", File: "payment/posting.go",
		Old: `	x.alert(AlertReversed, e, "a reorg took a final deposit away; its posting was reversed")
`,
		New:     "",
		What:    "nobody is told that a reorg took a credited deposit away",
		Package: "payment", Test: "TestMoneyIn_Reversals",
	},
	{
		ID: "omit-payment-giving-up", File: "payment/decide.go",
		Old: `		for _, e := range x.deposits {
			if e.d.Role.counted() && e.d.State == incoming.Seen {
				e.d.GivenUp = true
			}
		}
`,
		New:     "",
		What:    "a deposit that stays in the mempool holds its payment open for ever",
		Package: "payment", Test: "TestD16_OnlyAProofMovesMoney",
	},
	{
		ID: "omit-payment-watch-end", File: "payment/step.go",
		Old: `		if err := s.endWatch(ctx, x); err != nil {
			return nil, err
		}
`,
		New:     "",
		What:    "addresses of payments that are over are watched for ever",
		Package: "payment", Test: "TestAddressIsWatchedForAWhileAfterTheEnd",
	},
}
