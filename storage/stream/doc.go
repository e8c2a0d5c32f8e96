// Package stream hands the events of a store (storage.Change.Tell) to consumers of the
// host.
//
//   - Every event reaches every consumer, in the order of its partition: the next one is
//     handled once the one before it was.
//   - Where the store is a SQL database, a consumer gets a transaction. Its place in the
//     partition commits with what it wrote there: exactly once. Elsewhere an event may come
//     again after a crash, with the same partition and number.
//   - An event that a consumer refuses is tried again after a pause. When its tries are
//     over it becomes a dead letter, and so do later events of the same object, in their
//     order. Events of other objects go on. An operator has dead letters handled again, or
//     discards them.
//   - Partitions do not wait for each other, and consumers do not.
//
// A consumer has a row in the partition of the system (its registration), and one in each
// partition that has events (its place). Who does not list a consumer leaves its places
// alone, so processes may have different ones. One that is not needed any more is retired
// by its name.
package stream
