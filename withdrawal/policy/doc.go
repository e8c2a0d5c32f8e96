// Package policy holds a tenant's payouts to rules that are data: how much one may be, how
// much and how many may go out in a time, who has to approve what is more, and to which
// destinations.
//
//   - Each rule that refuses a payout, or makes it wait, is named: in the withdrawal, in its
//     sealed decisions, and in the host's events.
//   - What goes out is counted in the Change that hands it over, so that payouts that run at
//     once, in any number of processes, never go beyond a rule together.
//   - A policy is a row with a version. Each version is kept, with who made it and why, and is
//     sealed: a row that somebody edited lets nothing go out.
//
// Rules bound what goes out through this library. What a signer would still sign for somebody
// who holds its key is bounded by the signer alone.
package policy
