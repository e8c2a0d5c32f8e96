// Package verdict says what each Change of a batch comes to, exactly as
// storage.Change words it, so that every backend gives the same answers.
//
// A backend uses it in four steps, the last three inside one transaction that
// holds the partitions it touches:
//
//  1. Prepare checks and encodes the Changes. What is malformed is judged here.
//  2. Batch.Needs names the rows, keys, transactions, balances and levels that
//     the verdicts depend on; the backend loads them, in as few reads as it can.
//  3. Batch.Judge walks the Changes in order of arrival over that State. Each
//     sees what those before it did.
//  4. The backend stores Writes: the net effect, each row, balance and level
//     once however often the batch moved it.
//
// Nothing here does I/O, keeps a lock or asks the time.
package verdict
