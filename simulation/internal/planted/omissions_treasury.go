package planted

// Lines that the treasury lacks.
var treasuryOmissions = []Bug{
	{
		ID: "omit-treasury-gas-cost", File: "wallet/treasury/landed.go",
		Old: `	if err := t.cost(ctx, o); err != nil {
		return err
	}
`,
		New: `	if o.Purpose != chain.ForGas {
		if err := t.cost(ctx, o); err != nil {
			return err
		}
	}
`,
		What:    "what a gas transfer cost is in no book",
		Package: "wallet/treasury", Test: "TestFT01_AllThatAreWorthTheirCostAreDueInOneRound",
	},
	{
		ID: "omit-treasury-reservation-end", File: "wallet/treasury/landed.go",
		Old: `	if slices.Contains([]outgoing.State{outgoing.Final, outgoing.Failed, outgoing.Cancelled}, o.State) {
		if err := t.release(ctx, o); err != nil {
			return err
		}
	}
`,
		New: `	_ = slices.Contains[[]outgoing.State]
`,
		What:    "what was set aside for a transaction stays set aside after its end",
		Package: "wallet/treasury", Test: "TestW14_ChildKeepsWhatItMayCost",
	},
	{
		ID: "omit-treasury-daily-cost", File: "wallet/treasury/gas.go",
		Old:     "level, err := t.dayLimit(ctx, w.in, gas, w.most, since)",
		New:     "var level []storage.Level",
		What:    "forwarding costs as much as it likes in a day",
		Package: "wallet/treasury", Test: "TestFT02_CalledOffGasIsGivenBackToItsDay",
	},
	{
		ID: "omit-treasury-forwarded-notice", File: "wallet/treasury/landed.go",
		Old: `			c.Put = append(c.Put, incoming.Sightings.Row(r.ID, r.Version, t.cfg.Now(), d))
`,
		New:     "",
		What:    "the deposits of a landed sweep are not told",
		Package: "wallet/treasury", Test: "TestK05_SweepWhoseNonceWasUsedUpIsMadeAgain",
	},
	{
		ID: "omit-treasury-sweep-again", File: "wallet/treasury/landed.go",
		Old: `		case o.Purpose == chain.ForSweep && s.State != SweepReplaced && dead:
			if next, then, err = t.again(ctx, j, o); err != nil {
				return storage.Change{}, err
			}
`,
		New:     "",
		What:    "a sweep whose transaction failed is not followed by another",
		Package: "wallet/treasury", Test: "TestFT01_SweepBesideOneThatWasGivenUpIsMadeAgain",
	},
	{
		ID: "omit-treasury-second-network", File: "wallet/treasury/sync.go",
		Old: `			r.wallet(ctx, placeHot, ColdWallet{Name: name, Network: n, Address: chain.Address(a)})
		}
	}`,
		New: `			r.wallet(ctx, placeHot, ColdWallet{Name: name, Network: n, Address: chain.Address(a)})
		}
		break
	}`,
		What:    "Sync reads the hot addresses of one network only",
		Package: ".", Test: "TestSyncReadsEveryNetwork",
	},
	{
		ID: "omit-treasury-day-given-back", File: "wallet/treasury/gas.go",
		Old:     "addLevels(&c, uncounted(of, r.v, o.Cost))",
		New:     "addLevels(&c, uncounted(of, r.v, o.Cost)[:0])",
		What:    "what a transaction did not cost stays counted for the day",
		Package: "wallet/treasury", Test: "TestFT02_GasThatWasCalledOffIsNotOfTheDay",
	},
	{
		ID: "omit-treasury-gas-called-off", File: "wallet/treasury/landed.go",
		Old: `	if _, err := t.callOff(ctx, j.row.ID, j.s, j.note.Gas); err != nil {
		return err
	}
`,
		New:     "",
		What:    "gas on its way to an address whose sweep has landed is not called off",
		Package: "wallet/treasury", Test: "TestW02_GasThatWasSetAsideTooLateIsCalledOff",
	},
	{
		ID: "omit-treasury-never-set", File: "wallet/treasury/funding.go",
		Old:     "	return off, t.endCalledOff(ctx, in)\n",
		New:     "	return off, nil\n",
		What:    "gas that is set aside after its sweep has ended stays set aside",
		Package: "wallet/treasury", Test: "TestW02_GasThatIsHandedOverAfterItsSweepHasNoEffect",
	},
	{
		ID: "omit-treasury-left-branch", File: "wallet/treasury/funding.go",
		Old:     "	if left {\n",
		New:     "	if left && false {\n",
		What:    "a sweep is given up on the word of a node on a branch that was left",
		Package: "wallet/treasury", Test: "TestR05_SweepIsNotGivenUpOnTheWordOfANodeOnABranchThatWasLeft",
	},
	{
		ID: "omit-treasury-not-paid-for", File: "wallet/treasury/funding.go",
		Old:     "ids := make([]string, s.Fundings+1)",
		New:     "ids := make([]string, s.Fundings)",
		What:    "gas that could not be paid for at first, and is set aside by one who has slept, stays so",
		Package: "wallet/treasury", Test: "TestW02_GasThatCouldNotBePaidForIsCalledOff",
	},
	{
		ID: "omit-treasury-set-aside-after", File: "wallet/treasury/funding.go",
		Old:     "err != nil || !off {\n		return off, err",
		New:     "err != nil || !off || set {\n		return off, err",
		What:    "gas that is set aside after its order was called off stays set aside",
		Package: "wallet/treasury", Test: "TestW02_GasThatIsSetAsideAfterItWasCalledOffIsGivenBack",
	},
}
