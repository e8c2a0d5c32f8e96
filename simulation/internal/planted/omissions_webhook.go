package planted

// Lines that webhooks lack.
var webhookOmissions = []Bug{
	{
		ID: "omit-webhook-previous-signature", File: "webhook/sign.go",
		Old: `	if previous != nil {
		h.Set(HeaderSignaturePrevious, previous.Body(body))
		standard += " " + previous.Standard(id, at, body)
	}
`,
		New:     "",
		What:    "after a rotation only the new secret signs",
		Package: "webhook", Test: "TestHeadersAreCanonical",
	},
	{
		ID: "omit-webhook-body-close", File: "webhook/http.go",
		Old: `	defer resp.Body.Close() //nolint:errcheck // nothing of it is wanted any more
`,
		New:     "",
		What:    "the bodies of answers are not closed",
		Package: "webhook", Test: "TestH05_ConnectionEndsWithTheAttempt",
	},
	{
		ID: "omit-webhook-host-pause", File: "webhook/deliver.go",
		Old: `		if until := s.breakers.hold(host, now); !until.IsZero() {
			return s.held(j, now, until)
		}
`,
		New:     "",
		What:    "a host that does not answer is asked for each event",
		Package: "webhook", Test: "TestFS03_HeldBackEnds",
	},
	{
		ID: "omit-webhook-undelivered-cap", File: "webhook/deliver.go",
		Old: `			broken = errors.Join(broken, s.trim(ctx, row.Partition, now, gone))
`,
		New:     "",
		What:    "undelivered events are kept without bound",
		Package: "webhook", Test: "TestFS06_BacklogOfATenantIsCapped",
	},
	{
		ID: "omit-webhook-gone-mark", File: "webhook/backlog.go",
		Old: `			gone[keyOf(row)] = true
`,
		New:     "",
		What:    "an event that was given up is delivered all the same",
		Package: ".", Test: "TestFS06_WhatWasGivenUpIsNotDelivered",
	},
	{
		ID: "omit-webhook-pause-end", File: "webhook/breaker.go",
		Old: `		delete(b.all, k)
		return false`,
		New:     "\t\treturn false",
		What:    "a host that answers again keeps its count of failures",
		Package: "webhook", Test: "TestFS03_HeldBackEnds",
	},
}
