package planted

// Transactions of Solana in a form that is newer than the client.
var solanaRemovals = []Bug{
	{
		ID: "FN01-version-asked-for", File: "chain/solana/node.go", Old: "const anyVersion = 255", New: "const anyVersion = 0",
		What:    "a node is asked for versions that were known once: it refuses every block with a newer transaction in it",
		Package: "chain/solana", Test: "TestFN01_Version1IsReadAsAnyOther",
	},
	{
		ID: "FN01-later-passed", File: "chain/solana/match.go",
		Old:     "case t.later:\n\t\treturn c.byBalances(ctx, b, i, p, w)",
		New:     "case t.later:\n\t\treturn nil, nil",
		What:    "what came in a transaction of a later version is not seen at all",
		Package: "internal/e2e", Test: "TestFN01_OneBlockOfEveryVersion",
	},
	{
		ID: "FN01-later-credited", File: "chain/solana/match.go", Old: "Spends: e.spends, Unproven: e.unread}", New: "Spends: e.spends}",
		What:    "what only balances show of a transaction that nobody here can read is credited",
		Package: "internal/e2e", Test: "TestFN01_OneBlockOfEveryVersion",
	},
	{
		ID: "FN01-later-stops", File: "chain/solana/match.go",
		Old:     "case err != nil && t.later:\n\t\tc.pass(b, i, err.Error())\n\t\treturn nil, nil",
		New:     "case err != nil && t.later:\n\t\treturn nil, err",
		What:    "a strange transaction of a later version stops the network",
		Package: "chain/solana", Test: "TestFN01_WhatIsStrangeOfALaterVersionStopsNoBlock",
	},
	{
		ID: "FN01-newer-form-stops", File: "chain/solana/match.go", Old: "if errors.Is(err, errVersion) {", New: "if false && errors.Is(err, errVersion) {",
		What:    "bytes in a newer form than the reader's stop the network where the node names no version",
		Package: "chain/solana", Test: "TestFN01_WhatIsStrangeOfALaterVersionStopsNoBlock",
	},
	{
		ID: "FN01-long-block-stops", File: "chain/solana/scan.go", Old: `errors.Is(k.Err, transport.ErrTooLong)`, New: `false && errors.Is(k.Err, transport.ErrTooLong)`,
		What:    "a block that strangers made too long for one answer stops the network",
		Package: "chain/solana", Test: "TestFN01_BlocksThatAreTooLongAreRead",
	},
	{
		ID: "FN01-signatures-in-front", File: "chain/solana/build.go", Old: "if u.Payload[0] == version1 {", New: "if false {",
		What:    "a transaction of version 1 is sent with its signatures in front: no node takes it",
		Package: "chain/solana", Test: "TestFN01_Version1IsSent",
	},
	{
		ID: "FN01-other-settings-signed", File: "chain/solana/version1.go", Old: "if c.mask != configOurs {", New: "if c.mask&configOurs != configOurs {",
		What:    "a transaction with settings that nobody looked at is signed",
		Package: "chain/solana", Test: "TestFN01_InspectReadsEverySettingOfVersion1",
	},
}
