// Package signerd is a signer on a machine of its own, and the App's side of it.
//
// It promises: whoever owns the App's process and its database, and holds its certificate,
// takes no more than the limits say. The Server reads each payload for itself, derives our
// addresses from its own seed, or asks its own module for them, and believes nothing that a
// request says about either. It keeps its own sign-once registry and its own counts, in a
// store that the App cannot write.
// No signature leaves before it is bound, counted, and written to a log whose lines are
// chained by their hashes.
//
// A Client is a chain.ManySigner. A refusal wraps chain.ErrRefused. Every other error is an
// unknown outcome: the same request asked again gets the same signatures, and counts once.
//
// Both sides show certificates of one private authority (mutual TLS 1.3). The wire is JSON:
// POST /v1/sign takes many requests, GET /v1/health says what the log ends with.
//
// With Config.Mandates it pays what was ordered, once, whatever the App's database says.
//
// It does not bound what an App loses that shows its customers addresses of a thief: see
// docs/signer.md.
package signerd
