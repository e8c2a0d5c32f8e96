package restore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/storage"
)

// The kinds of operations of a restore.
const (
	OpBegin    outgoing.OperationKind = "begin_restore"
	OpEnd      outgoing.OperationKind = "end_restore"
	OpTake     outgoing.OperationKind = "take_transaction" // of our keys, that the store did not know
	OpWithhold outgoing.OperationKind = "withhold_addresses"
)

// Errors of a restore.
var (
	// ErrNoRestore: no restore is under way.
	ErrNoRestore = errors.New("restore: none is under way: begin one")
	// ErrRestoreOpen: something is left to do before a restore ends.
	ErrRestoreOpen = errors.New("restore: it is not done: each thing that is left is listed")
)

// Restore is a restore that is under way.
type Restore struct {
	ID       string
	Begun    time.Time
	By       string
	Reason   string
	Networks []Network
}

// Network is how far the store was with a network when the restore began.
type Network struct {
	Network chain.Network `json:"network"`
	From    chain.Block   `json:"from"`  // what our keys have sent is looked for after it; zero = the network was never read
	Shown   int64         `json:"shown"` // place in the directory of the last address that was given to anybody
}

const (
	restoreBegun = "restore/begin/"
	restoreEnded = "restore/end/"
)

// Restoring is the restore that is under way; ok is false where none is.
func (s *Steps) Restoring(ctx context.Context) (r Restore, ok bool, err error) {
	r, _, ok, err = s.restoring(ctx)
	return r, ok, err
}

// restoring also returns the number of the restore, or of the next one.
func (s *Steps) restoring(ctx context.Context) (r Restore, number int, ok bool, err error) {
	for number = 1; ; number++ {
		begun := fmt.Sprint(restoreBegun, number)
		op, _, there, err := outgoing.Operations.One(ctx, s.cfg.Store, storage.System, begun)
		if err != nil || !there {
			return Restore{}, number, false, err
		}
		_, _, over, err := outgoing.Operations.One(ctx, s.cfg.Store, storage.System, fmt.Sprint(restoreEnded, number))
		if err != nil {
			return Restore{}, number, false, err
		}
		if !over {
			r = Restore{ID: begun, Begun: op.At, By: op.By, Reason: op.Reason}
			return r, number, true, json.Unmarshal([]byte(op.After), &r.Networks)
		}
	}
}

// Begin halts everything, and notes where the store stands. Call it on the restored
// store before any process works on it. Called again it halts again, and returns the restore
// that is under way. A dry run returns what would be noted.
func (s *Steps) Begin(ctx context.Context, c cryptopay.Call) (Restore, error) {
	if _, err := s.App.Operate.Halt(ctx, cryptopay.HaltScope{}, c); err != nil {
		return Restore{}, err
	}
	for {
		r, number, ok, err := s.restoring(ctx)
		if err != nil || ok {
			return r, err
		}
		id := fmt.Sprint(restoreBegun, number)
		r = Restore{ID: id, Begun: s.cfg.Clock.Now(), By: c.By, Reason: c.Reason}
		if r.Networks, err = s.stands(ctx); err != nil || c.DryRun {
			r.ID = ""
			return r, err
		}
		noted, err := json.Marshal(r.Networks)
		if err != nil {
			return r, err
		}
		by := s.under(ctx, storage.System, id, OpBegin, c)
		change := storage.Change{ID: id + "/" + s.cfg.NewID(), Partition: storage.System}
		if err := by.Add(&change, "", string(noted)); err != nil {
			return r, err
		}
		switch err := storage.CommitOne(ctx, s.cfg.Store, change); {
		case errors.Is(err, storage.ErrConflict): // somebody else began it at this moment
			continue
		case err != nil:
			return r, err
		}
		s.done(ctx, by)
		return r, nil
	}
}

// stands is how far the store is with each network.
func (s *Steps) stands(ctx context.Context) (out []Network, err error) {
	networks, err := s.networks(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range networks {
		cur, _, _, err := incoming.Cursors.One(ctx, s.cfg.Store, storage.Network(string(n)), incoming.CursorID)
		if err != nil {
			return nil, err
		}
		trail, err := cur.Trail.Blocks()
		if err != nil {
			return nil, err
		}
		at := Network{Network: n}
		if len(trail) > 0 {
			at.From = trail[0] // far below what may still be replaced
		}
		if at.Shown, err = s.App.Addresses.Shown(ctx, n); err != nil {
			return nil, err
		}
		out = append(out, at)
	}
	return out, nil
}

// Withhold gives addresses that may have been shown since the backup was made to a tenant, so
// that no customer is shown one again: count of them on the network, after those that the
// store knew when the restore began. Money that comes there goes to the tenant's suspense. Call
// it before a process serves. It may be called again, also with a larger count. It returns how
// many it took, 0 on a dry run and where it has done so before.
func (s *Steps) Withhold(ctx context.Context, n chain.Network, tenant string, count int64, c cryptopay.Call) (taken int, err error) {
	if err := check(c); err != nil {
		return 0, err
	}
	r, _, ok, err := s.restoring(ctx)
	if err == nil && !ok {
		err = ErrNoRestore
	}
	if err != nil {
		return 0, err
	}
	if _, err := s.client(n); err != nil {
		return 0, err
	}
	if _, err := s.App.Wallets.Tenant(ctx, tenant); err != nil {
		return 0, err
	}
	i := slices.IndexFunc(r.Networks, func(at Network) bool { return at.Network == n })
	upTo := count
	if i >= 0 {
		upTo += r.Networks[i].Shown
	}
	if c.DryRun {
		return 0, nil
	}
	if taken, err = s.App.Addresses.Withhold(ctx, n, tenant, upTo); err != nil {
		return taken, err
	}
	by := s.under(ctx, storage.Network(string(n)), withheld(&r, n, upTo), OpWithhold, c)
	by.Op.Network, by.Op.Tenant, by.Op.Object = n, tenant, fmt.Sprintf("addresses up to place %d", upTo)
	if err := s.note(ctx, by, by.ID, "", fmt.Sprintf("%d addresses", taken)); err != nil {
		return taken, err
	}
	s.done(ctx, by)
	return taken, nil
}

func withheld(r *Restore, n chain.Network, upTo int64) string {
	return fmt.Sprintf("%s/%s/withheld/%d", r.ID, n, upTo)
}

// hasWithheld reports whether addresses of a network were withheld in this restore.
func (s *Steps) hasWithheld(ctx context.Context, r *Restore, n chain.Network) (bool, error) {
	rows, err := s.cfg.Store.Find(ctx, storage.Query{
		Table: outgoing.Operations.Table, Partition: storage.Network(string(n)), Limit: 1000, IDs: true,
		Where: []storage.Cond{{Column: "kind", Op: storage.Eq, Value: OpWithhold}},
	})
	return slices.ContainsFunc(rows, func(row storage.Row) bool { return strings.HasPrefix(row.ID, r.ID+"/") }), err
}

// Left is one thing that is left to do in a restore.
type Left struct {
	Network chain.Network // "" = of none
	Object  string        // a transaction, an address, a tenant
	Detail  string        // what it is, and what ends it
}

// Ending is what End found and did.
type Ending struct {
	Left    []Left
	Adopted []outgoing.Nonce
	Ended   bool
}

// End looks whether every network is read up to its tip, each unknown transaction is
// taken, addresses are withheld, and the books are right. Where nothing is left, or despite is
// set, it adopts the nonces of transactions that were taken, lifts the halt of everything, and
// notes the end: what waited goes on. Else the error is ErrRestoreOpen, nothing is done, and
// Left says what is left. A dry run only looks.
func (s *Steps) End(ctx context.Context, despite bool, c cryptopay.Call) (e Ending, err error) {
	if err := check(c); err != nil {
		return e, err
	}
	r, number, ok, err := s.restoring(ctx)
	if err == nil && !ok {
		err = ErrNoRestore
	}
	if err != nil {
		return e, err
	}
	type owned struct {
		n chain.Network
		a outgoing.Nonce
	}
	var adopt []owned
	for i := range r.Networks {
		left, nonces, err := s.leftOn(ctx, &r, &r.Networks[i])
		if err != nil {
			return e, err
		}
		e.Left = append(e.Left, left...)
		for _, b := range nonces {
			adopt = append(adopt, owned{r.Networks[i].Network, b})
		}
	}
	reports, err := s.App.Verify(ctx)
	if err != nil {
		return e, err
	}
	for i := range reports {
		if t := &reports[i]; !t.Sound() {
			e.Left = append(e.Left, Left{Object: t.Tenant, Detail: "the books are not right: verify lists each finding"})
		}
	}
	if len(e.Left) > 0 && !despite {
		return e, ErrRestoreOpen
	}
	if c.DryRun {
		return e, nil
	}
	for _, a := range adopt {
		if _, err := s.App.Operate.AdoptNonces(ctx, a.n, []chain.Address{a.a.Address}, c); err != nil {
			return e, err
		}
		e.Adopted = append(e.Adopted, a.a)
	}
	if _, err := s.App.Operate.Lift(ctx, cryptopay.HaltScope{}, c); err != nil {
		return e, err
	}
	by := s.under(ctx, storage.System, fmt.Sprint(restoreEnded, number), OpEnd, c)
	by.Op.Object = r.ID
	if err := s.note(ctx, by, by.ID, "", fmt.Sprintf("%d things left", len(e.Left))); err != nil {
		return e, err
	}
	s.done(ctx, by)
	e.Ended = true
	return e, nil
}

// leftOn is what is left to do on one network, and the nonces that can be adopted.
func (s *Steps) leftOn(ctx context.Context, r *Restore, at *Network) (left []Left, adopt []outgoing.Nonce, err error) {
	add := func(object, format string, args ...any) {
		left = append(left, Left{at.Network, object, fmt.Sprintf(format, args...)})
	}
	client, missing := s.client(at.Network)
	if missing != nil {
		add("", "no client of it is here: look from a process that serves it")
		return left, nil, nil //nolint:nilerr // it is listed as left
	}
	tip, err := client.Tip(ctx)
	if err != nil {
		return nil, nil, err
	}
	if read, err := s.App.NetworkStatus(ctx, at.Network); err != nil {
		return nil, nil, err
	} else if read.Halted != "" {
		add("", "its blocks are not read: %s", read.Halted)
	} else if read.Head < tip.Head.Height {
		add("", "%d blocks are not read yet: start the processes", tip.Head.Height-read.Head)
	}
	if done, err := s.hasWithheld(ctx, r, at.Network); err != nil {
		return nil, nil, err
	} else if !done {
		add("", "addresses that were shown since the backup may be shown again: withhold some")
	}
	unknown, err := s.Unknown(ctx, at.Network, nil)
	if err != nil {
		return nil, nil, err
	}
	taken := map[chain.Address]uint64{}
	for i := range unknown {
		switch u := &unknown[i]; {
		case u.Taken:
			taken[u.From]++
		case !u.Final:
			add(u.Tx, "it is not final yet")
		default:
			add(u.Tx, "our keys made it, and it is not booked: take it")
		}
	}
	beyond, err := s.App.Operate.NoncesBeyond(ctx, at.Network)
	for _, b := range beyond {
		if missing := b.Chain - uint64(max(b.Ours, 0)); taken[b.Address] < missing {
			add(string(b.Address), "%d of %d transactions that the store does not know moved nothing that was found: account for them, then adopt its nonce", missing-taken[b.Address], missing)
			continue
		}
		adopt = append(adopt, b)
	}
	slices.SortStableFunc(left, func(x, y Left) int { return cmp.Compare(x.Object, y.Object) })
	return left, adopt, err
}
