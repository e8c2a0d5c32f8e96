package cryptopay

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/refill"
	"github.com/cryptopay-go/cryptopay/internal/audit"
	"github.com/cryptopay-go/cryptopay/internal/secret"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/refund"
	"github.com/cryptopay-go/cryptopay/report"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/move"
	"github.com/cryptopay-go/cryptopay/storage/seal"
	"github.com/cryptopay-go/cryptopay/storage/stream"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/wallet/house"
	"github.com/cryptopay-go/cryptopay/wallet/reconcile"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
	"github.com/cryptopay-go/cryptopay/withdrawal/policy"
)

// App is one composition of the library. All of it may be used concurrently,
// and any number of processes may have an App over the same store.
type App struct {
	Payments    *payment.Service
	Withdrawals *withdrawal.Service
	// Policies holds payouts to rules that are data.
	Policies *policy.Service
	Refunds  *refund.Service
	Wallets  *wallet.Service
	Webhooks *webhook.Service
	// Reports reads the unified history, its export and statistics.
	Reports *report.Service
	// Events hands what happens to consumers; its dead letters are seen to by operators.
	Events    *stream.Service
	Treasury  *treasury.Treasury
	Addresses *incoming.Pool
	Operate   *Operate

	cfg        Config
	networks   []*network
	workers    []Worker
	skew       *skew
	identity   *identity
	opened     *atomic.Bool // Open has succeeded
	tx         storage.Tx   // where it is inside of a host's transaction
	on         *sync.Map    // abilities that were found on
	scales     *sync.Map    // of currencies that are no longer listed, by code
	record     *record
	figures    *figuring
	houseMoney *house.Service
	refills    *refill.Service
	saidShort  *sync.Map // when, by tenant and currency: see saysShort

	mandateKeys mandate.Keys
	audit       *audit.Chain // of all that people do
}

// network is one chain's two pipelines.
type network struct {
	name   chain.Network
	client chain.Client
	in     *incoming.Network
	out    *outgoing.Sender
	books  *reconcile.Service

	started atomic.Bool // its cursor is somewhere
}

// Tables lists everything that an App stores.
func Tables() []*storage.Table {
	return slices.Concat(storage.Tables(), seal.Tables(), incoming.Tables(), outgoing.Tables(), payment.Tables(),
		withdrawal.Tables(), policy.Tables(), refund.Tables(), wallet.Tables(), treasury.Tables(), house.Tables(), reconcile.Tables(), webhook.Tables(), []*storage.Table{refill.Proposals.Table, Listings.Table, Minimums.Table, Fingerprints.Table, Abilities.Table}, stream.Tables())
}

// New composes an App. It does no I/O and starts nothing: call Open before
// anything else, and Run or Step to work.
func New(cfg Config) (*App, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	a := &App{
		cfg: cfg, skew: newSkew(&cfg), opened: new(atomic.Bool), on: &sync.Map{}, scales: &sync.Map{}, identity: &identity{}, mandateKeys: MandateKeys(cfg.Keys...),
		record: newRecord(), figures: newFiguring(), audit: auditChain(cfg.Keys),
	}
	for _, build := range []func() error{a.shared, a.chains, a.domains, a.consumers} {
		if err := build(); err != nil {
			return nil, fmt.Errorf("cryptopay: %w", err)
		}
	}
	a.Operate = &Operate{a}
	a.workers = a.work()
	if err := prepared(a.workers); err != nil {
		return nil, err
	}
	for i := range a.workers {
		a.workers[i].Step = a.noted(a.workers[i].Name, a.workers[i].Step)
	}
	return a, nil
}

// Open is New and App.Open: an App that is ready to be used. Run or Step does its work.
func Open(ctx context.Context, cfg Config, more ...*storage.Table) (*App, error) {
	a, err := New(cfg)
	if err == nil {
		err = a.Open(ctx, more...)
	}
	if err != nil {
		return nil, err
	}
	return a, nil
}

// Open makes the store ready. Call it once, before anything else. A store that a
// move has filled by half is move.ErrUnfinished: what is not there yet would be
// done again. A currency that is listed otherwise than when the store first saw
// it is a *ListingError, one that is open in the store and not served any more an
// *OpenBusinessError, and other Keys or another seed than the store was made with a *KeyError.
// One address is derived of each network, so Config.Addresses must be able to.
func (a *App) Open(ctx context.Context, more ...*storage.Table) error {
	if err := a.cfg.Store.Open(ctx, append(Tables(), more...)...); err != nil {
		return err
	}
	if err := move.Unfinished(ctx, a.cfg.Store); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{a.sameKeys, a.served, a.list, a.inheritHalts, a.sayMade, a.sayAbilities, a.sayUnsealed, a.Events.Register} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	a.opened.Store(true)
	return nil
}

// Config is what the App is made of, with every default filled in, the guard before
// Rates, and without the Keys: for what is built on top of an App, such as httpapi.
// With Keys it makes another App: rooms and hooks are as the host gave them.
func (a *App) Config() Config {
	c := a.cfg
	c.Key, c.Keys = nil, nil
	return c
}

// shared builds what chains and domains both need.
func (a *App) shared() (err error) {
	c := a.cfg
	a.Addresses, err = incoming.NewPool(a.pool())
	if err != nil {
		return err
	}
	box, err := secret.NewBox(c.Keys[0], c.Random, c.Keys[1:]...)
	if err != nil {
		return err
	}
	if c.Notifier == nil {
		c.Notifier = webhook.NewHTTP(webhook.HTTPOptions{Guard: c.Callbacks})
	}
	a.Webhooks, err = webhook.New(webhook.Config{
		Store: c.Store, Notifier: c.Notifier, Guard: c.Callbacks, Box: box,
		Now: c.Clock.Now, NewID: c.NewID, Random: c.Random, Log: c.Log, MaxUndelivered: c.MaxUndelivered,
		Audit: a.Audit, CheckTenant: func(ctx context.Context, tenant string) error {
			_, err := a.Wallets.Tenant(ctx, tenant)
			return err
		},
	})
	return err
}

// pool is what addresses are taken from.
func (a *App) pool() incoming.PoolConfig {
	p := incoming.PoolConfig{
		Store: a.cfg.Store, Source: a.cfg.Addresses, Now: a.cfg.Clock.Now, NewID: a.cfg.NewID, Log: a.cfg.Log,
		Shared: map[chain.Network]chain.Multiplexer{}, Single: map[chain.Network]bool{},
	}
	for _, client := range a.cfg.Chains {
		p.Networks = append(p.Networks, client.Network())
		if m, able := client.(chain.Multiplexer); able {
			p.Shared[client.Network()] = m // its accounts are counted, not the addresses
		} else if c, able := client.(interface{ FewAddresses() int }); able && c.FewAddresses() > 0 {
			p.Single[client.Network()] = true
		}
	}
	return p
}

// chains builds both pipelines of every network, and the treasury between them.
func (a *App) chains() error {
	c := a.cfg
	t := c.Treasury
	t.Clients, t.Senders = map[chain.Network]chain.Client{}, map[chain.Network]treasury.Sender{}
	for _, client := range c.Chains {
		n := &network{name: client.Network(), client: client}
		var err error
		o := c.outgoingOn(client)
		o.Store, o.Client, o.Registry, o.Signer, o.Now, o.Log = c.Store, client, c.Registry, c.Signer, c.Clock.Now, c.Log
		o.Halted, o.Retired, o.Able = eitherHalts(a.haltedIntent, o.Halted), c.Retire, a.able
		o.GasFor = func(ctx context.Context, in chain.Intent) (string, error) { return a.Treasury.GasFor(ctx, in) }
		o.Trail = func(ctx context.Context) ([]chain.Block, error) { return n.in.Trail(ctx) }
		o.Handle = both(func(ctx context.Context, o outgoing.Outcome) error { return a.outcome(ctx, n, o) }, o.Handle)
		o.Raise = lowerBound(a.raise, o.Raise)
		o.Less = func(ctx context.Context, in chain.Intent) ([]storage.Row, []storage.Event, error) {
			return n.in.HaltAsset(ctx, in.Currency, string(outgoing.ReasonDeliveredLess))
		}
		o.Costly = func(ctx context.Context, in chain.Intent) (bool, error) { return a.Treasury.Costly(ctx, in) }
		o.Uncovered = func(ctx context.Context, in chain.Intent) (bool, error) { return a.Treasury.Uncovered(ctx, in) }
		o.Ordered, o.Ending, o.Back, o.Sealed, o.Told = a.ordered, a.ending, a.sealedBack, a.sealedEndings, a.toldOf
		o.Foreign = func(ctx context.Context, tenant string, coins ...chain.Coin) ([]string, error) {
			return a.foreign(ctx, n.name, tenant, coins)
		}
		o.Demand = func(ctx context.Context, tenant string) (ledger.Amount, error) { return a.paidOut(ctx, tenant, n.name) }
		o.MayCost = func(ctx context.Context, in chain.Intent) (ledger.Amount, error) { return a.Treasury.MayCost(ctx, in) }
		o.Source = anySource(func(ctx context.Context, outpoint string) ([]string, error) {
			return a.Treasury.Source(ctx, n.name, outpoint)
		}, o.Source)
		o.ChangeAddress = func(ctx context.Context, tenant string) (chain.Derived, error) {
			return a.Addresses.Change(ctx, n.name, tenant)
		}
		if o.Payer == nil {
			o.Payer = func(ctx context.Context, in chain.Intent) (chain.Derived, error) {
				return a.Addresses.Hot(ctx, in.Network, in.Tenant)
			}
		}
		if n.out, err = outgoing.New(o); err != nil {
			return err
		}
		n.in, err = incoming.New(incoming.Config{
			Store: c.Store, Client: client, Registry: c.Registry, Now: c.Clock.Now, Log: c.Log,
			HeadAge: c.headAge(client), GoneAfter: c.goneAfter(client), Internal: a.internal(n), Sent: n.out.Sent, Handle: a.route,
			Known: func(ctx context.Context) ([]string, error) { return a.listed(ctx, n.name) },
			Price: a.depositPrice,
			Open:  func(ctx context.Context) []chain.Address { return a.waiting(ctx, n.name) },
		})
		if err != nil {
			return err
		}
		if n.books, err = reconcile.New(a.reconciling(n)); err != nil {
			return err
		}
		t.Clients[n.name], t.Senders[n.name] = client, n.out
		a.networks = append(a.networks, n)
	}
	t.Store, t.Registry, t.Addresses, t.Now, t.Log, t.Audit = c.Store, c.Registry, a.Addresses, c.Clock.Now, c.Log, a.audit
	t.Halted = func(ctx context.Context, in chain.Intent) (string, error) {
		n, err := a.network(in.Network)
		if err != nil {
			return "", err
		}
		return n.out.Stopped(ctx, in)
	}
	t.OnWithdrawal, t.Rates = both(a.withdrawn, t.OnWithdrawal), c.ratesFor("sweeps and payouts")
	t.Notify = counted(a, kindOfSweep, t.Notify)
	t.Cold = a.coldWallets(t.Cold)
	t.Patience = a.patience(t.Patience)
	if err := a.newRefills(t.Clients); err != nil {
		return err
	}
	t.Proposed, t.Sent, t.LostRefill = a.refills.Of, a.refills.Sent, a.refills.Lost
	var err error
	a.Treasury, err = treasury.New(t)
	return err
}

// domains builds what merchants see.
func (a *App) domains() (err error) {
	c := a.cfg
	a.Reports, err = report.New(report.Config{Store: c.Store, Registry: c.Registry, Now: c.Clock.Now, Scale: a.Scale, Price: fees{a}.price})
	if err != nil {
		return err
	}
	a.Wallets, err = wallet.New(wallet.Config{
		Store: c.Store, Registry: c.Registry, Now: c.Clock.Now, NewID: c.NewID, Log: c.Log, CheckURL: a.callback,
		Pending: a.pendingPayments, Marks: a.marks, Activity: a.Reports.Shown, MaxWallets: c.MaxWallets,
	})
	if err != nil {
		return err
	}
	p := c.Payments
	p.Store, p.Registry, p.Rates, p.RateAge, p.Addresses = c.Store, c.Registry, c.ratesFor("payments"), c.RateAge, addresses{a}
	p.Tenants, p.Wallets, p.Head = tenants{a}, wallets{a}, a.readUpTo
	p.Undecided, p.Retired = a.undecided, c.Retire
	p.Notify = counted(a, kindOfAlert, p.Notify)
	p.Minimums = greaterMinimums(a.minimums, p.Minimums)
	if p.ForwardCost == nil {
		p.ForwardCost = a.forwardCost
	}
	p.Now, p.NewID, p.Log, p.CheckURL = c.Clock.Now, c.NewID, c.Log, bothURL(a.callback, p.CheckURL)
	p.Wanted = a.wanted
	p.Permanent = func(ctx context.Context) (bool, error) { return a.able(ctx, abilityPermanent) }
	p.CheckAddresses = func(ctx context.Context, tenant string, list []payment.Payment) (map[string]error, error) {
		return a.alteredPayments(ctx, tenant, list, a.Addresses.Ours)
	}
	if a.Payments, err = payment.New(p); err != nil {
		return err
	}
	w := c.Withdrawals
	w.Store, w.Registry, w.Rates = c.Store, c.Registry, c.ratesFor("withdrawals")
	w.Parse, w.Fees, w.Tenants, w.Wallets, w.Payouts = a.parse, fees{a}, a.Wallets, a.Wallets, payouts{a}
	if w.PriceCurrencies == nil {
		w.PriceCurrencies = c.Payments.PriceCurrencies
	}
	w.Own, w.Untag, w.Halted = eitherOwns(a.own, w.Own), anyTag(a.untag, w.Untag), eitherStops(a.haltedAsset, w.Halted)
	w.MaxCost, w.Deliverable = lowerCost(fees{a}.maxCost, w.MaxCost), bothDeliver(a.deliverable, w.Deliverable)
	w.Now, w.NewID, w.Log, w.CheckURL = c.Clock.Now, c.NewID, c.Log, bothURL(a.callback, w.CheckURL)
	w.Retired, w.Mandates = c.Retire, mandates{a, true}
	a.Policies, err = policy.New(policy.Config{
		Store: c.Store, Registry: c.Registry, Rates: w.Rates, Parse: a.parse, ParseVault: a.parseVault, Mandates: mandates{a, false}, Default: c.Policy, Now: c.Clock.Now, NewID: c.NewID,
		ColdAddress: a.coldAddress, Described: a.described,
	})
	if err != nil {
		return err
	}
	w.Rules, w.Audit = a.Policies, a.Audit
	w.Notify = counted(a, kindOfNotice, w.Notify)
	w.Spare = func(ctx context.Context, tenant string, asset ledger.Asset) (ledger.Amount, storage.Row, error) {
		return treasury.Spare(ctx, a.joined(), tenant, asset)
	}
	w.Missing = func(ctx context.Context, w withdrawal.Withdrawal) (ledger.Amount, error) {
		n, err := a.network(chain.Network(w.Network))
		if err != nil {
			return 0, err
		}
		return n.out.Shortfall(ctx, w.ID)
	}
	w.Follow = func(ctx context.Context, w withdrawal.Withdrawal, c *storage.Change) error {
		return a.Refunds.Follow(ctx, w, c)
	}
	if a.Withdrawals, err = withdrawal.New(w); err != nil {
		return err
	}
	a.Refunds, err = refund.New(refund.Config{
		Store: c.Store, Registry: c.Registry, Payments: a.Payments, Withdrawals: a.Withdrawals, Wallets: wallets{a},
		Seals: mandates{a, false}, Tokens: a.claimTokens, Now: c.Clock.Now, NewID: c.NewID, Log: c.Log, CheckURL: a.callback, Wanted: a.wanted,
		Able: func(ctx context.Context) (bool, error) { return a.able(ctx, abilityRefunds) },
	})
	if err != nil {
		return err
	}
	return a.newHouse()
}

// network finds a chain of this App by its code.
func (a *App) network(code chain.Network) (*network, error) {
	for _, n := range a.networks {
		if n.name == code {
			return n, nil
		}
	}
	return nil, fmt.Errorf("%w: no client for network %s is configured", chain.ErrCurrency, code)
}
