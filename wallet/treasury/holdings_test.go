package treasury_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
)

// node is a chain's client whose balances may be unreadable.
type node struct {
	chain.Client
	fails map[string]error // by currency
}

func (n node) Balance(ctx context.Context, currency string, a chain.Address) (decimal.Decimal, error) {
	if err := n.fails[currency]; err != nil {
		return decimal.Zero, err
	}
	return n.Client.(chain.Balancer).Balance(ctx, currency, a)
}

// vault is a custodian.
type vault struct {
	accounts []treasury.CustodyAccount
	held     map[string]map[string]decimal.Decimal
	silent   error
}

func (v *vault) Accounts(_ context.Context, tenant string) ([]treasury.CustodyAccount, error) {
	if tenant == "other" {
		return nil, nil
	}
	return v.accounts, v.silent
}

func (v *vault) Balances(_ context.Context, _, account string) (map[string]decimal.Decimal, error) {
	if v.held[account] == nil {
		return nil, errors.New("https://api.example/?key=SECRET: 500")
	}
	return v.held[account], nil
}

// viewer is a treasury beside the App's own, over the same store.
func (w *world) viewer(n node, refine func(*treasury.Config)) *treasury.Treasury {
	w.t.Helper()
	cfg := treasury.Config{
		Store: w.store, Registry: chain.MainnetRegistry(), Clients: map[chain.Network]chain.Client{w.n: n},
		Addresses: w.app.Addresses, Now: w.clock.Now, Rates: w.rates,
		OnWithdrawal: func(context.Context, outgoing.Outcome) error { return nil },
	}
	if refine != nil {
		refine(&cfg)
	}
	t, err := treasury.New(cfg)
	require.NoError(w.t, err)
	return t
}

func (w *world) holdings(t *treasury.Treasury) treasury.Holdings {
	w.t.Helper()
	h, err := t.Holdings(w.t.Context(), w.tenant)
	require.NoError(w.t, err)
	return h
}

// figures are a currency's hot, cold and custody, "" where it is not listed.
func figures(h treasury.Holdings, currency string) [3]string {
	for _, t := range h.Totals {
		if t.Currency.Code == currency {
			return [3]string{t.Hot.String(), t.Cold.String(), t.Custody.String()}
		}
	}
	return [3]string{}
}

func TestHoldingsFollowADepositToTheHotAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	v := w.viewer(node{Client: w.chain.Client()}, nil)
	require.Equal(t, treasury.Holdings{}, w.holdings(v), "nothing was read and nothing came")
	p := w.pay("USDTERC20", "100")
	require.Equal(t, [3]string{}, figures(w.holdings(v), "USDTERC20"), "what is in no block is not there")
	w.mine(2)
	require.Equal(t, [3]string{"0", "0", "100"}, figures(w.holdings(v), "USDTERC20"))
	w.mine(30) // there is no gas: it cannot be forwarded
	require.Equal(t, [3]string{"0", "0", "100"}, figures(w.holdings(v), "USDTERC20"))
	w.fund("1")
	w.mine(60)
	require.Equal(t, "completed", string(w.payment(p.ID).Status))
	require.Equal(t, "100", w.chain.Balance(w.hot, "USDTERC20").String())

	s, err := v.Sync(t.Context(), w.tenant)
	require.NoError(t, err)
	require.Equal(t, treasury.Synced{WalletsUpdated: 1, At: w.clock.Now()}, s)
	h := w.holdings(v)
	require.Equal(t, [3]string{"100", "0", "0"}, figures(h, "USDTERC20"))
	require.Equal(t, [3]string{w.chain.Balance(w.hot, "ETH").String(), "0", "0"}, figures(h, "ETH"), "the gas that the sweep was sent is no deposit")
	require.Equal(t, w.clock.Now(), h.Updated.UTC())
	require.Len(t, h.Wallets, len(chain.MainnetRegistry().On("ETH")))
	for _, x := range h.Wallets {
		require.Equal(t, w.hot, x.Address)
		require.Equal(t, "ETH:"+string(w.hot), x.ID)
		require.Equal(t, "ETH hot wallet", x.Name)
		require.False(t, x.Cold)
	}
	none, err := v.Holdings(t.Context(), "other")
	require.NoError(t, err)
	require.Equal(t, treasury.Holdings{}, none, "another tenant sees nothing of it")
	before := w.chain.Balance(w.hot, "ETH")
	_, err = v.Sync(t.Context(), "other")
	require.NoError(t, err)
	count, err := w.store.Count(t.Context(), storage.Query{
		Table: incoming.Addresses.Table, Partition: "network/ETH", Where: []storage.Cond{{Column: "tenant", Op: storage.Eq, Value: "other"}},
	})
	require.NoError(t, err)
	require.Zero(t, count, "looking makes no address")
	require.Equal(t, before, w.chain.Balance(w.hot, "ETH"))
}

// A deposit that was deferred goes with a later sweep of its address, which
// takes all.
func TestHoldingsOfDeferredDeposits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	v := w.viewer(node{Client: w.chain.Client()}, nil)
	p := w.pay("ETH", "100")
	w.mine(40)
	require.Equal(t, "completed", string(w.payment(p.ID).Status))
	require.Empty(t, figures(w.holdings(v), "ETH")[2])
	w.send(p, "ETH", dec("0.000001")) // not worth its fee
	w.mine(40)
	require.Equal(t, "0.000001", figures(w.holdings(v), "ETH")[2])
	w.send(p, "ETH", dec("0.05"))
	w.mine(40)
	require.Equal(t, "0", w.chain.Balance(chain.Address(p.Address), "ETH").String())
	require.Empty(t, figures(w.holdings(v), "ETH")[2])
}

func TestHoldingsOfOutputs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "BTC")
	v := w.viewer(node{Client: w.chain.Client()}, nil)
	p := w.pay("BTC", "600")
	w.mine(1)
	require.Equal(t, [3]string{"0", "0", "0.01"}, figures(w.holdings(v), "BTC"))
	w.mine(10) // an output is spent where it is
	require.Equal(t, "completed", string(w.payment(p.ID).Status))
	require.Equal(t, [3]string{"0", "0", "0.01"}, figures(w.holdings(v), "BTC"))
	w.fund("1")
	_, err := v.Sync(t.Context(), w.tenant)
	require.NoError(t, err)
	require.Equal(t, [3]string{"1", "0", "0.01"}, figures(w.holdings(v), "BTC"), "a top-up is read from the chain alone")
}

func TestSyncReportsWhatItCannotRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("2")
	fails := map[string]error{}
	cold := w.chain.Customer("cold")
	_, err := w.chain.Fund(cold, "USDTERC20", dec("12.5"))
	require.NoError(t, err)
	w.mine(1)
	wallets := []treasury.ColdWallet{{Name: "Safe", Network: "ETH", Address: cold}}
	var unlisted error
	v := w.viewer(node{w.chain.Client(), fails}, func(c *treasury.Config) {
		c.Cold = func(_ context.Context, tenant string) ([]treasury.ColdWallet, error) {
			require.Equal(t, w.tenant, tenant)
			return wallets, unlisted
		}
	})
	s, err := v.Sync(t.Context(), w.tenant)
	require.NoError(t, err)
	require.Equal(t, 2, s.WalletsUpdated)
	require.Equal(t, [3]string{"0", "12.5", "0"}, figures(w.holdings(v), "USDTERC20"))
	first := w.clock.Now()

	// One currency cannot be read: the others are, and it stays as it was.
	fails["USDTERC20"] = errors.Join(chain.ErrNode, errors.New("https://node.example/v3/SECRET"))
	_, err = w.chain.Fund(cold, "USDTERC20", dec("1"))
	require.NoError(t, err)
	_, err = w.chain.Fund(w.hot, "ETH", dec("1"))
	require.NoError(t, err)
	w.mine(1)
	s, err = v.Sync(t.Context(), w.tenant)
	require.NoError(t, err)
	require.Zero(t, s.WalletsUpdated)
	require.Equal(t, []treasury.WalletError{
		{Wallet: "ETH:" + string(w.hot), Network: "ETH", Reason: "USDTERC20: the node could not be read"},
		{Wallet: "ETH:" + string(cold), Network: "ETH", Reason: "USDTERC20: the node could not be read"},
	}, s.WalletErrors)
	h := w.holdings(v)
	require.Equal(t, [3]string{"0", "12.5", "0"}, figures(h, "USDTERC20"))
	require.Equal(t, "3", figures(h, "ETH")[0])
	for _, x := range h.Wallets {
		want := w.clock.Now()
		if x.Currency.Code == "USDTERC20" {
			want = first
		}
		require.Equal(t, want, x.ReadAt.UTC(), x.Currency.Code)
	}

	// The list itself, an address that is none, a network without a client.
	delete(fails, "USDTERC20")
	unlisted = errors.New("no connection")
	s, err = v.Sync(t.Context(), w.tenant)
	require.NoError(t, err)
	require.Equal(t, []treasury.WalletError{{Reason: "the list of cold wallets could not be had"}}, s.WalletErrors)
	require.Equal(t, [3]string{"0", "12.5", "0"}, figures(w.holdings(v), "USDTERC20"))
	unlisted = nil
	wallets = []treasury.ColdWallet{{Network: "ETH", Address: "nonsense"}, {Network: "BTC", Address: "x"}, {Network: "ETH", Address: w.hot}}
	s, err = v.Sync(t.Context(), w.tenant)
	require.NoError(t, err)
	require.Equal(t, 1, s.WalletsUpdated, "the hot address, once")
	require.Len(t, s.WalletErrors, 2)
	require.Contains(t, s.WalletErrors[0].Reason, "the address is invalid")
	require.Equal(t, chain.Network("BTC"), s.WalletErrors[1].Network)
	require.Equal(t, [3]string{"0", "0", "0"}, figures(w.holdings(v), "USDTERC20"), "a wallet that is no longer configured is forgotten")
	require.Equal(t, "3", figures(w.holdings(v), "ETH")[0])
}

// The client of a network is taken out of the configuration: what was read of its wallets
// stays as it was last read.
func TestSyncKeepsWalletsOfANetworkWithoutAClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	cold := w.chain.Customer("cold")
	_, err := w.chain.Fund(cold, "USDTERC20", dec("12.5"))
	require.NoError(t, err)
	w.mine(1)
	configured := func(c *treasury.Config) {
		c.Cold = func(context.Context, string) ([]treasury.ColdWallet, error) {
			return []treasury.ColdWallet{{Name: "Safe", Network: "ETH", Address: cold}}, nil
		}
	}
	_, err = w.viewer(node{Client: w.chain.Client()}, configured).Sync(t.Context(), w.tenant)
	require.NoError(t, err)
	without := w.viewer(node{Client: w.chain.Client()}, func(c *treasury.Config) {
		configured(c)
		c.Clients = nil
	})
	s, err := without.Sync(t.Context(), w.tenant)
	require.NoError(t, err)
	require.Len(t, s.WalletErrors, 1)
	require.Equal(t, [3]string{"0", "12.5", "0"}, figures(w.holdings(without), "USDTERC20"))
}

// TestL02_SyncThatCannotReadItsAddresses: whichever question of Sync to the store fails, it
// says so, and what was read before stays.
func TestL02_SyncThatCannotReadItsAddresses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("2")
	f := &failing.Store{Store: w.store}
	v := w.viewer(node{Client: w.chain.Client()}, func(c *treasury.Config) { c.Store = f })
	_, err := v.Sync(t.Context(), w.tenant)
	require.NoError(t, err)
	asked := f.Calls
	require.Positive(t, asked)
	for n := 1; n <= asked; n++ {
		f.Calls, f.FailAt = 0, n
		_, err := v.Sync(t.Context(), w.tenant)
		require.ErrorIs(t, err, failing.ErrGone, "question %d", n)
		f.FailAt = 0
		require.Equal(t, "2", figures(w.holdings(v), "ETH")[0], "question %d", n)
	}
}

func TestSyncStoresWhatWasReadWhenTheCallerLeaves(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("2")
	ctx, cancel := context.WithCancel(t.Context())
	v := w.viewer(node{Client: w.chain.Client()}, func(c *treasury.Config) {
		c.Cold = func(context.Context, string) ([]treasury.ColdWallet, error) {
			cancel()
			return []treasury.ColdWallet{{Network: "ETH", Address: w.chain.Customer("cold")}}, nil
		}
	})
	s, err := v.Sync(ctx, w.tenant)
	require.NoError(t, err)
	require.Equal(t, 1, s.WalletsUpdated)
	require.Len(t, s.WalletErrors, 1)
	require.Contains(t, s.WalletErrors[0].Reason, "was not read in time")
	require.Equal(t, "2", figures(w.holdings(v), "ETH")[0])
}

func TestSyncReadsTheCustodian(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	bank := &vault{
		accounts: []treasury.CustodyAccount{{ID: "a", Name: "Main", ExternalID: "x-1", Active: true}, {ID: "b", Name: "Old"}, {ID: "c", Active: true}},
		held:     map[string]map[string]decimal.Decimal{"a": {"USDTERC20": dec("7.25"), "BTC": dec("1"), "DAIERC20": dec("0")}, "b": {"BTC": dec("100")}},
	}
	v := w.viewer(node{Client: w.chain.Client()}, func(c *treasury.Config) { c.Custodian = bank })
	s, err := v.Sync(t.Context(), w.tenant)
	require.NoError(t, err)
	require.Equal(t, 1, s.AccountsUpdated)
	require.Equal(t, []treasury.AccountError{{Account: "c", Reason: "the custodian did not tell its balances"}}, s.AccountErrors)
	h := w.holdings(v)
	require.Equal(t, [3]string{"0", "0", "7.25"}, figures(h, "USDTERC20"))
	require.Equal(t, [3]string{"0", "0", "1"}, figures(h, "BTC"), "an account that is not active is not counted")
	require.Equal(t, []treasury.CustodyAccount{bank.accounts[0], bank.accounts[1], bank.accounts[2]},
		[]treasury.CustodyAccount{h.Accounts[0].CustodyAccount, h.Accounts[1].CustodyAccount, h.Accounts[2].CustodyAccount})
	require.Equal(t, w.clock.Now(), h.Accounts[0].ReadAt.UTC())
	require.True(t, h.Accounts[1].ReadAt.IsZero())
	require.True(t, h.Accounts[2].ReadAt.IsZero())
	first := w.clock.Now()

	// It falls silent, as a whole or for one account: what was read stays.
	w.clock.Advance(time.Hour)
	bank.silent = errors.New("down")
	s, err = v.Sync(t.Context(), w.tenant)
	require.NoError(t, err)
	require.Equal(t, []treasury.AccountError{{Reason: "the custodian did not list its accounts"}}, s.AccountErrors)
	require.Equal(t, "7.25", figures(w.holdings(v), "USDTERC20")[2])
	bank.silent = nil
	delete(bank.held, "a")
	_, err = v.Sync(t.Context(), w.tenant)
	require.NoError(t, err)
	h = w.holdings(v)
	require.Equal(t, "7.25", figures(h, "USDTERC20")[2])
	require.Equal(t, first, h.Accounts[0].ReadAt.UTC())

	// It tells what nobody can count.
	bank.accounts = []treasury.CustodyAccount{{ID: "a", Active: true}, {ID: ""}}
	bank.held["a"] = map[string]decimal.Decimal{"USDTERC20": dec("1"), "DAIERC20": dec("-1"), "GOLD": dec("5")}
	s, err = v.Sync(t.Context(), w.tenant)
	require.NoError(t, err)
	require.Zero(t, s.AccountsUpdated)
	require.Equal(t, []treasury.AccountError{
		{Account: "a", Reason: "not counted, as they are unknown or below zero: DAIERC20, GOLD"},
		{Reason: "an account has no usable id or name"},
	}, s.AccountErrors)
	h = w.holdings(v)
	require.Equal(t, [3]string{"0", "0", "1"}, figures(h, "USDTERC20"))
	require.Equal(t, [3]string{}, figures(h, "BTC"), "the account no longer has it")
	require.Len(t, h.Accounts, 1)
}

func TestSyncOfManyEndsWithTheirCaller(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("2")
	ctx, cancel := context.WithCancel(t.Context())
	v := w.viewer(node{Client: w.chain.Client()}, func(c *treasury.Config) {
		c.Cold = func(context.Context, string) ([]treasury.ColdWallet, error) {
			cancel()
			return nil, nil
		}
	})
	s, err := v.Sync(ctx, w.tenant, "b", "c")
	require.NoError(t, err)
	require.Equal(t, 1, s.WalletsUpdated)
	require.Equal(t, []treasury.WalletError{{Reason: "there was no time for 2 of 3 tenants"}}, s.WalletErrors)
	require.Equal(t, "2", figures(w.holdings(v), "ETH")[0])
	s, err = v.Sync(t.Context(), w.tenant, "b")
	require.NoError(t, err)
	require.Equal(t, treasury.Synced{WalletsUpdated: 1, At: w.clock.Now()}, s)
}

// Two that read at the same instant: the second's reading counts, and none fails.
func TestSyncTwiceAtOneInstant(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("2")
	v := w.viewer(node{Client: w.chain.Client()}, nil)
	for _, want := range []string{"2", "3"} {
		_, err := v.Sync(t.Context(), w.tenant)
		require.NoError(t, err)
		require.Equal(t, want, figures(w.holdings(v), "ETH")[0])
		_, err = w.chain.Fund(w.hot, "ETH", dec("1"))
		require.NoError(t, err)
		w.chain.Mine(1)
	}
}
