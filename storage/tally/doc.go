// Package tally keeps counters of a tenant's rows, so that a list shows how many rows
// match, and statistics show what they come to, without reading the rows.
//
// A Tally says how the rows of one table are counted. Each row belongs to one group,
// such as the day on which it was created, and has one key, such as its status and
// currency. The counters are rows of storage.Counters in the tenant's partition:
//
//   - how many rows have a key, in all groups together;
//   - how many rows of a group have it;
//   - sums of a group's rows by the first two parts of the key, if there are any.
//
// A Change that writes a counted row has the difference, made by Moved, in its Count. So
// rows and counters agree after each Commit, and every filter of a list that is a
// condition on the key is a sum of counters.
//
// # From when on counters hold
//
// A tenant has a marker from the Change that makes its master account, or from Recount
// on. Without the marker nothing here answers (ok is false), and the caller counts rows.
// Recount works beside processes that count. A process of a version that does not count
// would spoil what Recount makes, so Recount is called when no such process runs.
//
// Entries of the ledger are counted by wallet, asset and kind. They need no marker: an
// account has as many entries as its balance's Seq says, and counters that add up to
// less are not used.
package tally
