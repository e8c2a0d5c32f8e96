package planted

// The signer apart from the App.
var signerRemovals = []Bug{
	{
		ID: "FS07-no-limit", File: "chain/keys/limits.go",
		Old:  "\tif sum > l.Amount {",
		New:  "\tif more > l.Amount {",
		What: "a limit holds for each request alone", Package: "chain/keys/signerd", Test: "TestFS07_StolenAppTakesAtMostTheLimit",
	},
	{
		ID: "FS07-unlisted-is-unlimited", File: "chain/keys/limits.go",
		Old:  "\t\tif len(all[of]) == 0 {",
		New:  "\t\tif len(all[of]) > 9 {",
		What: "an asset without a limit is paid without bound", Package: "chain/keys/signerd", Test: "TestFS07_WithoutALimitNothingLeaves",
	},
	{
		ID: "FS07-fees-not-counted", File: "chain/keys/limits.go",
		Old:  "due := map[string]ledger.Amount{costsOf(b.Network): b.Cost}",
		New:  "due := map[string]ledger.Amount{costsOf(b.Network): 0}",
		What: "fees are burnt without bound", Package: "chain/keys/signerd", Test: "TestFS07_FeesAreLimited",
	},
	{
		ID: "FS07-window-not-guarded", File: "chain/keys/limits.go",
		Old: "\tc.put[key] = t.Row(id, c.rows[key].Version, time.Time{}, v)",
		New: `	c.put[key] = t.Row(id, c.rows[key].Version, time.Time{}, v)
	if t.Name == signedWindows.Name {
		delete(c.put, key)
	}`,
		What: "what was counted is not kept with what was bound", Package: "chain/keys/signerd", Test: "TestFS07_StolenAppTakesAtMostTheLimit",
	},
	{
		ID: "FS07-counted-again", File: "chain/keys/limits.go",
		Old:  "\tmore := due[of] - counted[of] // neither",
		New:  "\tmore := due[of] // neither",
		What: "a replacement counts whole", Package: "chain/keys/signerd", Test: "TestFS07_ReplacementsCountWhatTheyTakeMore",
	},
	{
		ID: "FS07-step-too-early", File: "chain/keys/limits.go",
		Old:  "if (s.Number+1)*size <= from {",
		New:  "if s.Number*size <= from {",
		What: "an amount is forgotten a step too early", Package: "chain/keys", Test: "TestFS07_NoWindowHasMoreThanTheLimit",
	},
	{
		ID: "FS07-hint-believed", File: "chain/keys/signer.go",
		Old:  "		if mine {\n			o.ours[at] = ref",
		New:  "		if ok || mine {\n			o.ours[at] = ref",
		What: "the signer believes which addresses are ours", Package: "chain/keys/signerd", Test: "TestFS07_WhatTheAppCallsOursIsDerived",
	},
	{
		ID: "FS07-module-signs-anew", File: "chain/keys/limits.go",
		Old:  "\t\t\tb.Signatures, b.Tx = kept, a.Tx\n",
		New:  "\t\t\t_ = kept\n",
		What: "a module signs the same attempt in another way", Package: "chain/keys/signerd", Test: "TestFS07_ModuleGoneInTheMiddle",
	},
	{
		ID: "FS07-loose-key", File: "chain/keys/hsm/objects.go",
		Old:  "return yes(0) && yes(1) && yes(2) && yes(3) && !yes(4), nil",
		New:  "return yes(1) || true, nil",
		What: "a key signs that the module gives away", Package: "chain/keys/hsm", Test: "TestFS07_KeyFromOutsideIsRefused",
	},
	{
		ID: "FS07-pin-again", File: "chain/keys/hsm/module.go",
		Old:  "\t\t\t\tm.refused = err\n",
		New:  "\t\t\t\t_ = last\n",
		What: "a PIN that was refused is tried again", Package: "chain/keys/hsm", Test: "TestFS07_RefusedPINIsNotTriedAgain",
	},
	{
		ID: "FS07-memo-of-recipient", File: "chain/keys/signerd/server.go",
		Old:  "\t\ts.allow[code][recipientOf(c, a, one.Memo)] = true",
		New:  "\t\ts.allow[code][recipientOf(c, a, \"\")] = true",
		What: "a recipient is paid under any memo", Package: "chain/keys/signerd", Test: "TestFS07_OnlyListedRecipients",
	},
	{
		ID: "FS07-list-ignored", File: "chain/keys/signerd/server.go",
		Old:  "if listed && !list[",
		New:  "if listed && len(list) == 0 && !list[",
		What: "everybody is paid although there is a list", Package: "chain/keys/signerd", Test: "TestFS07_OnlyListedRecipients",
	},
	{
		ID: "FS07-no-certificate", File: "chain/keys/signerd/tls.go",
		Old:  "ClientAuth: tls.RequireAndVerifyClientCert",
		New:  "ClientAuth: tls.RequestClientCert",
		What: "clients of any authority are let in to the handler", Package: "chain/keys/signerd", Test: "TestFS07_OnlyTheAppsCertificateIsAnswered",
	},
	{
		ID: "FS07-plain-handler", File: "chain/keys/signerd/server.go",
		Old:  "if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 ||",
		New:  "if r.TLS != nil &&",
		What: "a handler without TLS signs", Package: "chain/keys/signerd", Test: "TestFS07_NothingIsSignedWithoutTLS",
	},
	{
		ID: "FS07-unknown-fields", File: "chain/keys/signerd/server.go",
		Old: `	in.DisallowUnknownFields()
`,
		New:  "",
		What: "a question that is not understood is signed", Package: "chain/keys/signerd", Test: "TestFS07_GarbageIsNoQuestion",
	},
	{
		ID: "FS07-body-without-end", File: "chain/keys/signerd/server.go",
		Old:  "readQuestion(http.MaxBytesReader(w, r.Body, maxBody))",
		New:  "readQuestion(http.MaxBytesReader(w, r.Body, 1<<40))",
		What: "a body of any size is read", Package: "chain/keys/signerd", Test: "TestFS07_GarbageIsNoQuestion",
	},
	{
		ID: "FS07-log-after-all", File: "chain/keys/signerd/server.go",
		Old: `				errs[i] = err
			}
		}
	}
	return errs`,
		New: `				_ = err
			}
		}
	}
	return errs`,
		What: "signatures are given that are not in the log", Package: "chain/keys/signerd", Test: "TestFS07_NoLogNoSignature",
	},
	{
		ID: "FS07-chain-of-lines", File: "chain/keys/signerd/log.go",
		Old:  "|| l.Before != hex.EncodeToString(h.Hash[:]) {",
		New:  "{",
		What: "a changed line of the log is not found", Package: "chain/keys/signerd", Test: "TestFS07_ChangedLogIsRefused",
	},
	{
		ID: "FS07-torn-line-stays", File: "chain/keys/signerd/log.go",
		Old:  "err == nil && l.torn > 0 {",
		New:  "err == nil && l.torn < 0 {",
		What: "a line that a crash cut off stays in the log", Package: "chain/keys/signerd", Test: "TestFS07_SignerKilledAnywhere",
	},
	{
		ID: "FS07-older-registry", File: "chain/keys/signerd/server.go",
		Old: `	if err := cfg.Log.missing(ctx, cfg.Store); err != nil {
		return nil, err
	}
`,
		New:  "",
		What: "an older registry forgets what was signed", Package: "chain/keys/signerd", Test: "TestFS07_OlderRegistryIsRefusedAndRebuilt",
	},
	{
		ID: "FS07-lost-is-refused", File: "chain/keys/signerd/client.go",
		Old:  "errs[i] = fmt.Errorf(\"signerd: no answer from the signer: %w\", err)",
		New:  "errs[i] = fmt.Errorf(\"%w: no answer from the signer: %w\", chain.ErrRefused, err)",
		What: "a signer that does not answer is taken for one that refuses", Package: "chain/keys/signerd", Test: "TestFS07_UnreachableSignerIsNoRefusal",
	},
	{
		ID: "FS07-not-asked-again", File: "chain/keys/signerd/client.go",
		Old:  "err != nil && ctx.Err() == nil {",
		New:  "err != nil && ctx.Err() != nil {",
		What: "a lost answer is not asked for again", Package: "chain/keys/signerd", Test: "TestFS07_LostAnswerIsAskedAgain",
	},
	{
		ID: "FS07-any-server", File: "chain/keys/signerd/tls.go",
		Old:  "Certificates: []tls.Certificate{cert}, RootCAs: pool}",
		New:  "Certificates: []tls.Certificate{cert}, RootCAs: pool, InsecureSkipVerify: true}",
		What: "the App asks any server to sign", Package: "chain/keys/signerd", Test: "TestFS07_OnlyTheSignersCertificateIsAsked",
	},
	{
		ID: "FS07-seed-beside-the-signer", File: "examples/gateway/signer.go",
		Old: `	if g.s.signer.elsewhere() {
		return g.remote`,
		New: `	if g.s.signer.elsewhere() {
		if _, err := loadSeed(ctx, g.store, key, ""); err != nil {
			return nil, nil, err
		}
		return g.remote`,
		What: "the gateway keeps a seed beside the signer", Package: "examples/gateway", Test: "TestFS07_GatewayWithASignerHasNoSeed",
	},
	{
		ID: "FS07-bitcoins-called-litecoins", File: "chain/keys/signer.go",
		Old:  "\t\tif foreign(in.Network, r.Keys[i]) {",
		New:  "\t\tif foreign(in.Network, r.Keys[i]) && false {",
		What: "a key signs for a network that is not its own", Package: "chain/utxo", Test: "TestFS07_CoinsOfAnotherNetworkAreNotSigned",
	},
	{
		ID: "FS07-last-line-alone", File: "chain/keys/signerd/log.go",
		Old:  "\terr := l.each(func(line *Line) error {\n",
		New:  "\terr := l.each(func(line *Line) error {\n\t\tdelete(said, line.Network)\n",
		What: "an older registry that knows the last line is taken", Package: "chain/keys/signerd", Test: "TestFS07_OlderRegistryIsRefusedThoughItKnowsTheLastLine",
	},
	{
		ID: "FS07-new-accounts-are-free", File: "chain/keys/signer.go",
		Old:  "	if more, ok := c.(chain.Coster); ok {",
		New:  "	if more, ok := c.(chain.Coster); ok && false {",
		What: "fees that no payload tells are burnt without bound", Package: "chain/tron", Test: "TestFS07_AccountsThatAreMadeCountAsFees",
	},
	{
		ID: "FS02-registry-copied-again", File: "examples/gateway/signerstore.go",
		Old:     `	case whole:`,
		New:     `	case whole && moved == "never":`,
		What:    "what somebody writes into the App's store is taken for signed by a signer with a store of its own",
		Package: "examples/gateway", Test: "TestFS02_RegistryOfAGatewayMoves",
	},
	{
		ID: "FS02-handed-out-after-the-mark", File: "examples/gateway/signerstore.go",
		Old: `	if err == nil && found {
		err = errors.New("CRYPTOPAY_SIGNER_STORE is missing`,
		New: `	if err != nil && found {
		err = errors.New("CRYPTOPAY_SIGNER_STORE is missing`,
		What:    "a process signs with the App's store while the registry moves away from it",
		Package: "examples/gateway", Test: "TestFS02_RegistryMovesBesideAnotherProcess",
	},
	{
		ID: "FS02-rows-left-behind", File: "examples/gateway/signerstore.go",
		Old: `for _, n := range networks {
			p := storage`,
		New: `for _, n := range networks[:1] {
			p := storage`,
		What:    "a registry that moves leaves rows behind",
		Package: "examples/gateway", Test: "TestFS02_RegistryMovesThroughInterruptions",
	},
}
