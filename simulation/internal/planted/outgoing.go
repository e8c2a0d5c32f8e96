package planted

// What goes wrong between the books and a chain: with orders, nonces, coins and
// keys.
var outgoingBugs = []Bug{
	{
		ID: "fail-on-broadcast-error", File: "chain/outgoing/send.go",
		Old:  "slog.String(\"tx\", a.tx), slog.String(\"cause\", err.Error()))\n\t\treturn n.released(ctx, j, a)\n\t}",
		New:  "slog.String(\"tx\", a.tx), slog.String(\"cause\", err.Error()))\n\t\tj.v.State = Failed\n\t\treturn n.commit(ctx, j, transition{op: \"fail\", outcome: n.outcome(j)})\n\t}",
		What: "an error of a broadcast is taken for its refusal: refunded, and maybe on its way",
	},
	{
		ID: "rebuild-after-timeout", File: "chain/outgoing/poll.go",
		Old:  `if done, err := n.replace(ctx, j, p); done || err != nil {`,
		New:  `if err := n.markDead(ctx, j, p); true {`,
		What: "what was not mined in time is built anew with another nonce or other coins",
	},
	{
		ID: "cancel-after-sign", File: "chain/outgoing/submit.go",
		Old:  `if cancelled || !v.idle() || helps(id) || v.mayBePaid() {`,
		New:  `if cancelled || v.State == Final {`,
		What: "an order that is signed can be cancelled",
	},
	{
		ID: "fill-counts-as-paid", File: "chain/outgoing/finalize.go",
		Old:  `case won.st.Executed && won.v.Purpose != chain.ForCancel || j.v.Purpose == chain.ForCancel:`,
		New:  `case won.st.Executed:`,
		What: "an order whose nonce was used up by paying ourselves is called paid",
	},
	{
		ID: "reverted-counts-as-paid", File: "chain/outgoing/finalize.go",
		Old:  `case won.st.Executed && won.v.Purpose != chain.ForCancel || j.v.Purpose == chain.ForCancel:`,
		New:  `case won.v.Purpose != chain.ForCancel || j.v.Purpose == chain.ForCancel:`,
		What: "a payout that was reverted on chain is called paid",
	},
	{
		ID: "replace-with-fresh-coins", File: "chain/outgoing/finalize.go",
		Old:  `nonce: last.v.Nonce, coins: last.v.Coins, change: last.v.ChangeTo}`,
		New:  `nonce: last.v.Nonce, change: last.v.ChangeTo}`,
		What: "a stuck transaction is replaced by one that spends other coins",
	},
	{
		ID: "childs-coin-is-free", File: "chain/outgoing/inputs.go",
		Old:  `c.State, c.Intent = CoinUnmined, child`,
		New:  `c.State, c.Intent = CoinFree, child`,
		What: "what a waiting transaction returns is a coin like others, and its child's",
	},
	{
		ID: "childs-coin-freed-by-its-parent", File: "chain/outgoing/inputs.go",
		Old:  "c.State = CoinReserved\n\t\ts.with",
		New:  "c.State, c.Intent = CoinFree, \"\"\n\t\ts.with",
		What: "when a transaction has landed, what it returned is free, though its child spends it",
	},
	{
		ID: "carried-can-be-cancelled", File: "chain/outgoing/submit.go",
		Old:  `if _, _, isMember, err := Batches.One(ctx, n.Store, n.part, id); err != nil || isMember {`,
		New:  `if _, _, _, err := Batches.One(ctx, n.Store, n.part, id); err != nil {`,
		What: "an order that another one's transaction pays can be cancelled while that is signed",
	},
	{
		ID: "carried-fails-for-all", File: "chain/outgoing/batch.go",
		Old:  "due = n.Now()\n\t\t\tv.restart()",
		New:  `v.restart()`,
		What: "where a transaction that pays several comes to nothing, those that were carried are forgotten",
	},
	{
		ID: "carried-of-other-tenants", File: "chain/outgoing/batch.go",
		Old:  `!n.canBatch(o) || o.v.Tenant != j.v.Tenant ||`,
		New:  `!n.canBatch(o) ||`,
		What: "one merchant's coins pay another's withdrawals",
	},
	{
		ID: "carried-settled-in-vain", File: "chain/outgoing/batch.go",
		Old:  `r.next = v`,
		New:  `r.next, r.v = v, v`,
		What: "a Change that meets a conflict leaves those carried as if it were in, and the next one leaves them out",
	},
	{
		ID: "carried-not-written", File: "chain/outgoing/batch.go",
		Old:  `s.with = append(s.with, Batches.Row(r.id, 0, time.Time{}, BatchRow{Leader: j.id}))`,
		New:  `_ = s`,
		What: "who is paid by another order's transaction is known to the process alone that signs it",
	},
	{
		ID: "nonce-from-node", File: "chain/outgoing/nonces.go",
		Old: `d.nonce, d.first = next.Next, true`,
		New: `at, _ := n.nonces.Nonce(ctx, d.intent.From)
	d.nonce, d.first = int64(at), true`,
		What: "the next nonce is what the node says",
	},
	{
		ID: "nonce-not-moved", File: "chain/outgoing/nonces.go",
		Old:  `a.Holder, a.Next = "", a.Next+1`,
		New:  `a.Holder = ""`,
		What: "a nonce that was used is the next one again",
	},
	{
		ID: "coin-stays-free", File: "chain/outgoing/inputs.go",
		Old:  `c.State, c.Intent = CoinReserved, intent`,
		New:  `c.Intent = intent`,
		What: "a coin that a transaction spends stays free for others",
	},
	{
		ID: "change-forgotten", File: "chain/outgoing/finalize.go",
		Old:  `back := o.Change || won.v.Purpose == chain.ForCancel`,
		New:  `back := won.v.Purpose == chain.ForCancel`,
		What: "the change of our own transactions can never be spent",
	},
	{
		ID: "change-counts-as-top-up", File: "chain/outgoing/internal.go",
		Old:  `return a.Outputs[t.Ordinal].Change || a.Purpose != chain.ForWithdrawal`,
		New:  `return a.Purpose != chain.ForWithdrawal`,
		What: "the change of a withdrawal is booked as the operator's own money",
	},
	{
		ID: "sweep-counts-as-top-up", File: "chain/outgoing/internal.go",
		Old:  `return slices.ContainsFunc(a.Outputs, func(o chain.Output) bool { return o.To == t.To })`,
		New:  `return a.Purpose == chain.ForGas`,
		What: "a sweep to the hot address is booked as the operator's own money",
	},
	{
		ID: "never-sent-again", File: "chain/outgoing/poll.go",
		Old:  `return n.Now().Before(a.v.Sent.Add(n.resendInterval(a)))`,
		New:  `return !n.Now().Before(a.v.Sent.Add(n.resendInterval(a)))`,
		What: "a transaction that no node knows any more is not sent again",
	},
	{
		ID: "settled-at-first-block", File: "chain/outgoing/poll.go",
		Old:  `case p.mined != nil && p.final:`,
		New:  `case p.mined != nil:`,
		What: "a payout is settled by its first block, whatever a reorg does",
	},
	{
		ID: "planned-anew-after-crash", File: "chain/outgoing/plan.go",
		Old:  `fresh := len(j.v.Plan) == 0`,
		New:  `fresh := j.v.State == Queued || j.v.State == Waiting`,
		What: "who dies between reserving and signing reserves once more",
	},
	{
		ID: "signer-refuses-replacement", File: "chain/keys/registry.go",
		Old:  `case s.Intent != b.Intent:`,
		New:  `case s.Intent != b.Attempt:`,
		What: "a nonce is never signed for twice, not even for the same order",
	},
}
