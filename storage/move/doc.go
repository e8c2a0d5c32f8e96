// Package move takes everything from one store to another, of any two backends,
// through the nine methods of storage.Store alone.
//
// # What it promises
//
//   - Nothing is lost that a later decision stands on: every row arrives with its
//     id, version, due time and the id of the Change that wrote it last; every
//     ledger transaction with its id, kind, reference, time and legs, so that every
//     account has the same history, number by number; every hold; every level
//     that End.Levels names.
//   - It may be ended at any moment and called again: the target keeps how far it
//     came, and goes on there once the same beginning of the stream has gone by.
//     A stream that begins otherwise is ErrStream.
//   - It ends with a comparison: counts and hashes of what was sent, of the source
//     as it stands then, and of the target, and with ledger.Verify over the target.
//     A source that was written to meanwhile is ErrBusy.
//
// The source must be quiet: stop every process that writes to it. The comparison
// finds what was written before it read that place again, which a process that
// still works does within seconds; it cannot find what is written after.
//
// # What is not carried over
//
// The nine methods do not tell which Change posted a ledger transaction, nor the
// ids of transactions that only hold or release. A transaction therefore arrives
// as if a Change with its own id had posted it, and what is held arrives as one
// transaction per balance. That is safe for a Change which also puts a row, since
// that row is judged first and is as it was, and for one that has the id of its
// only transaction; every Change of this library is one or the other. A host
// whose own Changes only post, under other ids, must not send one again that it
// sent before the move: it would be told *storage.DuplicateError instead of nil.
// Balances that nothing was ever posted to or held on are not carried over.
//
// # Memory
//
// Rows are read 500 at a time, by key. Per partition there is one balance and one
// short page of history in memory for each account, and some 30 bytes for each
// ledger transaction, so that those with several legs go over whole.
//
// # Format
//
// A stream is lines of text: eight hex digits of CRC-32C, a blank, and JSON. The
// first line holds the version and the shape of every table; the last one the
// counts and hashes. A line that is cut off or changed, and a stream without its
// last line, are ErrStream.
package move
