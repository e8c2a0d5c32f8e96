package ledger

import (
	"cmp"
	"fmt"
	"iter"
	"math/big"
	"slices"
)

// Books is one partition's ledger, laid open to Verify.
type Books struct {
	// Balances yields every balance once, in any order, all as of one moment
	// (one call of a store's Balances is that). An error ends the proof.
	Balances iter.Seq2[Balance, error]

	// Entries yields every entry, oldest first within an account and asset.
	// Accounts may follow one another or be interleaved; the nearer the legs of
	// one Tx come together, the less memory is needed. An error ends the proof.
	Entries iter.Seq2[Entry, error]

	// Live says that postings may go on meanwhile: entries without a balance, or past the Seq of
	// their balance are then later ones and left out. As the balances are of one
	// moment and a Tx takes effect whole, the proof stays exact. Otherwise such
	// entries are findings. Defaults to false.
	Live bool
}

// Report is what Verify found. It is proof that the ledger is right when
// nothing is in Findings.
type Report struct {
	Balances int64 // balances read
	Entries  int64 // entries proved
	Later    int64 // entries left out, see Books.Live
	Totals   []Total
	Findings []Finding
}

// Total sums up one asset, in its units. Assets = Liabilities + Equity, unless
// there is a finding that says otherwise.
type Total struct {
	Asset       Asset
	Assets      *big.Int // what the chains hold
	Liabilities *big.Int // what wallets and suspense are owed
	Equity      *big.Int // what is the house's: see Account.House
}

// Finding is one thing that is wrong. Fields that do not apply are zero.
type Finding struct {
	Fault   Fault
	Account Account
	Asset   Asset
	Seq     int64
	Tx      string
	Want    *big.Int // what it should be, or be at least, where that can be said
	Have    *big.Int // what it is
}

// Fault is the kind of a Finding.
type Fault string

// What can be wrong. Insolvent and Deficit are about money, all others about
// the books: those are never right, while a deficit can be left by a deep reorg.
const (
	FaultUnbalanced Fault = "unbalanced" // the entries of a Tx do not sum to Want 0 in the asset
	FaultUneven     Fault = "uneven"     // the balances of an asset do not sum to Want 0
	FaultGap        Fault = "gap"        // an entry's Seq is Have where Want is next
	FaultChain      Fault = "chain"      // After is Have, while the After before it and Delta make Want
	FaultDrift      Fault = "drift"      // Posted is Have, while the entries sum to Want
	FaultCount      Fault = "count"      // the balance's Seq is Have, while the last entry's is Want
	FaultAhead      Fault = "ahead"      // an entry past its balance's Seq, or one without a balance
	FaultDoubled    Fault = "doubled"    // a second balance of the same account and asset
	FaultMalformed  Fault = "malformed"  // an entry without account, asset, Tx or Delta
	FaultStray      Fault = "stray"      // an account of no known kind
	FaultFloor      Fault = "floor"      // a wallet's Held, Available or After is Have, below Want 0
	FaultSign       Fault = "sign"       // suspense below 0, or a receivable above it
	FaultInsolvent  Fault = "insolvent"  // Assets are Have, Liabilities are Want
	FaultDeficit    Fault = "deficit"    // Equity is Have, below Want 0
)

// String tells the finding on one line, for a log or a terminal.
func (f Finding) String() string {
	s := "ledger: " + string(f.Fault)
	for _, part := range [...][2]string{{"account", string(f.Account)}, {"asset", string(f.Asset)}, {"tx", f.Tx}} {
		if part[1] != "" {
			s += fmt.Sprintf(" %s=%q", part[0], part[1])
		}
	}
	if f.Seq != 0 {
		s += fmt.Sprintf(" seq=%d", f.Seq)
	}
	if f.Want != nil {
		s += fmt.Sprintf(" want=%d have=%d", f.Want, f.Have)
	}
	return s
}

// Verify proves a ledger: the entries of each Tx sum to zero per asset; each
// balance is the sum of its entries, which are numbered without a gap and carry
// the right After; no wallet is or ever was below its floor, whatever the sums
// say; liabilities are covered by assets, and the house's equity is not
// negative. Sums are of 128 bits.
//
// It never stops at the first finding, and reports them in the order of
// reading, then sorted. An error is one of Books' iterators: nothing is proved.
// Memory grows with the number of accounts and of Txs read in part, not of
// entries. That a Tx is not there twice is for the store's unique key.
func Verify(b Books) (Report, error) {
	v := verifier{live: b.Live, lines: map[lineKey]*line{}, open: map[txKey]wide{}}
	for bal, err := range b.Balances {
		if err != nil {
			return Report{}, fmt.Errorf("ledger: reading balances: %w", err)
		}
		v.balance(bal)
	}
	for e, err := range b.Entries {
		if err != nil {
			return Report{}, fmt.Errorf("ledger: reading entries: %w", err)
		}
		v.entry(&e)
	}
	v.closeLines()
	v.closeTxs()
	v.closeAssets()
	return v.report, nil
}

type lineKey struct {
	account Account
	asset   Asset
}

type txKey struct {
	tx    string
	asset Asset
}

// line is one account's balance of one asset, and how far its entries were read.
type line struct {
	Balance
	seq   int64
	after Amount
	sum   wide
}

type verifier struct {
	live   bool
	lines  map[lineKey]*line
	open   map[txKey]wide // Txs whose entries so far do not sum to zero
	report Report
}

func (v *verifier) find(f Finding) { v.report.Findings = append(v.report.Findings, f) }

func (v *verifier) balance(b Balance) {
	v.report.Balances++
	f := Finding{Account: b.Account, Asset: b.Asset, Want: new(big.Int)}
	key := lineKey{b.Account, b.Asset}
	if _, there := v.lines[key]; there {
		f.Fault, f.Want = FaultDoubled, nil
		v.find(f)
		return
	}
	v.lines[key] = &line{Balance: b}
	if b.Account.Floored() {
		var available wide
		available.add(b.Posted)
		available.sub(b.Held)
		for _, have := range [...]wide{wideOf(b.Held), available} {
			if have.sign() < 0 {
				f.Fault, f.Have = FaultFloor, have.big()
				v.find(f)
			}
		}
	}
	if kind := b.Account.kind(); kind == kindSuspense && b.Posted < 0 || kind == kindReceivable && b.Posted > 0 {
		f.Fault, f.Have = FaultSign, big.NewInt(int64(b.Posted))
		v.find(f)
	} else if kind == kindStray {
		f.Fault, f.Want = FaultStray, nil
		v.find(f)
	}
}

func (v *verifier) entry(e *Entry) {
	f := Finding{Account: e.Account, Asset: e.Asset, Seq: e.Seq, Tx: e.Tx}
	if e.Account == "" || e.Asset == "" || e.Tx == "" || e.Delta == 0 {
		f.Fault = FaultMalformed
		v.find(f)
	}
	l := v.lines[lineKey{e.Account, e.Asset}]
	if l == nil || e.Seq > l.Seq {
		if v.live {
			v.report.Later++
			return
		}
		f.Fault = FaultAhead
		v.find(f)
	}
	v.report.Entries++
	v.post(txKey{e.Tx, e.Asset}, e.Delta)
	if l == nil {
		return
	}
	if e.Seq != l.seq+1 {
		g := f
		g.Fault, g.Want, g.Have = FaultGap, big.NewInt(l.seq+1), big.NewInt(e.Seq)
		v.find(g)
	}
	after := wideOf(l.after)
	after.add(e.Delta)
	if after != wideOf(e.After) {
		g := f
		g.Fault, g.Want, g.Have = FaultChain, after.big(), big.NewInt(int64(e.After))
		v.find(g)
	}
	if e.Account.Floored() && e.After < 0 {
		g := f
		g.Fault, g.Want, g.Have = FaultFloor, new(big.Int), big.NewInt(int64(e.After))
		v.find(g)
	}
	l.seq, l.after = e.Seq, e.After
	l.sum.add(e.Delta)
}

// post adds to the sum of a Tx and forgets it when that is zero: in any order
// of reading, exactly the unbalanced ones are left in the end.
func (v *verifier) post(key txKey, delta Amount) {
	sum := v.open[key]
	sum.add(delta)
	if sum.zero() {
		delete(v.open, key)
		return
	}
	v.open[key] = sum
}

func (v *verifier) closeLines() {
	start := len(v.report.Findings)
	for key, l := range v.lines {
		f := Finding{Account: key.account, Asset: key.asset}
		if l.seq != l.Seq {
			f.Fault, f.Want, f.Have = FaultCount, big.NewInt(l.seq), big.NewInt(l.Seq)
			v.find(f)
		}
		if l.sum != wideOf(l.Posted) {
			f.Fault, f.Want, f.Have = FaultDrift, l.sum.big(), big.NewInt(int64(l.Posted))
			v.find(f)
		}
	}
	v.sortFrom(start)
}

func (v *verifier) closeTxs() {
	start := len(v.report.Findings)
	for key, sum := range v.open {
		v.find(Finding{Fault: FaultUnbalanced, Asset: key.asset, Tx: key.tx, Want: new(big.Int), Have: sum.big()})
	}
	v.sortFrom(start)
}

// sides are the sums of one asset's balances: all in all, what is owed to
// others, what the house has, and what the chains stand at.
type sides struct{ all, owed, house, chain wide }

func (v *verifier) closeAssets() {
	assets := map[Asset]*sides{}
	for key, l := range v.lines {
		s := assets[key.asset]
		if s == nil {
			s = &sides{}
			assets[key.asset] = s
		}
		s.all.add(l.Posted)
		switch key.account.kind() {
		case kindWallet, kindSuspense:
			s.owed.add(l.Posted)
		case kindHouse, kindReceivable:
			s.house.add(l.Posted)
		case kindChain:
			s.chain.add(l.Posted)
		}
	}
	start := len(v.report.Findings)
	for asset, s := range assets {
		t := Total{Asset: asset, Assets: s.chain.big(), Liabilities: s.owed.big(), Equity: s.house.big()}
		t.Assets.Neg(t.Assets)
		v.report.Totals = append(v.report.Totals, t)
		if !s.all.zero() {
			v.find(Finding{Fault: FaultUneven, Asset: asset, Want: new(big.Int), Have: s.all.big()})
		}
		if t.Liabilities.Cmp(t.Assets) > 0 {
			v.find(Finding{Fault: FaultInsolvent, Asset: asset, Want: t.Liabilities, Have: t.Assets})
		}
		if t.Equity.Sign() < 0 {
			v.find(Finding{Fault: FaultDeficit, Asset: asset, Want: new(big.Int), Have: t.Equity})
		}
	}
	slices.SortFunc(v.report.Totals, func(a, b Total) int { return cmp.Compare(a.Asset, b.Asset) })
	v.sortFrom(start)
}

// sortFrom orders what was found by walking a map.
func (v *verifier) sortFrom(start int) {
	slices.SortFunc(v.report.Findings[start:], func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Asset, b.Asset), cmp.Compare(a.Account, b.Account),
			cmp.Compare(a.Tx, b.Tx), cmp.Compare(a.Fault, b.Fault))
	})
}
