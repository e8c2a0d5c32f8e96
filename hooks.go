package cryptopay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// A room's Config has three kinds of fields. Settings are the host's. Those of
// wired are the App's, and New refuses a Config that sets one. Hooks that both
// have are joined here: the host's is asked as well as the App's.

// wired lists the fields of the rooms' Configs that the App fills in.
var wired = []struct {
	room   string
	fields []string
}{
	{"Payments", []string{"Store", "Registry", "Rates", "RateAge", "Addresses", "Tenants", "Wallets", "Head", "CheckAddresses", "Wanted", "Permanent", "Undecided", "Retired", "Now", "NewID", "Log"}},
	{"Withdrawals", []string{"Store", "Registry", "Rates", "Parse", "Fees", "Tenants", "Wallets", "Payouts", "Spare", "Missing", "Mandates", "Audit", "Rules", "Follow", "Retired", "Now", "NewID", "Log"}},
	{"Treasury", []string{"Store", "Registry", "Rates", "Clients", "Senders", "Addresses", "Halted", "Proposed", "Sent", "LostRefill", "Audit", "Now", "Log"}},
	{"Outgoing", []string{"Store", "Client", "Registry", "Signer", "ChangeAddress", "Costly", "Uncovered", "Less", "MayCost", "Demand", "GasFor", "Trail", "Ordered", "Ending", "Back", "Sealed", "Told", "Foreign", "Retired", "Able", "Now", "Log"}},
	{"Reconcile", []string{"Store", "Client", "Registry", "Audit", "Node", "Now", "Log"}},
}

// checkWired refuses what the App would have to overwrite. The error names every
// such field.
func (c *Config) checkWired() error {
	var set []string
	look := func(room reflect.Value, name string, fields []string) {
		for _, field := range fields {
			if !room.FieldByName(field).IsZero() {
				set = append(set, "Config."+name+"."+field)
			}
		}
	}
	for _, w := range wired {
		look(reflect.ValueOf(c).Elem().FieldByName(w.room), w.room, w.fields)
		if w.room == "Outgoing" {
			for _, n := range slices.Sorted(maps.Keys(c.OutgoingOn)) {
				look(reflect.ValueOf(c.OutgoingOn[n]), "OutgoingOn["+string(n)+"]", w.fields)
			}
		}
	}
	if len(set) == 0 {
		return nil
	}
	return fmt.Errorf("cryptopay: %s must be left out: New fills in what rooms share, from Config itself", strings.Join(set, ", "))
}

// bothURL accepts a callback URL that the App's guard and the host's hook accept.
func bothURL(ours, theirs func(string) error) func(string) error {
	if theirs == nil {
		return ours
	}
	return func(url string) error {
		if err := ours(url); err != nil {
			return err
		}
		return theirs(url)
	}
}

// eitherHalts says why nothing may be sent: the App's reason, else the host's.
func eitherHalts(ours, theirs func(context.Context, chain.Intent) (string, error)) func(context.Context, chain.Intent) (string, error) {
	if theirs == nil {
		return ours
	}
	return func(ctx context.Context, in chain.Intent) (string, error) {
		if why, err := ours(ctx, in); err != nil || why != "" {
			return why, err
		}
		return theirs(storage.Apart(ctx), in)
	}
}

// eitherStops reports a halt of payouts that the App or the host knows of.
func eitherStops(ours, theirs func(ctx context.Context, tenant, currency string) (string, error)) func(ctx context.Context, tenant, currency string) (string, error) {
	if theirs == nil {
		return ours
	}
	return func(ctx context.Context, tenant, currency string) (string, error) {
		if why, err := ours(ctx, tenant, currency); err != nil || why != "" {
			return why, err
		}
		return theirs(storage.Apart(ctx), tenant, currency)
	}
}

// both hands an outcome to the App's handler, then to the host's. Both see it again
// where one of them failed.
func both(ours, theirs outgoing.Handler) outgoing.Handler {
	if theirs == nil {
		return ours
	}
	return func(ctx context.Context, o outgoing.Outcome) error {
		if err := ours(ctx, o); err != nil {
			return err
		}
		return theirs(storage.Apart(ctx), o)
	}
}

// anySource asks the host where the App does not know what a transaction spends.
func anySource(ours, theirs func(context.Context, string) ([]string, error)) func(context.Context, string) ([]string, error) {
	if theirs == nil {
		return ours
	}
	return func(ctx context.Context, outpoint string) ([]string, error) {
		if spends, err := ours(ctx, outpoint); err != nil || len(spends) > 0 {
			return spends, err
		}
		return theirs(storage.Apart(ctx), outpoint)
	}
}

// anyTag takes an address apart that the App or the host knows how to.
func anyTag(ours, theirs func(chain.Network, chain.Address) (chain.Address, string, bool)) func(chain.Network, chain.Address) (chain.Address, string, bool) {
	if theirs == nil {
		return ours
	}
	return func(n chain.Network, a chain.Address) (chain.Address, string, bool) {
		if account, memo, ok := ours(n, a); ok {
			return account, memo, true
		}
		return theirs(n, a)
	}
}

// lowerCost is the lower of the App's bound and the host's.
func lowerCost(ours, theirs costBound) costBound {
	if theirs == nil {
		return ours
	}
	return func(ctx context.Context, in chain.Intent) (ledger.Amount, error) {
		a, err := ours(ctx, in)
		if err != nil {
			return 0, err
		}
		b, err := theirs(storage.Apart(ctx), in)
		return min(a, b), err
	}
}

// lowerBound raises an order's bound as far as the App and the host grant it.
func lowerBound(ours, theirs bound) bound {
	if theirs == nil {
		return ours
	}
	return func(ctx context.Context, in chain.Intent, most ledger.Amount) (ledger.Amount, error) {
		granted, err := theirs(ctx, in, most)
		if err != nil || granted <= in.MaxCost {
			return in.MaxCost, err
		}
		return ours(ctx, in, min(most, granted))
	}
}

type bound = func(ctx context.Context, in chain.Intent, most ledger.Amount) (ledger.Amount, error)

type costBound = func(context.Context, chain.Intent) (ledger.Amount, error)

// bothDeliver refuses what the App or the host refuses.
func bothDeliver(ours, theirs delivery) delivery {
	if theirs == nil {
		return ours
	}
	return func(ctx context.Context, c *chain.Currency, to chain.Address, memo string, a ledger.Amount) error {
		if err := ours(ctx, c, to, memo, a); err != nil {
			return err
		}
		return theirs(storage.Apart(ctx), c, to, memo, a)
	}
}

type delivery = func(context.Context, *chain.Currency, chain.Address, string, ledger.Amount) error

// eitherOwns names an address that is the App's or the host's. One of a payment may
// be paid to, so where they differ the other use counts.
func eitherOwns(ours, theirs ownership) ownership {
	if theirs == nil {
		return ours
	}
	return func(ctx context.Context, n chain.Network, a chain.Address) (string, bool, error) {
		use, own, err := ours(ctx, n, a)
		otherUse, otherOwn, otherErr := theirs(storage.Apart(ctx), n, a)
		if otherOwn && (!own || use == string(incoming.UsePayment)) {
			use = otherUse
		}
		return use, own || otherOwn, errors.Join(err, otherErr)
	}
}

type ownership = func(context.Context, chain.Network, chain.Address) (string, bool, error)
