// Package httpapi is the documented REST interface of an App, as a handler for
// any net/http mux.
//
// It promises: every path is served with and without its trailing slash and
// never redirects; a route without a policy (who may call it, how often) cannot
// be added; bad input changes nothing and gets one answer that names every bad
// field; an answer never carries what went wrong inside; another tenant's
// object does not exist; and a request with an Idempotency-Key takes effect
// once, whatever is lost on the way.
//
//	api, err := httpapi.New(app, httpapi.Options{Auth: accounts, Prefix: "/pay"})
//	mux.Handle("/pay/", api)
//
// The handler sets its own body limit, deadlines and headers: it does not rely
// on the server that it is mounted in, and starts nothing.
//
// # Shape
//
// routes.go is one table: method, path, scopes, roles, limits, error style.
// Authorisation, rate limits, the OpenAPI document and the tests read it. An
// endpoint is a typed function from an input struct to a view struct, one file
// per resource; binding.go fills inputs from path, query and body, errors.go
// turns errors of the domains into answers, in one table.
package httpapi
