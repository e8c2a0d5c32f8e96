package refill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/proof"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/storage"
)

// decide loads a proposal, lets f decide, commits what follows and starts over where the state has
// changed meanwhile. Nothing is decided about a row that somebody edited. due is when it is looked at
// again; f returns the zero time for never. What f changes beside the status is written, too.
func (s *Service) decide(ctx context.Context, tenant, id string, by *outgoing.Recorded, f func(p *Proposal, now time.Time) (due time.Time, err error)) (p Proposal, err error) {
	part := storage.Tenant(tenant)
	err = storage.Decide(ctx, s.c.Store, func(ctx context.Context) (storage.Change, error) {
		was, row, ok, err := Proposals.One(ctx, s.c.Store, part, id)
		if err == nil && !ok {
			err = fmt.Errorf("%w: %q", ErrNotFound, id)
		}
		if err != nil {
			return storage.Change{}, err
		}
		why, err := s.Contradicts(ctx, part, id, &was)
		if err == nil && why != "" {
			err = fmt.Errorf("%w: %s", ErrAltered, why)
		}
		if err != nil {
			return storage.Change{}, err
		}
		p = was
		now := s.c.Now().UTC().Truncate(time.Microsecond)
		due, err := f(&p, now)
		if err != nil {
			return storage.Change{}, err
		}
		if p.Status == was.Status && p.Reason == was.Reason && p.Tx == was.Tx && len(p.Raw) == len(was.Raw) && due.Equal(row.Due) {
			return storage.Change{}, nil
		}
		c := storage.Change{ID: fmt.Sprintf("%s/%s/%d%s", id, p.Status, row.Version, callOf(by)), Partition: part}
		if len(p.Raw) != len(was.Raw) { // more than a worker decides that sees it at a node
			c.ID += "/signed"
		}
		if p.Tx != was.Tx {
			c.ID += "/" + p.Tx
		}
		if p.Status != was.Status {
			p.UpdatedAt = now
		}
		if p.Status != was.Status || p.Reason != was.Reason {
			e, err := s.told(&p, was.Status, now)
			if err != nil {
				return storage.Change{}, err
			}
			c.Tell = append(c.Tell, e)
		}
		rows, events, err := by.Rows(was.shown(), p.shown())
		if err != nil {
			return storage.Change{}, err
		}
		c.Put, c.Tell = append(c.Put, rows...), append(c.Tell, events...)
		c.Put = append(c.Put, Proposals.Row(id, row.Version, due, p))
		return c, nil
	})
	return p, err
}

// callOf is what a call adds to the id of its Change: what two people do are two Changes, of which one
// is decided again.
func callOf(by *outgoing.Recorded) string {
	if by == nil {
		return ""
	}
	return "/" + by.ID
}

// to takes a proposal to a status: the table must allow it.
func (p *Proposal) to(status Status, on trigger, reason string) error {
	err := machine.Move(p.Status, on, status)
	if err == nil {
		p.Status, p.Reason = status, reason
	}
	return err
}

// Take checks what a person signed elsewhere against the proposal, and has it sent. signed is as
// chain.ColdSpender.AcceptCold wants it. A second call for one that was taken returns it as it stands,
// with made false. With dry everything is checked and nothing is done.
//
// Errors: ErrNotFound, ErrAltered, *StateError where the proposal has expired, was cancelled or lost its
// coins. An error that wraps chain.ErrRejected says what is not as it was proposed; one that wraps
// outgoing.ErrHelp names the halt that keeps it from being sent. None of them changes the proposal.
func (s *Service) Take(ctx context.Context, tenant, id string, signed []byte, dry bool, by *outgoing.Recorded) (p Proposal, made bool, err error) {
	if p, err = s.Get(ctx, tenant, id); err != nil {
		return p, false, err
	}
	spender, err := s.spender(p.Network)
	if err != nil {
		return p, false, err
	}
	h, stopped, err := s.halted(ctx, &p)
	if err != nil {
		return p, false, err
	}
	p, err = s.decide(ctx, tenant, id, by, func(p *Proposal, now time.Time) (time.Time, error) {
		made = false
		tx, err := spender.AcceptCold(p.From, p.Payload, signed)
		switch {
		case p.Status == Expired || p.Status == Cancelled || p.Status == Gone:
			return now, &StateError{id, p.Status}
		case err != nil:
			return now, err
		case tx.Tx != p.Tx && !p.unnamed():
			return now, fmt.Errorf("%w: refill: it is transaction %s, proposed was %s", chain.ErrRejected, tx.Tx, p.Tx)
		case stopped && (p.Status == Open || p.Status == Sending && len(p.Raw) == 0):
			return now, fmt.Errorf("%w: refill: nothing of it is sent while that is halted (%s): lift the halt first", outgoing.ErrHelp, h.Reason)
		case p.Status == Sending && len(p.Raw) == 0: // somebody else sent it: from now on it is sent again
			made, p.Raw, p.Tx = true, tx.Raw, tx.Tx
			return now, dryRun(dry)
		case p.Status != Open:
			return now, errTaken
		case !now.Before(p.ExpiresAt):
			return now, &StateError{id, Expired}
		}
		made, p.Raw, p.Tx = true, tx.Raw, tx.Tx
		return now, errors.Join(p.to(Sending, onSigned, ""), dryRun(dry))
	})
	switch {
	case errors.Is(err, errTaken):
		return p, false, nil
	case errors.Is(err, errDry):
		made, err = false, nil
	}
	return p, made && err == nil, err
}

var (
	errTaken = errors.New("refill: it was taken before")
	errDry   = errors.New("refill: nothing is done on a dry run")
	never    time.Time
)

func dryRun(dry bool) error {
	if dry {
		return errDry
	}
	return nil
}

// Cancel ends a proposal that did not come back yet; one that is cancelled already is returned as it
// is. *StateError where it is too late. A copy of it that is signed all the same, and sent by somebody
// else, is booked as a refill when it lands.
func (s *Service) Cancel(ctx context.Context, tenant, id string, dry bool, by *outgoing.Recorded) (p Proposal, made bool, err error) {
	p, err = s.decide(ctx, tenant, id, by, func(p *Proposal, now time.Time) (time.Time, error) {
		made = false
		switch p.Status {
		case Cancelled:
			return now, errTaken
		case Open:
			made = !dry
			return never, errors.Join(p.to(Cancelled, onCancel, ""), dryRun(dry))
		}
		return now, &StateError{id, p.Status}
	})
	if errors.Is(err, errTaken) || errors.Is(err, errDry) {
		err = nil
	}
	return p, made && err == nil, err
}

// Step looks at live proposals that are due: it sends those that came back, learns what became of them,
// and ends those whose time is over. It says how many it looked at. Many processes may call it at
// once. An error is of some proposal that is looked at again later.
func (s *Service) Step(ctx context.Context) (worked int, err error) {
	now := s.c.Now()
	rows, err := s.unread.Claimed(ctx, s.c.Store, storage.Claim{
		Table: Proposals.Table, Now: now, Until: now.Add(s.c.Lease), Max: batch,
		Where: []storage.Cond{{Column: "currency", Op: storage.In, Value: s.served()}},
	}, s.c.Log, func(*storage.RowError) {})
	if err != nil {
		return 0, err
	}
	one := func(r storage.Row) string { return string(r.Partition) + "/" + r.ID }
	errs := storage.Work(ctx, s.c.Store, rows, one, func(ctx context.Context, r storage.Row) error { return s.look(ctx, Proposals.Value(r)) })
	for i, err := range errs {
		p := Proposals.Value(rows[i])
		switch {
		case errors.Is(err, storage.ErrBusy) || errors.Is(err, storage.ErrConflict):
			errs[i] = nil // it is due again when the lease ends
		case errors.Is(err, ErrAltered):
			s.c.Log.LogAttrs(ctx, slog.LevelError, "refill_altered", slog.String("tenant", p.Tenant), slog.String("proposal", rows[i].ID), slog.Any("error", err))
			errs[i] = nil
		case err != nil:
			s.c.Log.LogAttrs(ctx, slog.LevelWarn, "refill_not_looked_at", slog.String("tenant", p.Tenant), slog.String("proposal", rows[i].ID), slog.Any("error", err))
		}
	}
	return len(rows), errors.Join(errs...)
}

const batch = 20

// served are the currencies of networks that this process has a client of.
func (s *Service) served() (out []string) {
	for _, code := range s.c.Registry.Codes() {
		if c, err := s.c.Registry.Currency(code); err == nil && s.c.Clients[c.Network] != nil {
			out = append(out, code)
		}
	}
	return out
}

// look asks the node what became of a proposal.
func (s *Service) look(ctx context.Context, p Proposal) error {
	why, err := s.Contradicts(ctx, storage.Tenant(p.Tenant), idOf(p.Currency, p.Number), &p)
	if err == nil && why != "" {
		err = fmt.Errorf("%w: %s", ErrAltered, why)
	}
	if err != nil {
		return err
	}
	tx, st, err := s.became(storage.Apart(ctx), &p)
	if err != nil {
		return err
	}
	if p.Status == Open && st.State == chain.Unknown {
		if first, err := s.settle(ctx, &p); err != nil || first != nil {
			return err
		}
	}
	refused, reason := error(nil), ""
	if p.Status == Sending && st.State == chain.Unknown && len(p.Raw) > 0 { // it is stored: what is lost is sent again
		switch _, stopped, err := s.halted(ctx, &p); {
		case err != nil:
			return err
		case stopped:
			reason = notSent
		default:
			if refused = s.c.Clients[p.Network].Broadcast(storage.Apart(ctx), proof.NewStored(string(p.Network), p.Tx, p.Raw)); refused != nil {
				reason = notTaken
			}
		}
	}
	after, err := s.decide(ctx, p.Tenant, p.ID, nil, func(p *Proposal, now time.Time) (time.Time, error) {
		return s.follow(p, tx, &st, reason, now)
	})
	if err == nil && after.Status == Sending && after.Reason != "" && after.Reason != p.Reason {
		log := s.c.Log.With(slog.String("tenant", p.Tenant), slog.String("proposal", p.ID), slog.String("tx", p.Tx))
		switch after.Reason {
		case notMined:
			log.WarnContext(ctx, "refill_not_mined")
		case notTaken:
			log.WarnContext(ctx, "refill_not_taken", slog.Any("error", refused))
		}
	}
	return err
}

// halted returns the halt, by an operator or of the library's own, that keeps a refill from being sent.
func (s *Service) halted(ctx context.Context, p *Proposal) (h outgoing.Halt, stopped bool, err error) {
	row, _, _, err := outgoing.Halts.One(ctx, s.c.Store, storage.Network(string(p.Network)), outgoing.HaltsID)
	h, stopped = row.Stops(chain.Intent{Purpose: chain.ForSweep, Tenant: p.Tenant, Network: p.Network, Currency: p.Currency})
	return h, stopped, err
}

// Lost has a proposal of a tenant's that has landed sent again, as a fork took its transaction back. It
// does nothing about others.
func (s *Service) Lost(ctx context.Context, tenant string, n chain.Network, tx string) error {
	rows, err := s.c.Store.Find(ctx, storage.Query{
		Table: Proposals.Table, Partition: storage.Tenant(tenant), Limit: newest,
		Where: []storage.Cond{
			{Column: "tx", Op: storage.Eq, Value: tx}, {Column: "network", Op: storage.Eq, Value: string(n)}, {Column: "status", Op: storage.Eq, Value: Landed},
		},
	})
	for _, r := range rows {
		_, did := s.decide(ctx, tenant, r.ID, nil, func(p *Proposal, now time.Time) (time.Time, error) {
			if p.Status != Landed || p.Tx != tx {
				return never, errTaken
			}
			return now, p.to(Sending, onFork, "")
		})
		if !errors.Is(did, errTaken) && !errors.Is(did, ErrAltered) { // Verify reports what was edited
			err = errors.Join(err, did)
		}
	}
	return err
}

// became asks the node what became of a proposal. tx is the hash of a transaction in a block that
// somebody signed of it, "" = none, or it is known.
func (s *Service) became(ctx context.Context, p *Proposal) (tx string, st chain.Status, err error) {
	client := s.c.Clients[p.Network]
	accounts := s.accounts(p.Network)
	if !accounts || len(p.Raw) > 0 {
		said, err := client.Status(ctx, chain.Attempt{Tx: p.Tx, Raw: p.Raw, Spends: p.Inputs, MaxCost: p.Fee})
		if err == nil && len(said) != 1 {
			err = fmt.Errorf("refill: status on %s: %w: %d answers to one question", p.Network, chain.ErrNode, len(said))
		}
		if err != nil {
			return "", st, err
		}
		if st = said[0]; !accounts || st.State == chain.Included || st.State == chain.Pending {
			return "", st, nil
		}
	}
	finder, ok := client.(chain.ColdFinder)
	if !ok {
		return "", st, fmt.Errorf("%w: no client of network %s that finds transactions", ErrUnable, p.Network)
	}
	if tx, st, err = finder.FindCold(ctx, p.From, p.Payload, p.Tx); err == nil && st.State != chain.Included {
		tx = "" // it may go away, and come back as another
	}
	return tx, st, err
}

// follow is the pure decision on what a node said. unsent is the reason why no node has the transaction, "" = it
// was sent, or one has it.
func (s *Service) follow(p *Proposal, tx string, st *chain.Status, unsent string, now time.Time) (due time.Time, err error) {
	if !p.live() {
		return never, nil
	}
	c, err := s.c.Registry.Currency(p.Currency)
	if err != nil {
		return now.Add(lookEvery), nil //nolint:nilerr // another process lists it
	}
	final := st.Confirmations >= c.Confirmations
	if tx != "" && p.unnamed() && (len(p.Raw) == 0 || final) { // before that what is stored may be sent again
		p.Tx = tx
	}
	switch {
	case st.State == chain.Included && st.Executed && final:
		return never, p.to(Landed, onFinal, "")
	case st.State == chain.Included && final:
		return never, p.to(Gone, onFailed, s.failed(p, st))
	case st.State == chain.Conflicted && final && s.accounts(p.Network):
		return never, p.to(Gone, onSpent, fmt.Sprintf("its nonce was used by %s, whose cost is to be booked by hand if cold coins paid it", cmp.Or(st.By, "another transaction")))
	case st.State == chain.Conflicted && final:
		return never, p.to(Gone, onSpent, "its coins were spent by "+cmp.Or(st.By, "another transaction"))
	case p.Status == Open && (st.State == chain.Included || st.State == chain.Pending):
		return now.Add(lookEvery), p.to(Sending, onSigned, "") // somebody else has sent it
	case len(p.Raw) == 0 && st.State == chain.Unknown && !now.Before(p.ExpiresAt):
		return never, p.to(Expired, onLate, "")
	case p.Status == Sending && unsent != "":
		p.Reason = unsent
	case p.Status == Sending && st.State == chain.Pending && now.Sub(p.UpdatedAt) >= minedIn:
		p.Reason = notMined
	case p.Status == Sending && st.State != chain.Conflicted:
		p.Reason = ""
	}
	due = now.Add(lookEvery)
	if p.Status == Open && p.ExpiresAt.Before(due) && p.ExpiresAt.After(now) {
		due = p.ExpiresAt
	}
	return due, nil
}

// failed says of a transaction that the network took and did not carry out what it cost.
func (s *Service) failed(p *Proposal, st *chain.Status) string {
	cost := "what it cost"
	if gas, err := s.c.Registry.Gas(p.Network); err == nil && st.Cost > 0 {
		cost = "its cost of " + gas.Decimal(st.Cost).String() + " " + gas.Code
	}
	return fmt.Sprintf("its transaction %s failed, and %s is to be booked by hand", p.Tx, cost)
}
