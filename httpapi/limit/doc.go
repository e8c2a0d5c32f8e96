// Package limit counts requests against the documented limits: so many in a
// fixed window.
//
// # What it promises
//
//   - A window starts with the first request in it and is half open: it ends at
//     Reset, not after it. In one window no key gets through more than Max times,
//     whatever other keys do and however little memory is left.
//   - Several rules are judged and counted as one: a request that one of them
//     refuses counts in none, so who is refused does not use up anything else.
//   - A State is true at the instant of its request, and fit for the headers:
//     after Reset a refused request is let in, not earlier.
//   - Time comes from the caller. A clock set back never makes a window longer.
//
// NewMemory counts in this process only: n processes let through n times as
// many. Package redislimit counts for all processes that share a Redis.
//
// # Why not a library
//
// redis_rate is GCRA: it spreads a limit evenly and has no instant at which the
// whole allowance is back, which is what X-RateLimit-Reset says. Those that have
// fixed windows judge one rule at a time, ask the wall clock, and keep an
// unbounded map or drop whatever counter is oldest; the last lets an attacker
// with many keys free his own.
package limit
