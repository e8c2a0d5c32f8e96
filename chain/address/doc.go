// Package address reads and checks the addresses of every network that the
// interface names, with no node and no chain SDK.
//
// It promises: what Parse accepts is well-formed, belongs to that very network
// as far as its writing can tell, and can be paid; the canonical form is one
// per destination; nothing is folded or trimmed, so a mistyped letter is an
// error and never another address; and what might be somebody's private key is
// refused without being repeated.
//
// Where a text is well-formed but money sent there would be lost or stuck, it
// is refused by policy:
//
//   - Bitcoin, Litecoin: witness versions above 1 (anyone can spend them today)
//     and Taproot programs that are no point of the curve (nobody can).
//   - Solana: addresses off the curve. They are token accounts and other
//     programs' accounts, which no key signs for.
//   - XRP: ACCOUNT_ZERO, ACCOUNT_ONE, and X-addresses of the test network.
//   - Cardano: stake addresses, which cannot be paid, and pointer addresses,
//     which the Conway era made obsolete.
//   - Tron in its hexadecimal forms, EVM addresses without 0x, names (ENS, SNS,
//     ADA handles): a withdrawal must not depend on a second look-up.
//
// The zero addresses of EVM networks and Tron are addresses; that nobody should
// be paid there is for withdrawals to say.
package address
