package payment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Verdict is what a host's Config.Screen says of a deposit.
type Verdict string

// The verdicts. Any other is as AskReview.
const (
	Allow     Verdict = "allow"  // it counts as every deposit does
	AskReview Verdict = "review" // its money waits in suspense as RoleHeld: a person decides
	Refuse    Verdict = "refuse" // its money waits in suspense as RoleRefused and never counts for a payment
)

// Subject is a final deposit as Config.Screen is asked about it.
type Subject struct {
	Tenant string
	// PaymentID is the payment that the deposit counts for, or that has the address; "" where
	// there is none.
	PaymentID string
	DepositID string
	// Generation is 1, and one more each time the deposit came back after a reorg had taken it
	// away when it was final.
	Generation int
	Network    chain.Network
	Currency   string          // combined code
	Contract   string          // of a token; "" = the network's own coin
	Amount     decimal.Decimal // in whole coins, as the chain has it
	From       string          // the sender's address; "" where the chain names none
	To         string          // the address of ours that it came to
	Tx         string          // the transaction's hash
	Memo       string          // memo or destination tag, where there is one
}

const (
	// screenWait is how long facts wait for an answer of Screen. A later one is taken when the
	// deposit is due again. While some hang, the others are waited for less.
	screenWait, screenWaitLess = 2 * time.Second, 100 * time.Millisecond
	screenLess                 = time.Minute
	// screenFor is the deadline of the context that Screen gets.
	screenFor = 30 * time.Second
	// A deposit without an answer is asked about again after as long as it has waited, between
	// these. The operator is told once it has waited for screenTold.
	screenAgain, screenAgainMost = 30 * time.Second, 10 * time.Minute
	screenTold                   = 15 * time.Minute
	// maxKept is how many answers are kept at most that no decision has used.
	maxKept = 10_000
	// maxScreenText is the longest reason of a Screen that is kept, in characters.
	maxScreenText = 1000
)

// errUnscreened says that a deposit waits for the host's Screen. It is due again.
var errUnscreened = errors.New("payment: a deposit waits for the answer of Config.Screen")

var errSilent = errors.New("it has not answered")

// judgement is what Screen said of a deposit, or err, why it could not.
type judgement struct {
	verdict Verdict
	reason  string
	err     error
}

// question is one call of Screen, kept until a decision has used its answer: whoever loses a
// race of commits does not ask again.
type question struct {
	done chan struct{}
	judgement
}

func (q *question) answered() bool {
	select {
	case <-q.done:
		return true
	default:
		return false
	}
}

// questions are the calls of Screen of this process, by the deposit and its generation.
type questions struct {
	mu   sync.Mutex
	of   map[string]*question
	less time.Time // until then answers are waited for less
}

// kept reports whether there is an answer to a question already.
func (qs *questions) kept(key string) bool {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.of[key]
	return q != nil && q.answered()
}

func (qs *questions) forget(key string) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if q := qs.of[key]; q != nil && q.answered() {
		delete(qs.of, key)
	}
}

// screen asks the host about the deposit that a fact makes final, where it must be asked,
// before anything is decided: no decision and no transaction waits for it. It adds what the
// host said to the fact. Where the host is not to be asked yet, it is errUnscreened.
func (s *Service) screen(ctx context.Context, f *fact) (key string, err error) {
	tenant := f.sighting.Tenant
	x, err := s.about(ctx, tenant, f)
	if err != nil {
		return "", err
	}
	e, _, err := x.take(*f)
	if err != nil || !x.unscreened {
		return "", err
	}
	d := &e.d
	if d.Role.counted() && d.Rate.Sign() <= 0 {
		return "", errNoPrice // it cannot be credited anyway
	}
	key = d.generated("screen")
	if x.now.Before(d.ScreenNext) && !s.questions.kept(key) {
		return "", fmt.Errorf("%w: %s", errUnscreened, d.ScreenReason)
	}
	if d.Role.counted() && !e.was.Role.counted() {
		// It is seen for the first time: the payment hears of it before the host is asked.
		if err := s.decideFact(ctx, *f, nil); err != nil {
			return "", err
		}
	}
	sub := Subject{
		Tenant: tenant, DepositID: d.ID, Generation: d.Generation, Network: chain.Network(d.Network), Currency: d.Currency, Contract: d.Contract,
		Amount: d.Exact, From: d.From, To: d.Address, Tx: d.Tx, Memo: d.Memo, PaymentID: d.Payment,
	}
	if sub.PaymentID == "" && x.at == nil {
		sub.PaymentID = x.p.ID
	}
	j := s.ask(ctx, key, sub)
	f.judged = &j
	return key, nil
}

// ask asks Screen about a deposit. The items of one Work are asked about together.
func (s *Service) ask(ctx context.Context, key string, sub Subject) judgement {
	type item struct {
		key string
		sub Subject
	}
	return storage.Together(ctx, "payment/screen", item{key, sub}, func(ctx context.Context, all []item) []judgement {
		calls := make([]*question, len(all))
		for i := range all {
			calls[i] = s.begin(ctx, all[i].key, all[i].sub)
		}
		wait, cancel := context.WithTimeout(ctx, s.patience())
		defer cancel()
		out := make([]judgement, len(all))
		for i, q := range calls {
			select {
			case <-q.done:
				out[i] = q.judgement
				continue
			default:
			}
			select {
			case <-q.done:
				out[i] = q.judgement
			case <-wait.Done():
				if out[i] = (judgement{err: errSilent}); ctx.Err() == nil {
					s.impatient()
				}
			}
		}
		return out
	})
}

func (s *Service) patience() time.Duration {
	s.questions.mu.Lock()
	defer s.questions.mu.Unlock()
	if s.now().Before(s.questions.less) {
		return screenWaitLess
	}
	return screenWait
}

func (s *Service) impatient() {
	s.questions.mu.Lock()
	defer s.questions.mu.Unlock()
	s.questions.less = s.now().Add(screenLess)
}

// begin calls Screen, unless it is being asked already or its answer is there.
func (s *Service) begin(ctx context.Context, key string, sub Subject) *question {
	qs := &s.questions
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if q := qs.of[key]; q != nil && (!q.answered() || q.err == nil) {
		return q
	}
	if qs.of == nil {
		qs.of = map[string]*question{}
	}
	if len(qs.of) >= maxKept {
		for k, q := range qs.of {
			if q.answered() {
				delete(qs.of, k)
			}
		}
	}
	q := &question{done: make(chan struct{})}
	qs.of[key] = q
	ctx = context.WithoutCancel(storage.Apart(ctx))
	go func() {
		defer close(q.done)
		defer func() {
			if p := recover(); p != nil {
				q.judgement = judgement{err: fmt.Errorf("it panicked: %v", p)}
			}
		}()
		ctx, cancel := context.WithTimeout(ctx, screenFor)
		defer cancel()
		q.verdict, q.reason, q.err = s.c.Screen(ctx, sub)
	}()
	return q
}

// screen holds a deposit that a fact makes final against what the host said of it. Without an
// answer it stays as it was, not final.
func (x *decision) screen(e *entry, f fact, proven bool) {
	d := &e.d
	open := d.Booking == Unbooked || d.Booking == Reversed // else a person has dealt with it
	if !x.screens || proven || !d.Proven || d.Screen != "" || !open || !d.Role.counted() && !d.Role.suspense() {
		return
	}
	j := f.judged
	if j != nil && j.err == nil {
		d.Screen, d.ScreenReason, d.ScreenedAt, d.ScreenNext, d.ScreenTold = j.verdict, storable(j.reason), x.now, time.Time{}, false
		switch d.Screen {
		case Allow:
		case Refuse:
			d.HeldAs, d.Role = d.Role, RoleRefused
		default:
			d.Screen, d.HeldAs, d.Role = AskReview, d.Role, RoleHeld
		}
		return
	}
	x.unscreened, d.Proven = true, false
	if d.State == incoming.Final {
		d.State = incoming.Included
	}
	if j == nil {
		return
	}
	if d.ScreenReason == "" {
		d.ScreenedAt = x.now
	}
	waited := x.now.Sub(d.ScreenedAt)
	d.ScreenReason, d.ScreenNext = storable("no answer: "+j.err.Error()), x.now.Add(min(max(waited, screenAgain), screenAgainMost))
	if waited >= screenTold && !d.ScreenTold {
		d.ScreenTold = true
		x.alert(AlertUnscreened, e, "a final deposit waits since "+d.ScreenedAt.Format(time.RFC3339)+" for Config.Screen: "+d.ScreenReason)
	}
}

// unscreen forgets what was said of a deposit that its chain has taken away: when it is back it
// is judged anew. What a person has refunded stays as it is.
func (d *Deposit) unscreen() {
	if d.Booking != Unbooked && d.Booking != Reversed {
		return
	}
	if d.Role == RoleHeld || d.Role == RoleRefused {
		d.Role, d.HeldAs = d.HeldAs, ""
	}
	d.Screen, d.ScreenReason, d.ScreenedAt, d.ScreenNext, d.ScreenTold = "", "", time.Time{}, time.Time{}, false
}

// storable is a host's text as every store takes it.
func storable(text string) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "�"), "\x00", "�")
	if r := []rune(text); len(r) > maxScreenText {
		text = string(r[:maxScreenText])
	}
	return text
}

// Release has a deposit that waits in suspense as RoleHeld count as if Config.Screen had
// allowed it. Its money goes to its payment, also where that has ended meanwhile: a deposit
// that was in time stays in time. What the Screen has held of money that counts for no payment
// waits in suspense for its own reason from then on. Of two who decide at once one wins. Errors:
// *NotFoundError, *StateError where it does not wait as RoleHeld, rates.ErrUnavailable (wrapped).
func (s *Service) Release(ctx context.Context, tenant, depositID string, by ...Recorded) (Deposit, error) {
	var (
		out Deposit
		d   *incoming.Sighting
	)
	err := s.decide(ctx, tenant, func(ctx context.Context) (*decision, error) {
		e, err := s.entryOf(ctx, storage.Tenant(tenant), depositID)
		if err != nil {
			return nil, err
		}
		d = e.d.sighting(tenant)
		x, err := s.about(ctx, tenant, &fact{sighting: *d})
		if err != nil {
			return nil, err
		}
		x.by = by
		return x, nil
	}, func(x *decision) error {
		for _, e := range x.deposits {
			if e.d.ID == depositID {
				if err := e.d.releasable(); err != nil {
					return err
				}
				x.decides = e
				err := x.release(e, d)
				out = e.d
				return err
			}
		}
		return &NotFoundError{Field: "deposit_id", ID: depositID}
	})
	if err != nil {
		return Deposit{}, err
	}
	return out, nil
}

// CheckRelease says why a deposit cannot be released now: errors as of Release.
func (s *Service) CheckRelease(ctx context.Context, tenant, depositID string) error {
	e, err := s.entryOf(ctx, storage.Tenant(tenant), depositID)
	if err != nil {
		return err
	}
	return e.d.releasable()
}

func (d *Deposit) releasable() error {
	switch {
	case d.SuspenseStatus() != SuspenseOpen:
		return &StateError{Status: Status(d.SuspenseStatus()), Reason: fmt.Sprintf("deposit %s does not wait in suspense", d.ID)}
	case d.Role == RoleRefused:
		return &StateError{Status: Status(SuspenseOpen), Reason: fmt.Sprintf("deposit %s was refused and counts for no payment", d.ID)}
	case d.Role != RoleHeld:
		return &StateError{Status: Status(SuspenseOpen), Reason: fmt.Sprintf("deposit %s is not under review", d.ID)}
	}
	return nil
}

// sighting is what the chain has of a deposit that is final.
func (d *Deposit) sighting(tenant string) *incoming.Sighting {
	return &incoming.Sighting{
		Network: d.Network, Tx: d.Tx, Ordinal: d.Ordinal, Generation: d.Generation, State: d.State, Address: d.Address, Tenant: tenant,
		From: d.From, Memo: d.Memo, Currency: d.Currency, Contract: d.Contract, Exact: d.Exact, Amount: d.Amount,
		Height: d.Height, BlockTime: d.BlockTime, FirstSeen: d.FirstSeen,
	}
}

// release gives a held deposit the role that it had, and lets its payment follow.
func (x *decision) release(e *entry, s *incoming.Sighting) error {
	d := &e.d
	if d.Role, d.HeldAs = d.HeldAs, ""; d.Role == "" { // a process of an earlier version has written it, on a store that keeps rows whole
		d.Role = x.first(d, s)
	}
	if d.Role.counted() && x.p.ID == "" {
		d.Role = RoleStray // its payment is not there any more
	}
	if d.Role.counted() {
		d.Payment = x.p.ID
		if err := x.value(d); err != nil {
			return err
		}
	}
	if x.at != nil {
		if _, err := x.begin(e); err != nil {
			return err
		}
	}
	if x.p.ID == "" || !d.Role.counted() {
		return nil
	}
	x.order()
	x.sums()
	return x.settle()
}

// unanswered logs that a deposit waits for its Screen.
func (s *Service) unanswered(ctx context.Context, f *fact) error {
	s.c.Log.LogAttrs(ctx, slog.LevelWarn, "deposit_unscreened", slog.String("tenant", f.sighting.Tenant),
		slog.String("deposit", DepositID(&f.sighting)), slog.String("error", f.judged.err.Error()))
	return fmt.Errorf("%w: %w", errUnscreened, f.judged.err)
}

// said is the Screen's word of a deposit that it holds, as an alert ends with it.
func (d *Deposit) said() string {
	if d.HeldAs == "" || d.ScreenReason == "" {
		return ""
	}
	return ": " + d.ScreenReason
}
