package planted

// Lines that keys, the REST interface and its credentials lack.
var doorOmissions = []Bug{
	{
		ID: "omit-keys-verify", File: "chain/keys/signer.go",
		Old: `	back, _, err := ecdsa.RecoverCompact(compact, d.Hash[:])
	if err != nil || !bytes.Equal(back.SerializeCompressed(), pub) {
		return nil, refuse("the signature does not verify")
	}
`,
		New: `	_ = bytes.Equal
`,
		What:    "a signature is given out unverified",
		Package: "chain/keys", Test: "TestK04_WrongSignatureIsNotHandedOut",
	},
	{
		ID: "omit-keys-slot-binding", File: "chain/keys/signer.go",
		Old:     "Slots: seen.Spends, Cost",
		New:     "Cost",
		What:    "a nonce or input is not bound to its intent",
		Package: "chain/keys", Test: "TestK05_Concurrent",
	},
	{
		ID: "omit-keys-cost-check", File: "chain/keys/signer.go",
		Old: `	o := chain.Order{Intent: in, Also: r.Also}
	if most, err := o.MaxCost(); err != nil || seen.MaxCost < 0 || seen.MaxCost > most {
		return refuse("it may cost %d, what is paid allows %d", seen.MaxCost, most)
	}
`,
		New:     "",
		What:    "a transaction may cost any fee",
		Package: "chain/keys", Test: "TestW13_Together",
	},
	{
		ID: "omit-httpapi-deadline", File: "httpapi/handler.go",
		Old: `	_ = conn.SetReadDeadline(start.Add(h.o.Timeout))
`,
		New:     "",
		What:    "a body that comes a byte at a time is read for ever",
		Package: "httpapi", Test: "TestI05_SlowBodiesEnd/promised",
	},
	{
		ID: "omit-httpapi-route-in-key", File: "httpapi/policy.go",
		Old:     `storage.Once{Key: c.Route.Name + "/" + key}`,
		New:     "storage.Once{Key: key}",
		What:    "an Idempotency-Key is one for all routes of the tenant",
		Package: "httpapi", Test: "TestWalletsOnce",
	},
	{
		ID: "omit-httpapi-recover", File: "httpapi/handler.go",
		Old: `		if p := recover(); p != nil {
			if p == http.ErrAbortHandler { //nolint:errorlint // a panic with this very value
				panic(p)
			}
			h.panicked(seen, c, p)
		}
`,
		New:     "",
		What:    "a panic of an endpoint ends the connection",
		Package: "httpapi", Test: "TestI06_BreakdownsTellNothing",
	},
	{
		ID: "omit-httpapi-retry-after", File: "httpapi/policy.go",
		Old: `	wait := seconds(left)
	w.Header().Set("Retry-After", wait)
`,
		New: `	wait := seconds(left)
`,
		What:    "429 does not say when to come again",
		Package: "httpapi", Test: "TestTransactionRateLimit",
	},
	{
		ID: "omit-auth-app-check", File: "httpapi/auth/token.go",
		Old: `	case !there || a.Number != t.App: // deleted; the id may be another's now
		return Identity{}, &TokenError{Revoked}
`,
		New:     "",
		What:    "tokens of a deleted application are good",
		Package: "httpapi/auth", Test: "TestO08_ClientIDUsedAgain/memory",
	},
	{
		ID: "omit-auth-backoff", File: "httpapi/auth/app.go",
		Old: `	if wait > 0 && !made(secretPrefix, secret) { // a made secret cannot be guessed: its owner is let in
		return application{}, storage.Row{}, &BackoffError{RetryAfter: wait}
	}
`,
		New:     "",
		What:    "a client's secret may be guessed at any speed",
		Package: "httpapi/auth", Test: "TestO05_GuessingSlowsDown",
	},
	{
		ID: "omit-auth-scope-narrowing", File: "httpapi/auth/token.go",
		Old:     "\t\tScopes: common(splitScopes(a.Scopes), splitScopes(t.Scopes)),",
		New:     "\t\tScopes: splitScopes(t.Scopes),",
		What:    "a token keeps a scope that its application has lost",
		Package: "httpapi/auth", Test: "TestO07_NarrowedApplicationNarrowsItsTokens/memory",
	},
	{
		ID: "omit-httpapi-deadline-lifted", File: "httpapi/handler.go",
		Old: `			_ = conn.SetWriteDeadline(time.Time{})
`,
		New:     "",
		What:    "the deadline of an answer ends the next one of the connection",
		Package: "httpapi", Test: "TestI05_DeadlinesStayOurs",
	},
	{
		ID: "omit-httpapi-key-released", File: "httpapi/handler.go",
		Old: `	leave, err := h.once(c, b.body)
	defer leave()`,
		New:     "\t_, err = h.once(c, b.body)",
		What:    "an Idempotency-Key stays in progress for ever",
		Package: "httpapi", Test: "TestW12_WithdrawalOnce",
	},
}
