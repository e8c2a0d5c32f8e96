// Package storage is the kernel that every domain stands on: a decision is a
// pure function from state to one Change, and a Store makes that Change true
// at once, whole or not at all.
//
// # What it promises
//
//   - A Change whose Commit returned nil is durable, and visible to every later
//     read of every process. One whose Commit returned a verdict did not happen.
//     Anything else is an unknown outcome: sending the same Change again settles
//     it, for a Change takes effect at most once.
//   - A decision stands on what it read: versions are checked in the same
//     atomic step that writes, and a lost race is ErrConflict, which Decide
//     turns into another decision.
//   - Money moves as deltas with a floor. A hot account never conflicts, no
//     wallet goes below zero, and each account's history is gapless and carries
//     the balance after each entry.
//   - Text is compared byte by byte on every backend: no case folding, no
//     trailing blanks ignored, no Unicode forms made equal. Text that some
//     backend could not keep (a NUL, broken UTF-8) is refused by all.
//
// # Partitions
//
// Every record lives in one Partition, a Change touches exactly one, and
// nothing is atomic across two. What must cross is two Changes: the first
// leaves a due row, a worker claims it and commits the second under an id
// derived from the first.
//
// # Tables
//
// A domain declares its tables as data with NewTable and keeps a small typed
// store of its own above this one. Backends keep one real table per
// declaration. Beside its own columns each row has an id, a version that every
// write raises, the id of the Change that wrote it last, and a due time for
// Claim.
//
// # Backends
//
// memory is the reference; sqlstore and its dialects keep the same tables in
// SQL. Package verdict says what each Change of a batch comes to and package
// lane commits batches, for these backends and for a stranger's; package
// storagetest is the suite that a backend has to pass. One that several machines
// share should also be a Clock.
package storage
