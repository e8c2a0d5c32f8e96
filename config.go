package cryptopay

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/stream"
	"github.com/cryptopay-go/cryptopay/wallet/house"
	"github.com/cryptopay-go/cryptopay/wallet/reconcile"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
	"github.com/cryptopay-go/cryptopay/withdrawal/policy"
)

// Config is what an App is made of. Store, Chains and Key are required, Addresses and Rates
// where something needs them: a call that does and finds none has a *MissingError.
//
// Where every client is of a simulated network (chain.Development), Addresses and Key default
// to ones that anybody can make again, and Open says so in the log.
type Config struct {
	Store  storage.Store
	Chains []chain.Client

	// Addresses gives payments and tenants' hot addresses: public keys are enough. Needed to
	// create and show payments, and to send.
	Addresses chain.AddressSource
	// Signer pays withdrawals and forwards deposits. Without one this process
	// takes payments and accepts withdrawals; another process sends them.
	Signer chain.Signer
	// Rates prices payments, withdrawals, fees and what is worth moving: all by way of
	// one rates.Guarded, so that a price that cannot be true is used for nothing. There is
	// no default price. Wallets and transfers need none.
	Rates rates.Rates
	// RateAge is the age at which a price is refused. Defaults to
	// rates.DefaultMaxAge.
	RateAge time.Duration
	// RateBounds are the ranges in which prices can be true, by "TOKEN/FIAT", or by
	// "TOKEN" for the price in USD. Defaults to those of rates.GuardConfig.Stable for
	// the stable coins of the Registry.
	RateBounds map[string]rates.Bound
	// Keys of 32 bytes each, newest first. The first seals webhook secrets, journals and
	// withdrawals in the store; what any of them sealed is valid. Keep them: without its key
	// a secret cannot be opened again, and a withdrawal that waits is not paid. To change
	// keys: add the new one behind the old in every process, then put it first in every
	// process, call App.Reseal, and leave the old one out. Keys, or Key, is required, but
	// on simulated networks.
	Keys [][]byte
	// Key is Keys with one key.
	Key []byte
	// UnsealedUntil is the day until which rows are accepted that nobody sealed, as those
	// of versions before seals: withdrawals, and credentials where auth.Config.Unsealed
	// asks the App. Set it for an upgrade from such a version, until App.Reseal has sealed
	// them. Defaults to refusing them, whatever the database says.
	UnsealedUntil time.Time

	// Registry names networks and currencies; the App knows those that Chains
	// has a client of. Defaults to every shipped currency.
	Registry *chain.Registry
	// Clock defaults to SystemClock.
	Clock Clock
	// NewID makes ids: UUIDs of version 7. Defaults to ones of the Clock's time
	// and Random.
	NewID func() string
	// Random defaults to crypto/rand. Another source is read by one goroutine at a time.
	Random io.Reader
	// Log hears of failing workers, stuck networks, reversed deposits and overdue
	// steps. Defaults to slog.Default() at the time of New.
	Log *slog.Logger
	// Notifier delivers events. One of the host's own gets every event of every
	// tenant, also those without a callback URL: see webhook.Notifier. Defaults to
	// HTTP with Callbacks as its guard, which skips events without a URL.
	Notifier webhook.Notifier
	// MaxUndelivered is how many undelivered events of one tenant are kept. Of what
	// is more, the oldest are failed, with a reason; they can be replayed. Defaults
	// to 100,000.
	MaxUndelivered int
	// Callbacks says which callback URLs are accepted, and which addresses the default
	// Notifier connects to. Defaults to https to public addresses.
	Callbacks webhook.Guard
	// Poll is how often Run asks each chain for news. Defaults to 5 seconds. PollOn takes its place
	// on the networks that it names.
	Poll   time.Duration
	PollOn map[chain.Network]time.Duration
	// HeadAge is the maximum age of a node's newest block, on every network. While the
	// block is older nothing becomes final, no payment expires, and the network's worker
	// fails with incoming.ErrStuck. Where there is a limit, a payment expires only once the
	// chain's own time is past its end. Below 0 there is no limit, and a payment expires by
	// the time at which the tip was read. Defaults to chain.NetworkInfo.HeadAge of each
	// network, and to no limit on a chain.OnDemand chain.
	HeadAge time.Duration
	// GoneAfter is how long a deposit must have been missing in the mempools of all
	// processes before it is gone: nodes do not hold the same transactions. Below 0 the
	// first process that misses it decides. Defaults to 10 minutes, and to below 0 on a
	// chain.OnDemand chain.
	GoneAfter time.Duration

	// Retire lists currencies that are open in the store and are no longer in Registry, or
	// on a network without a client: Open refuses that otherwise. Their withdrawals wait as
	// halted and can be cancelled, payments end when their time is over, and deposits are
	// not credited until the currency is listed again. Name a code here only once no
	// process lists it. Defaults to none.
	Retire []string
	// Elsewhere lists networks without a client here, which another process on the same
	// store serves: what is open there is left to it. Defaults to none.
	Elsewhere []chain.Network

	listed *chain.Registry // Registry as it was given, with currencies of networks without a client

	// Grace is how long Run, once its context has ended, waits for steps in flight
	// before it cancels theirs. Defaults to 30 seconds.
	Grace time.Duration

	// MaxWallets is how many sub-accounts a tenant may have open. Defaults to
	// wallet.DefaultMaxWallets, 10,000; below 0 is no bound.
	MaxWallets int
	// Workers are due work of the host's own, done by Run and Step beside the
	// App's: such as httpapi/auth's Purge. Defaults to none.
	Workers []Worker
	// Consumers are code of the host that hears what happens to its tenants: each change of
	// a payment, a deposit, a withdrawal and a transfer, in order. On a SQL database it is
	// handled exactly once with what the consumer writes there: see storage/stream. Defaults
	// to none.
	Consumers []stream.Consumer
	// Retention says what is forgotten when. Defaults to keeping everything but events that
	// every consumer has handled.
	Retention Retention
	// SealEvery is how often each tenant's journal is sealed, so that Verify finds
	// what somebody edited in the database: see storage/seal. It costs a few reads
	// per tenant, and one Change where something was posted. Defaults to an hour;
	// below 0 is never.
	SealEvery time.Duration

	// Observer hears of each step of the workers: see Observer. Defaults to none; Figures
	// and Health need none.
	Observer Observer

	// Verify adds to Report.Contradictions what the host finds, such as credentials that
	// were edited: httpapi/auth.Service.Verify. Defaults to nothing.
	Verify func(ctx context.Context, tenant string) ([]Contradiction, error)

	// Policy is what the payouts of tenants are held to that have no policy of their own: see
	// App.Policies and Operate.SetPolicy. It must be the same in every process. Where its Rules
	// are nil, and there are Rates, they default to those of policy.Default. Rules that are
	// empty and not nil, []policy.Rule{}, are none.
	Policy policy.Policy

	// HouseAddresses are addresses of the host's own, outside of this library: the only ones to
	// which Operate.PayOutFees and Operate.WithdrawOperatorFunds pay. Set it alike in every
	// process: a payment to an address that was taken out waits as not_listed. One that nobody
	// has the key of is refused by New. Defaults to none: both calls are refused.
	HouseAddresses []house.Address

	// Payments, Withdrawals, Treasury and Outgoing (of every network) refine the
	// rooms. New refuses a field that the App fills in itself (Store, Registry, Now …).
	// A hook that the App has, too, is asked beside the App's: either may refuse or
	// halt, and of two bounds the lower counts. Outgoing.Payer alone replaces the
	// App's, which is the hot address.
	Payments    payment.Config
	Withdrawals withdrawal.Config
	Treasury    treasury.Config
	Outgoing    outgoing.Config
	// OutgoingOn takes the place of Outgoing on the networks that it names: bounds of fees count
	// each network's own coin, and blocks come at a pace of its own. Hooks that it leaves out are
	// those of Outgoing.
	OutgoingOn map[chain.Network]outgoing.Config
	// Reconcile is how the books are held against each network.
	Reconcile reconcile.Config

	made []string // fields that develop filled in
}

// withDefaults checks the Config and fills in what was left out.
func (c Config) withDefaults() (Config, error) {
	switch {
	case c.Store == nil:
		return c, errors.New("cryptopay: Config.Store is required: memory.New(), sqlite.Open(…) or one of your own")
	case len(c.Chains) == 0:
		return c, errors.New("cryptopay: Config.Chains is required: at least one chain client")
	}
	c.develop()
	if err := errors.Join(c.oneKey(), c.Retention.check(), c.checkWired()); err != nil {
		return c, err
	}
	if c.Registry == nil {
		c.Registry = chain.MainnetRegistry()
	}
	if c.Clock == nil {
		c.Clock = SystemClock{}
	}
	if c.Random != nil {
		c.Random = &oneReader{source: c.Random}
	} else {
		c.Random = rand.Reader
	}
	if c.NewID == nil {
		c.NewID = newID(c.Clock, c.Random)
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Payments.PriceCurrencies == nil {
		c.Payments.PriceCurrencies = payment.DefaultPriceCurrencies()
	}
	if c.Poll == 0 {
		c.Poll = 5 * time.Second
	}
	for n, d := range c.PollOn {
		if d <= 0 {
			return c, fmt.Errorf("cryptopay: Config.PollOn of %s must be above 0", n)
		}
	}
	if c.Grace < 0 {
		return c, errors.New("cryptopay: Config.Grace must not be negative")
	}
	if c.Grace == 0 {
		c.Grace = 30 * time.Second
	}
	if c.Retention.Stream == 0 {
		c.Retention.Stream = 30 * 24 * time.Hour
	}
	if c.SealEvery == 0 {
		c.SealEvery = time.Hour
	}
	seen := map[chain.Network]bool{}
	for _, client := range c.Chains {
		if seen[client.Network()] {
			return c, fmt.Errorf("cryptopay: Config.Chains has two clients of %s", client.Network())
		}
		seen[client.Network()] = true
		if _, err := c.Registry.Gas(client.Network()); err != nil {
			return c, fmt.Errorf("cryptopay: network %s: %w", client.Network(), err)
		}
	}
	for _, n := range slices.Concat(slices.Collect(maps.Keys(c.PollOn)), slices.Collect(maps.Keys(c.OutgoingOn))) {
		if info, err := c.Registry.Network(string(n)); err != nil {
			return c, fmt.Errorf("cryptopay: Config.PollOn or OutgoingOn names %q: %w", n, err)
		} else if info.Code != n {
			return c, fmt.Errorf("cryptopay: Config.PollOn or OutgoingOn names %q: its code is %q", n, info.Code)
		}
	}
	for _, n := range c.Elsewhere {
		if seen[n] {
			return c, fmt.Errorf("cryptopay: Config.Elsewhere names %s, which Config.Chains has a client of: leave it out of one", n)
		}
	}
	c.listed, c.Registry = c.Registry, c.Registry.Only(slices.Collect(maps.Keys(seen))...)
	for _, code := range c.Retire {
		if _, err := c.Registry.Currency(code); err == nil {
			return c, fmt.Errorf("cryptopay: Config.Retire names %s, which Config.Registry lists: leave it out of one", code)
		}
	}
	err := c.guardRates()
	if c.Policy.Rules == nil && c.Rates != noRates("") {
		c.Policy.Rules = policy.Default().Rules
	}
	return c, err
}

// oneKey makes Keys of Key, and checks them.
func (c *Config) oneKey() error {
	if len(c.Keys) == 0 {
		c.Keys = [][]byte{c.Key}
	} else if len(c.Key) > 0 {
		return errors.New("cryptopay: Config has Key and Keys: set one of them")
	}
	c.Key = nil
	seen := map[string]bool{}
	for _, k := range c.Keys {
		if len(k) != 32 {
			return fmt.Errorf("cryptopay: Config.Key must have 32 bytes, not %d: it seals webhook secrets", len(k))
		}
		if id := mandate.KeyID(k); seen[id] {
			return fmt.Errorf("cryptopay: Config.Keys has the key %s twice", id)
		}
		seen[mandate.KeyID(k)] = true
	}
	return nil
}

// guardRates puts the guard before the source of prices, for every room.
func (c *Config) guardRates() error {
	if c.Rates == nil || c.Rates == noRates("") {
		c.Rates = noRates("")
		return nil
	}
	var stable []string
	for _, code := range c.Registry.Codes() {
		if cur, err := c.Registry.Currency(code); err == nil && cur.Stable {
			stable = append(stable, cur.Token)
		}
	}
	guarded, err := rates.NewGuarded(rates.GuardConfig{
		Rates: c.Rates, Now: c.Clock.Now, MaxAge: c.RateAge, Stable: stable, Bounds: c.RateBounds,
	})
	if err != nil {
		return fmt.Errorf("cryptopay: Config.Rates: %w", err)
	}
	c.Rates = guarded
	return nil
}

// headAge is the maximum age of a network's newest block, 0 = no limit.
func (c *Config) headAge(client chain.Client) time.Duration {
	switch {
	case c.HeadAge != 0:
		return max(c.HeadAge, 0)
	case c.onDemand(client):
		return 0
	}
	info, err := c.Registry.Network(string(client.Network()))
	if err != nil {
		return 0
	}
	return info.HeadAge
}

// goneAfter is GoneAfter on one network, 0 = at once.
func (c *Config) goneAfter(client chain.Client) time.Duration {
	switch {
	case c.GoneAfter != 0:
		return max(c.GoneAfter, 0)
	case c.onDemand(client):
		return 0
	}
	return 10 * time.Minute
}

// pollOn is how often a network is asked for news.
func (c *Config) pollOn(n chain.Network) time.Duration {
	if d, own := c.PollOn[n]; own {
		return d
	}
	return c.Poll
}

// outgoingOn are the settings of one network's payouts. Where blocks may be long in coming, a
// transaction has more time before it is replaced.
func (c *Config) outgoingOn(client chain.Client) outgoing.Config {
	o := c.Outgoing
	if own, ok := c.OutgoingOn[client.Network()]; ok {
		o = own
		to, general := reflect.ValueOf(&o).Elem(), reflect.ValueOf(c.Outgoing)
		for i := range to.NumField() {
			if f := to.Field(i); f.Kind() == reflect.Func && f.IsNil() {
				f.Set(general.Field(i))
			}
		}
	}
	info, err := c.Registry.Network(string(client.Network()))
	if o.StuckAfter == 0 && err == nil && !c.onDemand(client) {
		o.StuckAfter = min(max(info.HeadAge/3, 15*time.Minute), time.Hour)
	}
	return o
}

// onDemand reports whether a chain has new blocks only when somebody asks for them.
func (c *Config) onDemand(client chain.Client) bool {
	d, ok := client.(chain.OnDemand)
	info, err := c.Registry.Network(string(client.Network()))
	return ok && d.OnDemand() || err == nil && info.HeadAge < 0
}

// oneReader lets one goroutine at a time read its source.
type oneReader struct {
	mu     sync.Mutex
	source io.Reader
}

func (r *oneReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.source.Read(p)
}

// newID makes UUIDs of version 7 (RFC 9562) of a clock's milliseconds and
// random bits, without the uuid package's own clock and randomness.
func newID(clock Clock, random io.Reader) func() string {
	return func() string {
		var id uuid.UUID
		if _, err := io.ReadFull(random, id[6:]); err != nil {
			panic("cryptopay: no randomness for ids: " + err.Error())
		}
		ms := uint64(clock.Now().UnixMilli())
		for i := range 6 {
			id[i] = byte(ms >> (40 - 8*i))
		}
		id[6] = id[6]&0x0f | 0x70
		id[8] = id[8]&0x3f | 0x80
		return id.String()
	}
}
