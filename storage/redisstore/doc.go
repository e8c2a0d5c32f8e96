// Package redisstore is storage in Redis, version 7 or newer: one server, or a
// cluster.
//
// # What it promises
//
// What storage.Store promises, as far as the servers keep what they were given.
// A Commit that returned nil has been executed by one script, whole or not at
// all: it judges first, makes sure that every key is what it must be and every
// history as long as its balance says, and only then writes. It stands in the
// append-only file of the master that executed it. What can still be lost depends
// on the servers, and Open refuses those that could lose anything, unless
// Options.AllowLoss names it:
//
//   - One server, appendonly yes and appendfsync always: nothing is lost by a
//     crash of the process or the machine. Whoever loses the disk loses
//     everything since the last copy of it.
//   - appendfsync everysec (LastSecond): a crash of the machine takes up to two
//     seconds of acknowledged commits; a crash of the process alone takes none.
//   - Replicas, under Sentinel or in a cluster (Failover): they follow behind the
//     acknowledgement, so a failover loses what the new master had not yet
//     received. WAIT makes that rarer and not impossible, since another replica
//     may be elected than the one that answered; therefore there is no option
//     for it. A cluster of masters without replicas loses nothing; a partition
//     whose master is down is unavailable until it is back.
//
// A withdrawal that was sent and then forgotten is sent again: money state
// belongs on servers of the first kind.
//
// The settings are read at Open, on every master, and again whenever the client
// made a new connection, before anything sent over it counts: what comes back may
// be another server. Where it is refused, commits have an unknown outcome until
// the servers are as they must be, and are then sent again.
//
// # Layout
//
// Partitions spread over 64 hash tags, and everything of one partition is in the
// slot of its tag, with the due rows of all partitions of that tag in one sorted
// set per table. A Change is therefore always one slot's business, and due work
// is found by asking 64 sets. With "cryptopay" as prefix, n as tag:
//
//	cryptopay:{n}:row:<table>:<partition>            hash   id → version, change, due, columns
//	cryptopay:{n}:idx:<table>:<columns>:<partition>  zset   columns and id, by bytes; one per Unique and Index, and one of ids
//	cryptopay:{n}:due:<table>                        zset   partition NUL id, by µs
//	cryptopay:{n}:in:<table>                         set    partitions that ever had a row
//	cryptopay:{n}:tx:<partition>                     hash   id → change, kind, reference, µs
//	cryptopay:{n}:bal:<partition>                    hash   account NUL asset → "posted held seq"
//	cryptopay:{n}:dir:<partition>                    zset   the fields of bal
//	cryptopay:{n}:his:<partition>NUL<account>NUL<asset>  list  "delta after transaction"
//	cryptopay:{n}:level:<partition>                  hash   name → value
//	cryptopay:{0}:schema:tables                      hash   table → declaration
//
// Beside itself a row is one member of a sorted set per Unique and Index, and of
// that of ids: count some 100 bytes of memory for each.
//
// Amounts are decimal text and are never a number of Lua, which is a double.
// A table that is declared otherwise than it is stored is ErrSchema: run Migrate, while no
// other process uses the store.
//
// # Reading
//
// Find and Count go along one index: that of which most leading columns are
// compared, and of equal ones that which gives the order asked for. Other
// conditions are applied to the rows read. A query that no index helps reads the
// table's rows of the partition, 500 at a time. Each such piece is read at one
// moment; a query of several pieces is not: what is written meanwhile may be
// seen or not. Without a partition, all those that ever had a row of the table
// are asked.
//
// While a cluster moves a slot, its partitions may answer TRYAGAIN: unknown
// outcomes, to be sent again.
package redisstore
