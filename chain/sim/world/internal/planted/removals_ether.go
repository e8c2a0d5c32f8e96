package planted

// Ether that comes through contracts.
var etherRemovals = []Bug{
	{
		ID: "FN05-no-rounds", File: "chain/incoming/scan.go",
		Old:     "\tfound, roundErr := n.reconcile(ctx)\n",
		New:     "\tfound, roundErr := 0, error(nil)\n",
		What:    "ether that a contract sends to an address whose payment is over is never looked for",
		Package: "internal/e2e", Test: "TestFN05_EtherOfContractsIsFoundInEveryCase",
	},
	{
		ID: "FN05-unproven-dropped", File: "chain/incoming/reconcile.go",
		Old:     "\t\tif b.rest.LessThan(r.gas.Dust) {\n\t\t\tcontinue",
		New:     "\t\tif b.rest.LessThan(r.gas.Dust) || len(named) == 0 {\n\t\t\tcontinue",
		What:    "what came while the node's state was thrown away is not booked",
		Package: "internal/e2e", Test: "TestFN05_WhatBalancesShowedIsNotCreditedAgainByItsTrace",
	},
	{
		ID: "FN05-booked-twice", File: "chain/incoming/books.go",
		Old:     "\t\tif covered {\n",
		New:     "\t\tif covered && t.Block.Hash == \"\" {\n",
		What:    "what was booked by balances alone is credited again when a node names its transaction",
		Package: "internal/e2e", Test: "TestFN05_WhatBalancesShowedIsNotCreditedAgainByItsTrace",
	},
	{
		ID: "FN05-spending-forgotten", File: "chain/incoming/books.go",
		Old:     `b.rest.Add(s.Paid)`,
		New:     `b.rest`,
		What:    "what our own transactions took is not counted, so that what came at a swept or hot address is taken for nothing",
		Package: "internal/e2e", Test: "TestFN05_EtherOfContractsIsFoundInEveryCase",
	},
	{
		ID: "FN05-holding-not-kept", File: "chain/incoming/reconcile.go",
		Old:     `if b.keep && (b.base.version == 0`,
		New:     `if b.keep && b.base.version > 0 && (b.base.version == 0`,
		What:    "what an address held is kept of none, so that its history is read from the start at each round",
		Package: "chain/incoming", Test: "TestFN05_HoldingIsKeptAndDroppedByAFork",
	},
	{
		ID: "FN05-holding-survives-fork", File: "chain/incoming/fork.go",
		Old:     "Value: ancestor.Height + 1})\n\treturn c, err",
		New:     "Value: ancestor.Height + 1000})\n\treturn c, err",
		What:    "what an address held on a branch that is gone is built on",
		Package: "chain/incoming", Test: "TestFN05_HoldingIsKeptAndDroppedByAFork",
	},
	{
		ID: "FN05-thousand-open", File: "payment/open.go",
		Old:     "\t\tif len(rows) < openPage {\n",
		New:     "\t\tif len(rows) <= openPage {\n",
		What:    "beyond a thousand open payments none is looked at block by block",
		Package: "payment", Test: "TestFN05_EveryOpenPaymentIsListed",
	},
	{
		ID: "FP07-each-balance", File: "chain/evm/balances.go",
		Old:     "\tif c.single.Load() > 0 {\n",
		New:     "\tif c.single.Load() <= 0 {\n",
		What:    "every open payment costs two calls a block",
		Package: "internal/e2e", Test: "TestFP07_AnEmptyBlockCostsTenCallsWhileAThousandPaymentsWait",
	},
	{
		ID: "FP07-blocks-not-there", File: "chain/evm/scan.go",
		Old:     `max(1, c.head.Load()-last.Height)`,
		New:     `int64(n)`,
		What:    "blocks are asked for that the node has just said it has not",
		Package: "internal/e2e", Test: "TestFP07_AnEmptyBlockCostsTenCallsWhileAThousandPaymentsWait",
	},
}
