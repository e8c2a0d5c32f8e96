// Package several makes one chain.Client of several clients of the same network,
// each in front of a node of its own.
//
// What it promises:
//   - What money moves on is told only when Config.Agree nodes tell the same of
//     it: blocks and their transfers, heights that are final, what became of a
//     transaction, an address's history and nonce. Where not so many tell the same,
//     the answer is an error that names them (ErrDisagree), never a choice; who is
//     outvoted is logged. Of one transaction it is Unknown, which holds up no other.
//   - Everything else is read from one node, and from the next where that fails.
//   - A transaction is sent to every node; it is sent where one takes it.
//   - A node that fails, is limited or is on another chain is left alone for a
//     while, longer each time; one that lags is not read from. Where too few nodes
//     are left to agree, the answer is an error (ErrTooFew).
//   - It starts no goroutine and asks no clock but Config.Now. Nodes are known by
//     the names they were given; no address of one is in an error or a log.
//
// An optional ability is asked of the nodes that have it; one that no node has is off.
// Give Agree nodes every ability that money moves on: one that can trace inner calls and
// one that cannot do not tell the same of a block.
package several
