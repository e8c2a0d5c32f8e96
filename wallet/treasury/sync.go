package treasury

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/storage"
)

// ColdWallet is an address of the operator's whose key this App does not have:
// it is looked at, never spent from.
type ColdWallet struct {
	Name    string
	Network chain.Network
	Address chain.Address
}

// CustodyAccount is an account with a Custodian. One that is not active is
// listed, and neither read nor counted.
type CustodyAccount struct {
	ID         string // the custodian's own, at most 120 bytes
	Name       string
	ExternalID string
	Active     bool
}

// Custodian keeps coins for the operator outside of this App. Its methods may
// be called concurrently and return when ctx ends.
type Custodian interface {
	// Accounts lists a tenant's accounts.
	Accounts(ctx context.Context, tenant string) ([]CustodyAccount, error)
	// Balances reads what an account holds now: whole coins by currency code.
	Balances(ctx context.Context, tenant, account string) (map[string]decimal.Decimal, error)
}

// Synced is what one Sync came to.
type Synced struct {
	WalletsUpdated  int // addresses that were read in every currency
	WalletErrors    []WalletError
	AccountsUpdated int
	AccountErrors   []AccountError
	At              time.Time
}

// WalletError says what of a wallet could not be read. Wallet and Network are ""
// where the list of cold wallets could not be had.
type WalletError struct {
	Wallet  string
	Network chain.Network
	Reason  string // for people; the cause is in the log
}

// AccountError says why an account was not read. Account is "" where the
// Custodian did not list them.
type AccountError struct {
	Account string
	Reason  string
}

// add joins two reports.
func (s *Synced) add(o Synced) {
	s.WalletsUpdated += o.WalletsUpdated
	s.WalletErrors = append(s.WalletErrors, o.WalletErrors...)
	s.AccountsUpdated += o.AccountsUpdated
	s.AccountErrors = append(s.AccountErrors, o.AccountErrors...)
}

// Sync reads the hot, cold and custody balances of tenants, one after the other,
// and stores them for Holdings. What cannot be read is in the report, and stays
// as it was last read; the error is the store's. Where ctx ends, what was read
// by then is stored and the report says so.
func (t *Treasury) Sync(ctx context.Context, tenants ...string) (Synced, error) {
	all := Synced{At: t.cfg.Now()}
	for i, tenant := range tenants {
		if i > 0 && ctx.Err() != nil {
			all.WalletErrors = append(all.WalletErrors, WalletError{Reason: fmt.Sprintf("there was no time for %d of %d tenants", len(tenants)-i, len(tenants))})
			break
		}
		one, err := t.syncOne(ctx, tenant, all.At)
		all.add(one)
		if err != nil && (i == 0 || ctx.Err() == nil) {
			return all, err
		}
	}
	return all, nil
}

func (t *Treasury) syncOne(ctx context.Context, tenant string, now time.Time) (Synced, error) {
	r := &reading{t: t, tenant: tenant, old: map[string]storage.Row{}, fresh: map[string]holdingRow{}, kept: map[string]bool{}, seen: map[string]bool{}}
	r.out.At = now
	err := t.each(ctx, storage.Query{Table: holdingRows.Table, Partition: storage.Tenant(tenant)}, func(row storage.Row) error {
		r.old[row.ID] = row
		return nil
	})
	if err != nil {
		return Synced{}, err
	}
	for _, n := range slices.Sorted(maps.Keys(t.cfg.Clients)) {
		hot, err := t.hotAddresses(ctx, n, []string{tenant})
		if err != nil {
			return Synced{}, err
		}
		for _, a := range slices.Sorted(maps.Keys(hot)) {
			name := string(n) + " hot wallet"
			switch hot[a].Use {
			case incoming.UseChange:
				name = string(n) + " change"
			case incoming.UseRetired:
				name = string(n) + " replaced hot wallet"
			}
			r.wallet(ctx, placeHot, ColdWallet{Name: name, Network: n, Address: chain.Address(a)})
		}
	}
	r.cold(ctx)
	r.custodian(ctx)
	return r.out, r.store(context.WithoutCancel(ctx))
}

// reading is one Sync under way.
type reading struct {
	t      *Treasury
	tenant string
	old    map[string]storage.Row
	fresh  map[string]holdingRow
	kept   map[string]bool // ids that were not read and stay
	seen   map[string]bool // wallets
	out    Synced
}

// cold reads the wallets that the host configured.
func (r *reading) cold(ctx context.Context) {
	if r.t.cfg.Cold == nil {
		return
	}
	list, err := r.t.cfg.Cold(ctx, r.tenant)
	if err != nil {
		r.keep(placeCold, "", "")
		r.out.WalletErrors = append(r.out.WalletErrors, WalletError{Reason: "the list of cold wallets could not be had"})
		r.t.cfg.Log.WarnContext(ctx, "cold_wallets_not_listed", "tenant", r.tenant, "error", err)
		return
	}
	for _, w := range list {
		info, err := r.t.cfg.Registry.Network(string(w.Network))
		client := r.t.cfg.Clients[info.Code]
		if err != nil || client == nil {
			r.failed(ctx, placeCold, w, nil, fmt.Errorf("%w: no client of it is configured", chain.ErrCurrency))
			continue
		}
		w.Network = info.Code
		address, err := client.ParseAddress(string(w.Address))
		if err != nil {
			r.failed(ctx, placeCold, w, nil, err)
			continue
		}
		w.Address = address
		r.wallet(ctx, placeCold, w)
	}
}

// wallet reads one address in every currency of its network. One that stands in
// two lists counts once.
func (r *reading) wallet(ctx context.Context, p place, w ColdWallet) {
	var failed []string
	var why error
	id := walletID(string(w.Network), string(w.Address))
	if r.seen[id] {
		return
	}
	r.seen[id] = true
	for _, c := range r.t.cfg.Registry.On(w.Network) {
		amount, err := r.t.Held(ctx, w.Network, c.Code, w.Address)
		if err == nil && amount.Sign() < 0 {
			err = fmt.Errorf("%w: a balance below zero", chain.ErrNode)
		}
		at := rowID(p, string(w.Network), string(w.Address), c.Code)
		if err != nil {
			failed, why = append(failed, c.Code), errors.Join(why, err)
			r.kept[at] = true
			continue
		}
		r.fresh[at] = holdingRow{
			Tenant: r.tenant, Place: p, Holder: string(w.Address), Name: w.Name, Active: true,
			Network: string(w.Network), Currency: c.Code, Amount: amount, ReadAt: r.out.At,
		}
	}
	if why != nil {
		r.failed(ctx, p, w, failed, why)
		return
	}
	r.out.WalletsUpdated++
}

// failed notes a wallet that was not read, or not in some currencies.
func (r *reading) failed(ctx context.Context, p place, w ColdWallet, currencies []string, err error) {
	text := reason(err)
	if len(currencies) > 0 {
		text = strings.Join(currencies, ", ") + ": " + text
	} else {
		r.keep(p, string(w.Network), string(w.Address))
	}
	id := walletID(string(w.Network), string(w.Address))
	r.out.WalletErrors = append(r.out.WalletErrors, WalletError{Wallet: id, Network: w.Network, Reason: text})
	r.t.cfg.Log.WarnContext(ctx, "balance_not_read", "tenant", r.tenant, "wallet", id, "currencies", currencies, "error", err)
}

// reason says what went wrong without what a node's answer or a URL may hold.
func reason(err error) string {
	var address *chain.AddressError
	switch {
	case errors.As(err, &address):
		return "the address is invalid: " + address.Reason
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return "it was not read in time"
	case errors.Is(err, chain.ErrCurrency):
		return "the network is not one of this service"
	case errors.Is(err, chain.ErrBehind):
		return "the node is behind"
	case errors.Is(err, chain.ErrWrongNet):
		return "the node is on another chain"
	}
	return "the node could not be read"
}

// maxAccountID leaves room in a row's id.
const maxAccountID = 120

// custodian reads the accounts of the host's custodian.
func (r *reading) custodian(ctx context.Context) {
	if r.t.cfg.Custodian == nil {
		return
	}
	accounts, err := r.t.cfg.Custodian.Accounts(ctx, r.tenant)
	if err != nil {
		r.keep(placeCustody, "", "")
		r.refused(ctx, "", "the custodian did not list its accounts", err)
		return
	}
	for _, a := range accounts {
		if a.ID == "" || len(a.ID) > maxAccountID || !storage.ValidText(a.ID) || !storage.ValidText(a.Name) || !storage.ValidText(a.ExternalID) {
			r.refused(ctx, "", "an account has no usable id or name", nil)
			continue
		}
		r.account(ctx, a)
	}
}

func (r *reading) account(ctx context.Context, a CustodyAccount) {
	row := holdingRow{Tenant: r.tenant, Place: placeCustody, Holder: a.ID, Name: a.Name, External: a.ExternalID, Active: a.Active}
	self := rowID(placeCustody, "", a.ID, "")
	if before, known := r.old[self]; known {
		row.ReadAt = holdingRows.Value(before).ReadAt
	}
	r.fresh[self] = row
	if !a.Active {
		return
	}
	held, err := r.t.cfg.Custodian.Balances(ctx, r.tenant, a.ID)
	if err != nil {
		r.keep(placeCustody, "", a.ID)
		r.refused(ctx, a.ID, "the custodian did not tell its balances", err)
		return
	}
	row.ReadAt = r.out.At
	r.fresh[self] = row
	var strange []string
	for _, code := range slices.Sorted(maps.Keys(held)) {
		c, err := r.t.cfg.Registry.Currency(code)
		if err != nil || held[code].Sign() < 0 {
			strange = append(strange, code)
			continue
		}
		row.Network, row.Currency, row.Amount = string(c.Network), code, held[code]
		r.fresh[rowID(placeCustody, row.Network, a.ID, code)] = row
	}
	if len(strange) > 0 {
		r.refused(ctx, a.ID, "not counted, as they are unknown or below zero: "+strings.Join(strange, ", "), nil)
		return
	}
	r.out.AccountsUpdated++
}

func (r *reading) refused(ctx context.Context, account, why string, err error) {
	r.out.AccountErrors = append(r.out.AccountErrors, AccountError{Account: account, Reason: why})
	r.t.cfg.Log.WarnContext(ctx, "custody_account_not_read", "tenant", r.tenant, "account", account, "reason", why, "error", err)
}

// keep leaves what was read before of a place, or of one holder, as it is.
func (r *reading) keep(p place, network, holder string) {
	for id, row := range r.old {
		h := holdingRows.Value(row)
		if h.Place == p && (holder == "" || h.Holder == holder && (network == "" || h.Network == network)) {
			r.kept[id] = true
		}
	}
}

// rowID is where one reading is stored: the same at every Sync.
func rowID(p place, network, holder, currency string) string {
	return fmt.Sprintf("%s/%s/%s/%s", p, network, holder, currency)
}

// store writes what was read, and forgets what is no longer asked for.
func (r *reading) store(ctx context.Context) error {
	c := storage.Change{Partition: storage.Tenant(r.tenant)}
	digest := sha256.New()
	for _, id := range slices.Sorted(maps.Keys(r.fresh)) {
		c.Put = append(c.Put, holdingRows.Row(id, r.old[id].Version, time.Time{}, r.fresh[id]))
		_, _ = fmt.Fprintln(digest, id, r.old[id].Version) // a hash never fails
	}
	for _, id := range slices.Sorted(maps.Keys(r.old)) {
		if _, again := r.fresh[id]; !again && !r.kept[id] {
			c.Drop = append(c.Drop, r.old[id])
			_, _ = fmt.Fprintln(digest, id, r.old[id].Version)
		}
	}
	if len(c.Put)+len(c.Drop) == 0 {
		return nil
	}
	c.ID = fmt.Sprintf("holdings/%d/%s", r.out.At.UnixMicro(), hex.EncodeToString(digest.Sum(nil)[:16]))
	err := storage.CommitOne(ctx, r.t.cfg.Store, c)
	if errors.Is(err, storage.ErrConflict) {
		return nil // another Sync has just stored what it read: as good as this
	}
	return err
}
