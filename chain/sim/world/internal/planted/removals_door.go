package planted

// Credentials, limits, and orders edited in the database.
var doorRemovals = []Bug{
	{
		ID: "FS02-edited-withdrawal", File: "withdrawal/intact.go",
		Old:  "	if why = w.Contradicts(p, &line, ok); why != \"\" || !w.Live() {",
		New:  "	if _ = w.Contradicts(p, &line, ok); !w.Live() {",
		What: "a withdrawal whose row was edited is paid by the row", Package: ".", Test: "TestFS02_EndedWithdrawalSetToPendingIsNotPaidAgain",
	},
	{
		ID: "FS02-edited-order", File: "wiring.go",
		Old: `if why != "" {
		a.cfg.Log.ErrorContext(ctx, "order_altered"`,
		New: `if false {
		a.cfg.Log.ErrorContext(ctx, "order_altered"`,
		What: "an order that was edited, or that nobody gave, is signed", Package: ".", Test: "TestFS02_EditedOrderIsNotSigned",
	},
	{
		ID: "FS02-edited-figures-settled", File: "withdrawal/move.go",
		Old:  "if err == nil && len(m.post) > 0 {",
		New:  "if err == nil && len(m.post) > 9 {",
		What: "a hold is settled by an edited row", Package: ".", Test: "TestFS02_EditedFiguresAreNotSettled",
	},
	{
		ID: "FS02-hot-not-derived", File: "chain/incoming/pool.go",
		Old:  "			return derived(rows[0]), p.Check(ctx, network, rows[0])",
		New:  "			return derived(rows[0]), nil",
		What: "a hot address is what the directory says", Package: ".", Test: "TestFS02_EditedHotAddressGetsNothing",
	},
	{
		ID: "FS02-signer-believes-the-directory", File: "chain/keys/signer.go",
		Old:  "		if ok && s.derives(c, ref, a) {",
		New:  "		if ok || s.derives(c, ref, a) {",
		What: "the signer pays what the directory calls ours", Package: ".", Test: "TestFS02_EditedSweepIsNotSigned",
	},
	{
		ID: "FS02-free-not-derived", File: "chain/incoming/derived.go",
		Old:  "		case !errors.Is(err, ErrNotDerived):\n			return nil, err",
		New:  "		case errors.Is(err, ErrNotDerived):\n			out = append(out, r)\n		default:\n			return nil, err",
		What: "a customer is shown an address of the directory that was edited", Package: ".", Test: "TestFS02_EditedAddressIsNotShown",
	},
	{
		ID: "FS02-payment-address-not-checked", File: "payment/query.go",
		Old:  "if err == nil && s.c.CheckAddress != nil &&",
		New:  "if err != nil && s.c.CheckAddress != nil &&",
		What: "a payment shows an address that was edited", Package: ".", Test: "TestFS02_EditedAddressIsNotShown",
	},
	{
		ID: "FS04-counted-for-all-addresses", File: "httpapi/auth/guess.go",
		Old:  "	address := addressOf(ctx)\n",
		New:  "	address := addressOf(ctx)[:0]\n",
		What: "guesses from anywhere make a client's owner wait", Package: "httpapi/auth", Test: "TestFS04_GuessesFromElsewhereLockNobodyOut",
	},
}
