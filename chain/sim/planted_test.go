package sim_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/sim"
)

// full is everything that sim's client can do.
type full interface {
	chain.Client
	chain.Mempool
	chain.Balancer
	chain.Noncer
	chain.Historian
	chain.Locator
}

// liar is a client with one bug in it; nil functions are honest.
type liar struct {
	full
	parse     func(s string) (chain.Address, error)
	tip       func(t chain.Tip, err error) (chain.Tip, error)
	watch     func(w chain.Watch) chain.Watch
	scan      func(trail []chain.Block, s chain.Scan, err error) (chain.Scan, error)
	ctx       func(ctx context.Context) context.Context
	estimate  func(f chain.Fee) chain.Fee
	order     func(o *chain.Order)
	build     func(u *chain.Unsigned)
	inspect   func(u *chain.Unsigned, err error) error
	assemble  func(u chain.Unsigned, sigs []chain.Signature) []chain.Signature
	broadcast func(err error) error
	status    func(all []chain.Status) []chain.Status
	pending   func(all []chain.Transfer) []chain.Transfer
	payload   func(p []byte) []byte // as Inspect reads it
	sealed    func(s *chain.Signed, sigs []chain.Signature)
	sent      map[string]bool
}

func (l *liar) ParseAddress(s string) (chain.Address, error) {
	if l.parse != nil {
		return l.parse(s)
	}
	return l.full.ParseAddress(s)
}

func (l *liar) Tip(ctx context.Context) (chain.Tip, error) {
	t, err := l.full.Tip(l.context(ctx))
	if l.tip != nil {
		return l.tip(t, err)
	}
	return t, err
}

func (l *liar) context(ctx context.Context) context.Context {
	if l.ctx != nil {
		return l.ctx(ctx)
	}
	return ctx
}

func (l *liar) Scan(ctx context.Context, trail []chain.Block, w chain.Watch, limit int) (chain.Scan, error) {
	if l.watch != nil {
		w = l.watch(w)
	}
	s, err := l.full.Scan(l.context(ctx), trail, w, limit)
	if l.scan != nil {
		return l.scan(trail, s, err)
	}
	return s, err
}

func (l *liar) EstimateFee(ctx context.Context, in chain.Intent) (chain.Fee, error) {
	f, err := l.full.EstimateFee(ctx, in)
	if l.estimate != nil {
		f = l.estimate(f)
	}
	return f, err
}

func (l *liar) Build(ctx context.Context, o chain.Order) (chain.Unsigned, error) {
	if l.order != nil {
		l.order(&o)
	}
	u, err := l.full.Build(ctx, o)
	if l.build != nil && err == nil {
		l.build(&u)
	}
	return u, err
}

func (l *liar) Inspect(payload []byte) (chain.Unsigned, error) {
	if l.payload != nil {
		payload = l.payload(payload)
	}
	u, err := l.full.Inspect(payload)
	if l.inspect != nil {
		err = l.inspect(&u, err)
	}
	return u, err
}

func (l *liar) Assemble(u chain.Unsigned, sigs []chain.Signature) (chain.Signed, error) {
	given := sigs
	if l.assemble != nil {
		sigs = l.assemble(u, sigs)
	}
	s, err := l.full.Assemble(u, sigs)
	if l.sealed != nil && err == nil {
		l.sealed(&s, given)
	}
	return s, err
}

func (l *liar) Broadcast(ctx context.Context, s chain.Stored) error {
	if l.sent != nil && l.sent[s.Tx()] {
		return errors.New("already known")
	}
	err := l.full.Broadcast(ctx, s)
	if l.sent != nil {
		l.sent[s.Tx()] = true
	}
	if l.broadcast != nil {
		return l.broadcast(err)
	}
	return err
}

func (l *liar) Status(ctx context.Context, a ...chain.Attempt) ([]chain.Status, error) {
	all, err := l.full.Status(l.context(ctx), a...)
	if l.status != nil && err == nil {
		all = l.status(all)
	}
	return all, err
}

func (l *liar) Pending(ctx context.Context, w chain.Watch) ([]chain.Transfer, error) {
	all, err := l.full.Pending(ctx, w)
	if l.pending != nil {
		all = l.pending(all)
	}
	return all, err
}

// deaf is a watch that learns nothing in Sync; blind one that says yes to all.
type (
	deaf  struct{ chain.Watch }
	blind struct{ chain.Watch }
)

func (deaf) Sync(context.Context) error   { return nil }
func (blind) Contains(chain.Address) bool { return true }
func each(s *chain.Scan, f func(i int, x *chain.Transfer)) {
	for b := range s.Blocks {
		for i := range s.Blocks[b].Transfers {
			f(i, &s.Blocks[b].Transfers[i])
		}
	}
}

// bug is planted in the client, or in what the harness's network does to stand
// for a client that reports it wrongly, and must be found by one case.
type bug struct {
	network chain.Network
	found   string // the case that must fail
	client  func(l *liar)
	harness func(h *chaintest.Harness, c *sim.Chain)
}

func scanBug(f func(trail []chain.Block, s chain.Scan, err error) (chain.Scan, error)) func(*liar) {
	return func(l *liar) { l.scan = f }
}

func everyTransfer(f func(i int, x *chain.Transfer)) func(*liar) {
	return scanBug(func(_ []chain.Block, s chain.Scan, err error) (chain.Scan, error) {
		each(&s, f)
		return s, err
	})
}

// swallowed turns one error of Scan into an empty answer.
func swallowed(target error) func(*liar) {
	return scanBug(func(_ []chain.Block, s chain.Scan, err error) (chain.Scan, error) {
		if errors.Is(err, target) {
			return chain.Scan{}, nil
		}
		return s, err
	})
}

func everyStatus(f func(s *chain.Status)) func(*liar) {
	return func(l *liar) {
		l.status = func(all []chain.Status) []chain.Status {
			for i := range all {
				f(&all[i])
			}
			return all
		}
	}
}

// pays makes the network carry out what it should not, as a client that
// credits it would see it.
func pays(wrong chaintest.Effect) func(*chaintest.Harness, *sim.Chain) {
	return func(h *chaintest.Harness, _ *sim.Chain) {
		pay := h.Pay
		h.Pay = func(t testing.TB, all ...chaintest.Payment) string {
			for i := range all {
				if all[i].Effect == wrong {
					all[i].Effect = chaintest.Plain
				}
			}
			return pay(t, all...)
		}
	}
}

func bugs() map[string]bug {
	all := scanBugs()
	maps.Copy(all, sendBugs())
	maps.Copy(all, strictBugs())
	all[honest] = bug{found: ".*", client: func(*liar) {}} // the control: no bug, no failure
	return all
}

func scanBugs() map[string]bug {
	smallest := decimal.New(1, -6)
	return map[string]bug{
		"addresses are trimmed": {found: "BadAddressesAreRefused", client: func(l *liar) {
			l.parse = func(s string) (chain.Address, error) { return l.full.ParseAddress(strings.TrimSpace(s)) }
		}},
		"addresses are not checked": {found: "BadAddressesAreRefused", client: func(l *liar) {
			l.parse = func(s string) (chain.Address, error) { return chain.Address(s), nil }
		}},
		"tip is one too low": {found: "TipIsTheHead", client: func(l *liar) {
			l.tip = func(t chain.Tip, err error) (chain.Tip, error) { t.Head.Height--; return t, err }
		}},
		"start brings transfers": {found: "EmptyTrailStartsAtTheHead", client: scanBug(func(trail []chain.Block, s chain.Scan, err error) (chain.Scan, error) {
			if len(trail) == 0 && err == nil {
				s.Blocks[0].Transfers = []chain.Transfer{{}}
			}
			return s, err
		})},
		"a block is skipped": {found: "CatchesUpWithoutAGap", client: scanBug(func(_ []chain.Block, s chain.Scan, err error) (chain.Scan, error) {
			if len(s.Blocks) > 1 {
				s.Blocks = s.Blocks[1:]
			}
			return s, err
		})},
		"a transfer comes twice": {found: "NativeTransfer", client: scanBug(func(_ []chain.Block, s chain.Scan, err error) (chain.Scan, error) {
			for i := range s.Blocks {
				s.Blocks[i].Transfers = append(s.Blocks[i].Transfers, s.Blocks[i].Transfers...)
			}
			return s, err
		})},
		"all addresses match":      {found: "OnlyWatchedAddresses", client: func(l *liar) { l.watch = func(w chain.Watch) chain.Watch { return blind{w} } }},
		"sync is left out":         {found: "SyncsBeforeItMatches", client: func(l *liar) { l.watch = func(w chain.Watch) chain.Watch { return deaf{w} } }},
		"a failed sync is ignored": {found: "FailedSyncFailsTheScan", client: func(l *liar) { l.watch = func(w chain.Watch) chain.Watch { return deaf{w} } }},
		"amounts are rounded":      {found: "AmountsAreExact", client: everyTransfer(func(_ int, x *chain.Transfer) { x.Amount = x.Amount.Round(2) })},
		"amounts are one off":      {found: "TokenTransfer", client: everyTransfer(func(_ int, x *chain.Transfer) { x.Amount = x.Amount.Add(smallest) })},
		"memos are lost":           {found: "MemoIsReported", client: everyTransfer(func(_ int, x *chain.Transfer) { x.Memo = "" })},
		"one transfer for each tx": {found: "D09_SeveralTransfersOfOneTransaction", client: everyTransfer(func(_ int, x *chain.Transfer) { x.Ordinal = 0 })},
		"reverted is credited":     {found: "D01_RevertedIsNoTransfer", harness: pays(chaintest.Reverted)},
		"inner revert is credited": {found: "D01_RevertedInnerCallIsNoTransfer", harness: pays(chaintest.InnerReverted)},
		"false return is credited": {found: "D02_FalseReturnIsNoTransfer", harness: pays(chaintest.ReturnsFalse)},
		"symbols are believed":     {found: "D03_ForeignContractIsNoCurrency", harness: pays(chaintest.Foreign)},
		"internal is missed": {found: "D01_InternalTransferIsFound", client: func(l *liar) {
			l.scan = func(_ []chain.Block, s chain.Scan, err error) (chain.Scan, error) {
				for i := range s.Blocks {
					s.Blocks[i].Transfers = nil
				}
				return s, err
			}
		}},
		"forks by height": {found: "R01_ForkIsFoundByHash", client: scanBug(func(trail []chain.Block, s chain.Scan, err error) (chain.Scan, error) {
			if s.Rewound > 0 && len(s.Blocks) == s.Rewound {
				return chain.Scan{}, nil // same height, so nothing is new
			}
			return s, err
		})},
		"rewinds one too few": {found: "R01_DroppedTransferIsGone", client: scanBug(func(_ []chain.Block, s chain.Scan, err error) (chain.Scan, error) {
			if s.Rewound > 0 {
				s.Rewound, s.Blocks = s.Rewound-1, s.Blocks[1:]
			}
			return s, err
		})},
		"moved is known already": {found: "R01_MovedTransferMoves", client: onceOnly},
		"moved hides its spend": {found: "R01_MovedTransferMoves", client: scanBug(func(_ []chain.Block, s chain.Scan, err error) (chain.Scan, error) {
			each(&s, func(_ int, x *chain.Transfer) { x.Spends = []string{x.Block.Hash} })
			return s, err
		})},
		"wide forks are cut": {found: "R01_EveryDepthEqualsAFreshScan", client: scanBug(func(_ []chain.Block, s chain.Scan, err error) (chain.Scan, error) {
			if s.Rewound > 3 {
				s.Rewound, s.Blocks = 3, s.Blocks[s.Rewound-3:]
			}
			return s, err
		})},
		"wide forks lose transfers": {found: "R01_EveryDepthEqualsAFreshScan", client: losingAfterForks},
		"ordinals count through the block": {found: "R02_OrdinalsOutliveAReorg", client: scanBug(func(_ []chain.Block, s chain.Scan, err error) (chain.Scan, error) {
			each(&s, func(i int, x *chain.Transfer) { x.Ordinal = i })
			return s, err
		})},
		"a deep fork is empty": {found: "R03_DeepForkIsAnError", client: swallowed(chain.ErrDeepFork)},
		"behind is empty":      {found: "D07_NodeBehindTheTrailIsAnError", client: swallowed(chain.ErrBehind)},
		"lagging is empty":     {found: "D07_LaggingNodeIsNeverEmpty", client: swallowed(chain.ErrBehind)},
		"behind rewinds": {found: "D07_LaggingNodeIsNeverEmpty", client: scanBug(func(_ []chain.Block, s chain.Scan, err error) (chain.Scan, error) {
			if errors.Is(err, chain.ErrBehind) {
				return chain.Scan{Rewound: 2}, nil
			}
			return s, err
		})},
		"parts are whole": {found: "D07_PartialAnswerIsAnError", harness: func(h *chaintest.Harness, c *sim.Chain) {
			h.Partial = func(_ testing.TB, on bool) { c.Front().LieEmpty(on) }
		}},
		"failure is empty": {found: "D14_FailingNodeIsAnError", client: swallowed(chain.ErrNode)},
		"wrong chain is taken": {found: "D18_WrongChainIsRefused", harness: func(h *chaintest.Harness, c *sim.Chain) {
			h.WrongChain = func(testing.TB) chain.Client { return c.Client() }
		}},
		"the context is ignored":  {found: "EndedContextIsAnError", client: func(l *liar) { l.ctx = context.WithoutCancel }},
		"pending names a block":   {found: "D15_PendingIsTheTransferWithoutABlock", client: onPending(func(x *chain.Transfer) { x.Block.Height = 1 })},
		"pending is another":      {found: "D15_PendingIsTheTransferWithoutABlock", client: onPending(func(x *chain.Transfer) { x.Ordinal += 5 })},
		"pending hides its spend": {found: "D15_PendingIsTheTransferWithoutABlock", client: onPending(func(x *chain.Transfer) { x.Spends = nil })},
	}
}

// onceOnly tells every transfer once, wherever it is mined again.
func onceOnly(l *liar) {
	told := map[string]bool{}
	l.scan = func(_ []chain.Block, s chain.Scan, err error) (chain.Scan, error) {
		for i := range s.Blocks {
			s.Blocks[i].Transfers = slices.DeleteFunc(s.Blocks[i].Transfers, func(x chain.Transfer) bool {
				known := told[x.Tx]
				told[x.Tx] = true
				return known
			})
		}
		return s, err
	}
}

// losingAfterForks loses the transfers of the pages that follow a fork of more
// than three blocks, as a client does whose cache of them was dropped.
func losingAfterForks(l *liar) {
	lost := 0
	l.scan = func(_ []chain.Block, s chain.Scan, err error) (chain.Scan, error) {
		if s.Rewound > 3 {
			lost = s.Rewound + 1
		}
		for i := range s.Blocks {
			if lost--; lost >= 0 {
				s.Blocks[i].Transfers = nil
			}
		}
		return s, err
	}
}

func onPending(f func(x *chain.Transfer)) func(*liar) {
	return func(l *liar) {
		l.pending = func(all []chain.Transfer) []chain.Transfer {
			for i := range all {
				f(&all[i])
			}
			return all
		}
	}
}

func sendBugs() map[string]bug {
	return map[string]bug{
		"the fee has no maximum":   {found: "FeeIsInTheGasCurrency", client: func(l *liar) { l.estimate = func(f chain.Fee) chain.Fee { f.Max = 0; return f } }},
		"the maximum is too low":   {found: "SendsFromBuildToFinal", client: func(l *liar) { l.estimate = func(f chain.Fee) chain.Fee { f.Max = f.Cost; return f } }},
		"unsent is pending":        {found: "SendsFromBuildToFinal", client: everyStatus(func(s *chain.Status) { s.State = chain.Pending })},
		"all is final at once":     {found: "SendsFromBuildToFinal", client: everyStatus(func(s *chain.Status) { s.Final = true })},
		"nothing is ever final":    {found: "SendsFromBuildToFinal", client: everyStatus(func(s *chain.Status) { s.Final = false })},
		"confirmations start at 0": {found: "SendsFromBuildToFinal", client: everyStatus(func(s *chain.Status) { s.Confirmations-- })},
		"build says another":       {found: "SendsTokens", client: func(l *liar) { l.build = func(u *chain.Unsigned) { u.Outputs[0].Amount-- } }},
		"inspect sees another":     {found: "SendsAll", client: func(l *liar) { l.inspect = func(u *chain.Unsigned, err error) error { u.Memo += "x"; return err } }},
		"all is less":              {found: "SendsAllTokens", client: func(l *liar) { l.order = func(o *chain.Order) { o.Intent.Amount, o.Intent.All = 1, false } }},
		"one coin is left out": {network: "BTC", found: "SpendsExactlyTheCoinsAndReturnsChange", client: func(l *liar) {
			l.order = func(o *chain.Order) { o.Coins = o.Coins[:1] }
		}},
		"change goes elsewhere": {network: "BTC", found: "SpendsExactlyTheCoinsAndReturnsChange", client: func(l *liar) {
			l.order = func(o *chain.Order) { o.Change = o.Intent.To }
		}},
		"the cost is a guess":  {found: "CostIsTheFallOfTheBalance", client: everyStatus(func(s *chain.Status) { s.Cost++ })},
		"included is executed": {found: "D06_RevertedSendIsIncludedAndNotExecuted", client: everyStatus(func(s *chain.Status) { s.Executed = true })},
		"a revert is free": {found: "D06_RevertedSendIsIncludedAndNotExecuted", client: everyStatus(func(s *chain.Status) {
			if !s.Executed {
				s.Cost = 0
			}
		})},
		"short is rejected": {found: "ShortIsErrShort", client: func(l *liar) { l.order = func(o *chain.Order) { o.Intent.To = "" } }},
		"any price will do": {found: "W14_TooDearIsErrTooDear", client: func(l *liar) { l.order = func(o *chain.Order) { o.Intent.MaxCost = 0 } }},
		"orders are mended": {found: "ImpossibleOrdersAreRejected", client: func(l *liar) {
			l.order = func(o *chain.Order) { o.Intent.Amount = max(o.Intent.Amount, 1_000_000) }
		}},
		"inspect takes anything":  {found: "InspectRefusesWhatItCannotRead", client: func(l *liar) { l.inspect = func(*chain.Unsigned, error) error { return nil } }},
		"signatures are believed": {found: "AssembleVerifiesSignatures", client: believing},
		"unknown is dead": {found: "UnknownIsUnknown", client: everyStatus(func(s *chain.Status) {
			if s.State == chain.Unknown {
				s.State = chain.Conflicted
			}
		})},
		"status answers backwards": {found: "StatusKeepsTheOrderAsked", client: func(l *liar) {
			l.status = func(all []chain.Status) []chain.Status { slices.Reverse(all); return all }
		}},
		"known is an error":        {found: "BroadcastTwiceIsSuccess", client: func(l *liar) { l.sent = map[string]bool{} }},
		"garbage is sent":          {found: "GarbageIsNotBroadcast", client: func(l *liar) { l.broadcast = func(error) error { return nil } }},
		"a lost answer is a no":    {found: "W01_LostAnswerIsNoRejection", client: rejecting},
		"replacement is forgotten": {found: "W03_ReplacementLandsAndTheFirstIsConflicted", client: func(l *liar) { l.order = func(o *chain.Order) { o.Attempt = 1 } }},
		"a conflict is unknown":    {found: "W03_ReplacementLandsAndTheFirstIsConflicted", client: everyStatus(func(s *chain.Status) { unlessIncluded(s, chain.Unknown) })},
		"coins conflict unseen":    {network: "BTC", found: "W03_ReplacementLandsAndTheFirstIsConflicted", client: everyStatus(func(s *chain.Status) { unlessIncluded(s, chain.Unknown) })},
		"too low a nonce is a no":  {found: "W05_NonceTooLowIsNoProofOfDeath", client: rejecting},
		"a gap is death":           {found: "W05_NonceGapIsFilled", client: everyStatus(func(s *chain.Status) { unlessIncluded(s, chain.Conflicted) })},
		"unmined is conflicted":    {found: "R05_SendIsUnminedAndSentAgain", client: everyStatus(func(s *chain.Status) { unlessIncluded(s, chain.Conflicted) })},
		"unmined cannot be sent":   {found: "R05_SendIsUnminedAndSentAgain", client: func(l *liar) { l.sent = map[string]bool{} }},
	}
}

func unlessIncluded(s *chain.Status, state chain.State) {
	if s.State != chain.Included {
		s.State = state
	}
}

func rejecting(l *liar) {
	l.broadcast = func(err error) error {
		if err != nil {
			return errors.Join(chain.ErrRejected, err)
		}
		return nil
	}
}

// believing keeps the last good signatures and puts them in the place of bad ones.
func believing(l *liar) {
	var good []chain.Signature
	l.assemble = func(u chain.Unsigned, sigs []chain.Signature) []chain.Signature {
		if _, err := l.full.Assemble(u, sigs); err == nil {
			good = sigs
		}
		if good == nil {
			k, _ := chaintest.Secp256k1Account(l.full, os.Getenv(plantedCase)+"/0")
			for _, d := range u.Digests {
				s, _ := k.Sign(d.Hash)
				good = append(good, s)
			}
		}
		return good
	}
}

const (
	honest      = "honest"
	plantedBug  = "CRYPTOPAY_PLANTED_BUG"
	plantedCase = "CRYPTOPAY_PLANTED_CASE"
)

// TestPlanted is the child process of TestBugsAreFound.
func TestPlanted(t *testing.T) {
	b, ok := bugs()[os.Getenv(plantedBug)]
	if !ok {
		t.Skip("sim: only run by TestBugsAreFound")
	}
	n := b.network
	if n == "" {
		n = "ETH"
	}
	chaintest.Run(t, func(t *testing.T) *chaintest.Harness {
		c := open(t, n)
		h := harness(c, registry(t), 5)
		if b.harness != nil {
			b.harness(h, c)
		}
		if b.client != nil {
			l := &liar{full: c.Client().(full)}
			b.client(l)
			h.Client = l
		}
		return h
	})
}

// TestBugsAreFound proves the suite: each planted bug must fail the case that
// is there for it, in a process of its own.
func TestBugsAreFound(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	for name, b := range bugs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := exec.CommandContext(t.Context(), self, "-test.run=^TestPlanted$/^"+b.found+"$", "-test.v")
			c.Env = append(os.Environ(), plantedBug+"="+name, plantedCase+"=TestPlanted/"+b.found)
			out, err := c.CombinedOutput()
			if name == honest {
				require.NoError(t, err, "%s", out)
				return
			}
			require.Error(t, err, "not found: %s", out)
			require.Contains(t, string(out), "--- FAIL: TestPlanted/"+b.found, "%s", out)
		})
	}
}
