// Package seal makes a ledger tell what was done to it behind the library's back:
// a row of the journal that somebody with access to the database has edited,
// deleted, inserted or put in another's place.
//
// # What it promises
//
//   - A seal holds the SHA-256 of a piece of a partition's journal and of the seal
//     before it. Whatever of a sealed entry is changed afterwards (account, asset,
//     number, transaction, kind, reference, amount, balance after it, time),
//     whether the entry is gone, or has moved: Prove names the seal, and the first
//     transaction of it that is not what it was.
//   - Seals are signed with a key that is not in the database (HMAC-SHA256). Who
//     can write to the database and does not know the key can make no seal, so
//     that the chain cannot be made again over edited entries.
//   - The journal itself is written as ever. Sealing reads what was posted since,
//     at most MaxEntries at a time, and is one Change; any number of processes may
//     do so, and one of them wins.
//
// # What it does not protect from
//
//   - Entries younger than the newest seal, and what is not in the journal: holds,
//     and rows of other tables, which have proofs of their own (cryptopay.App.Verify).
//     Nor which Change posted a transaction.
//   - Who has both the key and the database. He can be found out by what he cannot
//     write to: keep number and hash of the newest seal elsewhere, now and then, and
//     compare (Newest, At). An equal hash says that all of the journal up to there
//     is what it was.
//   - Who cuts seals off at the end of the chain, with the entries and balances that
//     they are of and the heights (seal_heights): that is an older state of the
//     partition, as a backup is. A hash that was kept elsewhere tells.
//
// # Order
//
// A journal is many histories, one per account and asset, numbered without a gap.
// A seal takes a range of each that has grown, in the order of accounts and assets.
// The order of seals and those numbers are the order of the chain: concurrent
// commits cannot change it, and moving a store to another backend keeps it.
package seal
