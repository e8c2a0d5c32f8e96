package planted

// Lines that wallets lack.
var walletOmissions = []Bug{
	{
		ID: "omit-wallet-open-guard", File: "wallet/transfer.go",
		Old: `		w, row, err := s.subAccount(ctx, p, in)
		if err != nil {
			return storage.Change{}, err
		}
		t = draft
		t.Wallet, t.ExternalID, t.CreatedAt, t.UpdatedAt = w.ID, w.ExternalID, now, now
		// The other account is the master account, which is never closed.
		change := storage.Change{
			ID: s.c.NewID(), Partition: p, Require: []storage.Guard{WalletRows.Guard(w.ID, row.Version)},`,
		New: `		w, _, err := s.subAccount(ctx, p, in)
		if err != nil {
			return storage.Change{}, err
		}
		t = draft
		t.Wallet, t.ExternalID, t.CreatedAt, t.UpdatedAt = w.ID, w.ExternalID, now, now
		// The other account is the master account, which is never closed.
		change := storage.Change{
			ID: s.c.NewID(), Partition: p,`,
		What:    "a transfer is accepted from or to a wallet that is closed meanwhile",
		Package: ".", Test: "TestL03_TransferToAWalletClosedMeanwhile",
	},
	{
		ID: "omit-wallet-cap", File: "wallet/account.go",
		Old: `		if err := s.room(ctx, p, last.Last); err != nil {
			return storage.Change{}, err
		}
`,
		New:     "",
		What:    "a tenant has any number of wallets",
		Package: "httpapi", Test: "TestFS06_WalletsAreBounded",
	},
	{
		ID: "omit-wallet-transfer-event", File: "wallet/apply.go",
		Old:     "	webhook.Put(c, event)\n",
		New:     "	_ = event\n",
		What:    "no event tells of a transfer that is completed or failed",
		Package: "wallet", Test: "TestTransferThroughTrouble",
	},
	{
		ID: "omit-wallet-second-page", File: "wallet/balances.go",
		Old: `				Currency: string(b.Asset), Amount: b.Posted, Pending: b.Held, Available: b.Available(),
			})
		}
	}`,
		New: `				Currency: string(b.Asset), Amount: b.Posted, Pending: b.Held, Available: b.Available(),
			})
		}
		break
	}`,
		What:    "only the first five hundred wallets have a balance",
		Package: ".", Test: "TestX01_EveryWalletIsInTheOverview",
	},
	{
		ID: "omit-wallet-pending-check", File: "wallet/account.go",
		Old: `		pending, err := s.pending(ctx, tenant, w.ID)
		if err != nil {
			return err
		}
		if pending {
			return ErrNotEmpty
		}
`,
		New:     "",
		What:    "a wallet is deleted while something still expects to post to it",
		Package: "wallet", Test: "TestDelete",
	},
	{
		ID: "omit-wallet-unknown-outcome", File: "wallet/apply.go",
		Old:     "\t\tif !claimed {\n",
		New:     "\t\tif !claimed {\n\t\t\treturn storage.Change{}, nil\n\t\t}\n\t\tif !claimed {\n",
		What:    "a transfer whose ground has changed waits for the next lease",
		Package: "wallet", Test: "TestFQ12_FailureHasItsEventNumber",
	},
}
