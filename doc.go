// Package cryptopay is what a platform embeds to take crypto payments, pay out
// withdrawals and keep merchants' balances in its own program, on its own
// database.
//
// It promises: no merchant's money moves but by a balanced ledger posting that
// commits with the decision that caused it; a deposit is credited once, when it
// is final, whatever reorgs, nodes and crashes do; a withdrawal is paid at most
// once, and refunded only when every attempt is dead with proof; every change
// of state is told by a signed webhook that is stored with it; and what matches
// nothing goes to suspense and is shown. Verify proves it at any time.
//
// New composes an App of a Store, chain Clients and, where they are used, a
// Signer, an AddressSource and Rates. It does no I/O and starts nothing. Run
// works until its context ends; Step does all that is due on the caller's
// goroutine, so that a test advances a ManualClock and calls Step instead of
// waiting. Clock, ids and randomness are injected: a run can be replayed.
package cryptopay
