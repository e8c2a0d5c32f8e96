// Package judge decides from outside whether a simulated world went as the
// library's papers promise.
//
// It promises:
//
//   - It sees what a host can see: what customers, merchants and operators asked for
//     and were answered, what the public views say, the webhooks as they arrive and
//     wait, the chain, the clock, which faults are on, and what passes the store and
//     the signer, which a host may give itself. Of rows it reads none but for three
//     promises that nothing else shows: I11-free, I9-gas with I4-aside, and I24-once.
//   - Every rule is written from the documented interface and its decisions alone.
//     Table lists each promise with the rule in words.
//   - It counts. Each promise is counted when it is asked, and counted again when
//     its premise held, so that it could have failed. A promise that never could
//     have failed proves nothing.
//   - A promise with an Open mark is asked and counted, and fails no world: the mark
//     names the finding whose repair turns it on.
//   - It is a pure function of what it is given, in order: no clock, no randomness,
//     no map order in what it says.
//
// Committed, Claimed, Asked and Signed are told of what happens at the store and at the
// signer, at the moment when it happens. A Scene is what can be seen at one moment. Read makes the part of it that an App
// answers; the world adds its chains. Judge.Look judges a Scene.
package judge
