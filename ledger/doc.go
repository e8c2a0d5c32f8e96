// Package ledger is money and double entry: what an amount is, what a balanced
// transaction is, and what it does to balances. It keeps nothing itself; a
// store does, and Verify proves what the store keeps.
//
// It promises:
//
//   - An Amount is an exact int64 count of an asset's smallest unit kept here.
//     Every sum, difference and product is checked: an operation answers
//     ErrOverflow, it never wraps. Rounding is named by the caller, Down or Up.
//   - The legs of a Tx sum to zero for each Asset, judged in 128 bits. Assets
//     never mix.
//   - A wallet keeps Held ≥ 0 and Posted − Held ≥ 0, each for itself: a sum
//     that comes out right hides no wallet below zero.
//   - Numbers that people type go through ParseDecimal or ParseAmount: plain
//     digits of bounded length, and a place too many is refused, never rounded.
//   - Text that goes out (Amount.Format, PlainString, FixedString) and numbers
//     that are computed (FromDecimal, Quo, MulRound) depend on no package-level
//     setting of the decimal package, whatever the host program does with it.
//
// A positive Posted on a wallet is what we owe its owner. Chain is the outside
// world and stands at minus what is held there, so that everything sums to
// zero, and the house's equity is what is left once all is paid.
//
// Everything here is a pure function of its arguments and safe for concurrent
// use. There is no clock, no randomness and no I/O.
package ledger
