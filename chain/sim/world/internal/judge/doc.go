// Package judge decides from outside whether a simulated world went as the
// library's papers promise.
//
// It promises:
//
//   - It sees what people see: what customers, merchants and operators asked for
//     and were answered, what the public views say, the webhooks as they arrived,
//     the simulated chain, the clock, and which faults are on. It reads no code of
//     the library's and no row of its store but the balances of the ledger.
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
// A Scene is what can be seen at one moment. Read makes the part of it that an App
// answers; the world adds its chains. Judge.Look judges a Scene.
package judge
