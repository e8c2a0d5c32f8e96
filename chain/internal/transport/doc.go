// Package transport is how chain clients talk to nodes over HTTP: an Endpoint that
// bounds every answer and keeps itself out of errors, JSON-RPC in batches over
// it, and a Walk that reads large answers in place.
//
// It promises: an answer is whole or an error that wraps chain.ErrNode; nothing
// of an endpoint's address, credentials or headers is in an error; no host's
// proxy, client or redirect policy is used but the one given.
package transport
