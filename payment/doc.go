// Package payment takes payments: a merchant asks for an amount, a customer
// sends coins to an address that is used for nothing else, and the merchant's
// wallet is credited when the chain says that they are final.
//
// # What it promises
//
//   - Nothing is credited before it is final: the only way into a wallet is a
//     deposit whose incoming.Proof was seen, and what one deposit brings in is
//     all that can be posted for it. Liabilities never exceed what the chains hold.
//   - While an address is watched every unit that lands on it is booked once: to
//     the wallet, or to suspense where it matches nothing (late, another token,
//     unproven). Dust and unlisted tokens are recorded only.
//   - One fact is one Change: the payment, its deposits, its events with
//     consecutive numbers, its line of the history and its postings are written
//     together or not at all. The same fact again finds nothing left to do.
//   - A payment moves along the edges of Machine only, see MACHINE.md.
//   - A deposit is in time in the half-open interval [created, expiry): one that
//     is dated exactly at the expiry is late. Nobody knows the address before
//     the payment is created, so a miner's clock that runs behind harms nobody.
//     Expiry is decided only once the chain was read up to a tip that was asked
//     for after it: a node that is down delays it.
//   - What a deep reorg takes away is taken back: from what the wallet has
//     available, the rest becomes what the wallet owes. A wallet never goes
//     below zero.
//
// # Shape
//
// decide.go and its neighbours are pure: state and one fact in, a new state
// with events and postings out. service.go reads, asks for prices, and commits.
package payment
