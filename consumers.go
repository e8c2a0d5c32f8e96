package cryptopay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/refill"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/refund"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/stream"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/wallet/house"
	"github.com/cryptopay-go/cryptopay/wallet/reconcile"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// consumers builds what hands events to the host.
func (a *App) consumers() (err error) {
	kinds := stream.Join(payment.Kinds(), withdrawal.Kinds(), refund.Kinds(), wallet.Kinds(), treasury.Kinds(), refill.Kinds(), house.Kinds(), reconcile.Kinds(), outgoing.Kinds(), incoming.Kinds())
	a.Events, err = stream.New(stream.Config{
		Store: a.cfg.Store, Consumers: a.cfg.Consumers, Kinds: kinds, Now: a.cfg.Clock.Now, NewID: a.cfg.NewID, Log: a.cfg.Log,
	})
	return err
}

// consumerSlots is how many partitions' events a consumer handles at a time in Run.
const consumerSlots = 8

// streams are the workers of events: one hands them to consumers, one comes by all tenants,
// and by the networks, to wake new consumers and to forget events that all have handled.
func (a *App) streams() []Worker {
	r := &round{a: a, every: time.Hour, batch: retainBatch, tenant: a.keepStream}
	s := &houseStreams{a: a}
	return []Worker{
		{
			Name: "consumers", Every: time.Second, Step: a.Events.Step,
			start: func(ctx context.Context) runner { return a.Events.Run(ctx, consumerSlots) },
		},
		{Name: "events", Every: time.Minute, Step: func(ctx context.Context) (int, error) {
			house, err := s.step(ctx)
			n, failed := r.step(ctx)
			return house + n, errors.Join(err, failed)
		}},
	}
}

// houseStreams comes by the streams that are of no tenant: of the networks and of the
// system. It rests for an hour in between.
type houseStreams struct {
	a    *App
	mu   sync.Mutex
	rest time.Time // when it may come by again
}

func (s *houseStreams) step(ctx context.Context) (worked int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.a.cfg.Clock.Now()
	if now.Before(s.rest) {
		return 0, nil
	}
	all, err := s.a.house(ctx)
	if err != nil {
		return 0, err
	}
	more := false
	for _, p := range all {
		n, failed := s.a.keepStream(ctx, s.a.joined(), p, now)
		worked, err = worked+n, errors.Join(err, failed)
		more = more || n >= retainBatch
	}
	if !more && err == nil {
		s.rest = now.Add(time.Hour)
	}
	return worked, err
}

// house lists the partitions that are of no tenant: the system's, and that of each network.
func (a *App) house(ctx context.Context) ([]storage.Partition, error) {
	networks, err := a.Operate.networks(ctx)
	all := []storage.Partition{storage.System}
	for _, n := range networks {
		all = append(all, storage.Network(string(n)))
	}
	return all, err
}

// keepStream wakes consumers that have not seen all events of a partition, and forgets old
// events that all have handled.
func (a *App) keepStream(ctx context.Context, s storage.Store, p storage.Partition, now time.Time) (int, error) {
	woken, err := a.Events.CatchUp(ctx, s, p)
	keep := a.cfg.Retention.Stream
	if err != nil || keep < 0 {
		return woken, err
	}
	oldest, before := storage.Query{Table: storage.Events.Table, Partition: p, Limit: 1}, now.Add(-keep)
	old, broken, err := storage.Others(ctx, s, oldest)
	if err == nil && len(old) > 0 && storage.Events.Value(old[0]).At.Before(before) {
		oldest.Limit = retainBatch
		old, broken, err = storage.Others(ctx, s, oldest)
	}
	if err != nil {
		return woken, err
	}
	if i := slices.IndexFunc(old, func(r storage.Row) bool { return !storage.Events.Value(r).At.Before(before) }); i >= 0 {
		old = old[:i]
	}
	if len(old) == 0 {
		return woken, broken.With(nil)
	}
	seen, err := a.Events.Lowest(ctx, s, p)
	if err != nil {
		return woken, err
	}
	if i := slices.IndexFunc(old, func(r storage.Row) bool { return r.ID > storage.EventID(seen) }); i >= 0 {
		old = old[:i]
	}
	n, err := drop(ctx, s, p, old, func(storage.Row) []storage.Count { return nil })
	return woken + n, broken.With(err)
}

// subscribePause is how often Subscribe looks for new events.
const subscribePause = 250 * time.Millisecond

// Subscribe reads a tenant's events after a number (0 = from the oldest that is kept) and
// goes on as new ones come, until ctx ends or the loop does. It keeps nothing in the store:
// who must not miss any is a Consumer. An error is yielded last: wallet.ErrNoTenant, or
// stream.ErrMissed where events after the number are not kept any more.
//
//	for e, err := range app.Subscribe(ctx, shop.ID, 0) {
//		if err != nil { … }
//		switch b := e.Body.(type) {
//		case payment.Changed: …
func (a *App) Subscribe(ctx context.Context, tenant string, after int64, kinds ...string) iter.Seq2[stream.Event, error] {
	return a.follow(ctx, stream.Filter{Partition: storage.Tenant(tenant), After: after, Kinds: kinds}, func() error {
		_, err := a.Wallets.Tenant(ctx, tenant)
		return err
	})
}

// SubscribeNetwork is Subscribe for the events of a network, which are of no tenant: sweeps
// and what else the house sends to itself, halts, forks, and what operators do. "" is for
// what concerns every network. The error of a network that nobody serves is
// chain.ErrCurrency.
func (a *App) SubscribeNetwork(ctx context.Context, n chain.Network, after int64, kinds ...string) iter.Seq2[stream.Event, error] {
	return a.follow(ctx, stream.Filter{Partition: housePartition(n), After: after, Kinds: kinds}, func() error {
		known, err := a.Operate.networks(ctx)
		if err == nil && n != "" && !slices.Contains(known, n) {
			err = fmt.Errorf("%w: no network %q is served", chain.ErrCurrency, n)
		}
		return err
	})
}

// follow yields the error of there, or else what Follow does.
func (a *App) follow(ctx context.Context, f stream.Filter, there func() error) iter.Seq2[stream.Event, error] {
	return func(yield func(stream.Event, error) bool) {
		if err := there(); err != nil {
			if ctx.Err() == nil {
				yield(stream.Event{}, err)
			}
			return
		}
		a.Events.Follow(ctx, f, func(ctx context.Context) error { return a.cfg.Clock.Wait(ctx, subscribePause) })(yield)
	}
}
