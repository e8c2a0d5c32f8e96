// Package incoming turns blocks into Sightings: what the chain says was paid to
// addresses of ours, and how sure that is.
//
// # What it promises
//
//   - The cursor moves only in the Change that records what the blocks held, so
//     no block is skipped and none is counted twice: not by a crash, not by two
//     processes on one store, not after downtime. A client that reads the histories of
//     few addresses leaves out blocks in which nothing came to one; what it leaves out is
//     its promise, and each answer goes on from the one before.
//   - A fork is found by hash, never by height. What the chain took back is
//     taken back here: an included transfer waits as seen until the new branch
//     has it or is as long as the old one; a final one is gone at once, and when
//     it is mined again it is a new Generation. What is stored in the end depends
//     on the chain in the end, not on the way there.
//   - Final is said once, by a stored row, and a Proof is made of nothing else.
//   - A node that lags, lies about its height, answers in parts or contradicts
//     itself moves nothing: that is an error. What cannot be true (a fork below
//     what the network called final, or below everything remembered) halts the
//     network until an operator says Resume.
//   - Each transfer is (tx, ordinal), whichever block it is in; no number of
//     worthless ones makes unbounded work.
//
// # Parts
//
// Network reads one chain (Step) and hands changed Sightings to a Handler. Watched
// is the set of addresses that it looks for. Pool is the directory of addresses:
// derived ahead, watched from then on, and never handed out twice.
package incoming
