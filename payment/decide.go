package payment

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// How long a payment waits for what is not in its hands.
const (
	holdFor    = 24 * time.Hour   // past expiry_time: for a mempool-only deposit, and for one that returns
	forwardFor = 30 * time.Minute // for treasury, before the payment is completed without it
)

// errNoPrice says that the decision needs a price that nobody could give.
var errNoPrice = fmt.Errorf("payment: a deposit cannot be valued: %w", rates.ErrUnavailable)

// fact is what a decision gets of an incoming.Fact. final is the only way in
// which a deposit becomes proven, and it is true only for a valid Proof.
type fact struct {
	sighting incoming.Sighting
	version  int64
	head     int64
	final    bool
	judged   *judgement // what the host's Screen said; nil = it was not asked
}

// rules are the settings that decisions depend on.
type rules struct {
	creditLate  bool
	maxUSD      decimal.Decimal // of one deposit, 0 = no bound
	maxDeposits int             // counted for one payment
	utxo        bool            // of the payment's network: nothing to forward
	screens     bool            // final deposits are shown to the host's Screen first
	watch       time.Duration   // how long addresses stay watched; below 0: for ever
	currency    func(code string) *chain.Currency
}

// env is what the outside world contributes to a decision.
type env struct {
	rules
	now   time.Time
	price decimal.Decimal // of one coin of the payment's currency now; 0 = not asked or not known
	// available is what a reversal may take from the wallet; the rest becomes
	// its receivable. MaxAmount until a store said otherwise.
	available ledger.Amount
	wallet    string // that is credited: the payment's, or the master's where that was closed
}

// entry is one deposit as stored and as decided.
type entry struct {
	d       Deposit
	was     Deposit
	version int64 // of the stored row, 0 = there is none
	given   int64 // confirmations that it needs, as the fact says; 0 = the fact is of another, or of no block
}

// decision is a state on its way from what was stored to what will be.
type decision struct {
	env
	p        Payment
	was      Payment
	version  int64    // of the payment's row
	deposits []*entry // all counted ones, and the one that the fact is about; by first sighting
	events   []storage.Row
	told     []storage.Event
	posts    []ledger.Tx
	alerts   []Alert
	touched  bool // written even where nothing else changed
	// unscreened: the deposit waits for the host's Screen.
	unscreened bool
	// decides is the deposit that a person decides about, by is the record of it.
	decides *entry
	by      []Recorded
	// at is the permanent address that a deposit came to for which there is no payment; p is
	// then the payment that the deposit makes, if it makes one.
	at *atPermanent
}

// Alert tells the host about something that a person should look at. What it
// is about is stored, too: see Service.Suspense and Service.Deposits.
type Alert struct {
	Kind    AlertKind
	Tenant  string
	Payment string // "" where no payment is concerned
	Deposit string
	Text    string
}

// AlertKind says what happened.
type AlertKind string

// The kinds of alerts.
const (
	AlertSuspense    AlertKind = "suspense"    // money was booked to suspense
	AlertReversed    AlertKind = "reversed"    // a deep reorg took booked money away
	AlertQuarantined AlertKind = "quarantined" // a transfer of an impossible amount
	// AlertUnreadable: a payment's stored row cannot be decoded. Each process reports it once.
	AlertUnreadable AlertKind = "unreadable"
	// AlertUnscreened: a final deposit has waited for 15 minutes for Config.Screen to answer.
	AlertUnscreened AlertKind = "unscreened"
)

func (x *decision) alert(k AlertKind, e *entry, text string) {
	id := x.p.ID
	if x.at != nil {
		id = "" // a draft
	}
	x.alerts = append(x.alerts, Alert{Kind: k, Payment: id, Deposit: e.d.ID, Text: text})
}

// onFact takes one fact in and lets the payment follow.
func (x *decision) onFact(f fact) error {
	if x.at != nil && f.sighting.State == incoming.Gone && len(x.deposits) == 0 {
		x.p = Payment{} // it was never seen here
		return nil
	}
	e, received, err := x.take(f)
	if e == nil && x.at != nil {
		x.p = Payment{} // nothing new: it makes no payment
	}
	if e == nil || err != nil {
		return err
	}
	switch {
	case x.at != nil && !e.d.live():
		e.d.Payment, x.p = "", Payment{} // it is gone: it makes no payment
	case x.at != nil:
		if received, err = x.begin(e); err != nil {
			return err
		}
	}
	if e.d.Role.suspense() {
		if err := x.book(e); err != nil {
			return err
		}
	}
	if x.p.ID == "" || !e.d.Role.counted() && !e.was.Role.counted() {
		return nil
	}
	x.order()
	x.sums()
	if received && x.at == nil {
		if err := x.received(e); err != nil {
			return err
		}
	}
	return x.settle()
}

// onTime lets time pass: the end of the window, where the chain was read far
// enough to decide it, and the ends of the holds that follow.
func (x *decision) onTime(tipRead time.Time) error {
	if tipRead.After(x.p.ExpiresAt) && slices.Contains(unsettled, x.p.Status) {
		x.p.Closed = true
	}
	open := x.p.Status == PartiallyPaid || x.p.Status == Confirming
	if open && x.p.Closed && tipRead.After(x.p.ExpiresAt.Add(holdFor)) {
		for _, e := range x.deposits {
			if e.d.Role.counted() && e.d.State == incoming.Seen {
				e.d.GivenUp = true
			}
		}
	}
	x.sums()
	return x.settle()
}

// maxMoves is more edges than any decision goes along.
const maxMoves = 16

var errEndless = errors.New("payment: a decision does not come to its end")

// settle moves the payment along its edges until it stands where its deposits
// put it, and tells of those that were credited and forwarded.
func (x *decision) settle() error {
	if err := x.moves(); err != nil {
		return err
	}
	for _, e := range x.deposits {
		if err := x.merged(e); err != nil {
			return err
		}
	}
	return nil
}

func (x *decision) moves() error {
	for range maxMoves {
		before := x.p.Status
		var err error
		switch x.p.Status {
		case Waiting, PartiallyPaid:
			err = x.settleOpen()
		case Confirming:
			err = x.settleConfirming()
		case Confirmed, Sending, Completed:
			if err = x.credit(); err == nil {
				err = x.settlePaid()
			}
		case Expired, Failed:
			err = x.settleOver()
		}
		if err != nil || x.p.Status == before {
			return err
		}
	}
	return fmt.Errorf("%w: %s is %s again and again", errEndless, x.p.ID, x.p.Status)
}

func (x *decision) settleOpen() error {
	live, final, n := x.weights()
	switch {
	case x.p.Status == Waiting && x.p.Closed: // what is live then came late
		return x.move(onWindow, Expired)
	case n == 0 && x.p.Status == Waiting:
	case n == 0:
		return x.move(onDropped, x.gone())
	case x.enough(live):
		if x.p.Closed && x.anyLate() {
			return x.move(onLate, Confirming)
		}
		return x.move(onDeposit, Confirming)
	case x.p.Status == Waiting:
		return x.move(onDeposit, PartiallyPaid)
	case x.p.Closed && final == live:
		if err := x.credit(); err != nil {
			return err
		}
		return x.move(onWindow, Expired)
	}
	return nil
}

// gone is where a payment ends up of which nothing is live any more.
func (x *decision) gone() Status {
	if x.p.Closed {
		return Failed
	}
	return Waiting
}

func (x *decision) settleConfirming() error {
	live, final, n := x.weights()
	switch {
	case n == 0:
		return x.move(onDropped, x.gone())
	case !x.enough(live):
		return x.move(onDropped, PartiallyPaid)
	case x.enough(final):
		if err := x.credit(); err != nil {
			return err
		}
		x.p.ConfirmedAt = x.now
		return x.move(onFinal, Confirmed)
	}
	return nil
}

func (x *decision) settlePaid() error {
	if x.p.Status == Completed {
		return nil
	}
	started, all := false, false
	for _, e := range x.deposits {
		if e.d.Booking != InWallet || !e.d.Role.counted() {
			continue
		}
		done := e.d.Forward == incoming.Forwarded || e.d.Forward == incoming.Deferred || e.d.Forward == incoming.NotNeeded
		all = done && (all || !started)
		started = true
		if !done {
			break
		}
	}
	moving := slices.ContainsFunc(x.deposits, func(e *entry) bool {
		return e.d.Booking == InWallet && (e.d.Forward == incoming.Forwarding || e.d.Forward == incoming.Forwarded)
	})
	switch {
	case x.utxo || all || !x.now.Before(x.p.ConfirmedAt.Add(forwardFor)):
		return x.move(onForwarded, Completed)
	case x.p.Status == Confirmed && moving:
		return x.move(onForwarding, Sending)
	}
	return nil
}

// settleOver looks at what came after the end: an in-time deposit that is back
// wakes the payment, late money does so under its policy where it is enough.
func (x *decision) settleOver() error {
	live, _, _ := x.weights()
	back, late := false, false
	for _, e := range x.deposits {
		if e.d.live() && e.d.Booking != InWallet {
			back = back || e.d.Role == RoleInTime
			late = late || e.d.Role == RoleLate
		}
	}
	switch {
	case back:
		return x.move(onReturned, Confirming)
	case late && x.enough(live):
		return x.move(onLate, Confirming)
	}
	return x.credit()
}

// weights sums what counts towards what is due: all that is live, the final
// part of it, and how many deposits are live. Late money counts only once the
// window has ended.
func (x *decision) weights() (live, final ledger.Amount, n int) {
	early := !x.p.Closed && slices.Contains(unsettled, x.p.Status)
	for _, e := range x.deposits {
		if !e.d.Role.counted() || !e.d.live() || e.d.Role == RoleLate && early {
			continue
		}
		n++
		live = addUp(live, e.d.Weight)
		if e.d.Proven {
			final = addUp(final, e.d.Weight)
		}
	}
	return live, final, n
}

func (x *decision) enough(sum ledger.Amount) bool { return sum >= x.p.Due-x.p.Tolerance }

func (x *decision) anyLate() bool {
	return slices.ContainsFunc(x.deposits, func(e *entry) bool { return e.d.Role == RoleLate && e.d.live() })
}

// neededLate says that late money came and what was in time is not enough.
func (x *decision) neededLate() bool {
	var inTime ledger.Amount
	for _, e := range x.deposits {
		if e.d.Role == RoleInTime && e.d.live() {
			inTime = addUp(inTime, e.d.Weight)
		}
	}
	return x.anyLate() && !x.enough(inTime)
}

// move changes the status along an edge of the machine and tells about it.
func (x *decision) move(t trigger, to Status) error {
	if err := Machine.Move(x.p.Status, t, to); err != nil {
		return err
	}
	from := x.p.Status
	x.p.Status = to
	x.sums()
	if err := x.tellMove(from); err != nil {
		return err
	}
	return x.statusEvent(from)
}

// addUp adds amounts of which each is below MaxCredit; a sum beyond the range
// stays at its end, which is enough for every comparison made with it.
func addUp(a, b ledger.Amount) ledger.Amount {
	s, err := a.Add(b)
	if err != nil {
		return ledger.MaxAmount
	}
	return s
}

func itoa(n int) string { return strconv.Itoa(n) }
