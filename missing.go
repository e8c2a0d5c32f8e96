package cryptopay

import (
	"context"
	"crypto/sha256"
	"log/slog"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/rates"
)

// MissingError says that a call needs a field of Config that was left out. Nothing happened.
type MissingError struct {
	Field string // of Config
	For   string // what needs it
}

func (e *MissingError) Error() string {
	return "cryptopay: Config." + e.Field + " is missing: " + e.For + " need it"
}

// noRates is Config.Rates where it was left out; its text is what needs prices.
type noRates string

func (n noRates) Rate(context.Context, string, string) (rates.Rate, error) {
	if n == "" {
		n = "prices"
	}
	return rates.Rate{}, &MissingError{Field: "Rates", For: string(n)}
}

// ratesFor is Config.Rates as one room has it.
func (c *Config) ratesFor(what string) rates.Rates {
	if c.Rates == noRates("") {
		return noRates(what)
	}
	return c.Rates
}

// noAddresses is Config.Addresses where it was left out. Its error is not chain.ErrNoSource: an
// address that nobody can derive again would be shown unchecked.
type noAddresses struct{}

func (noAddresses) Derive(_ context.Context, n chain.Network, _ uint32, _ int) ([]chain.Derived, error) {
	return nil, &MissingError{Field: "Addresses", For: "payments and hot addresses on " + string(n)}
}

// develop fills in what may be known to everybody where all networks are simulated.
func (c *Config) develop() {
	sources := simulated{}
	for _, client := range c.Chains {
		if d, ok := client.(chain.Development); ok {
			if s := d.DevelopmentAddresses(); s != nil {
				sources[client.Network()] = s
			}
		}
	}
	if len(sources) == len(c.Chains) {
		if c.Addresses == nil {
			c.Addresses, c.made = sources, append(c.made, "Addresses")
		}
		if len(c.Keys) == 0 && len(c.Key) == 0 {
			key := sha256.Sum256([]byte("cryptopay: a key of development, known to everybody"))
			c.Key, c.made = key[:], append(c.made, "Key")
		}
	}
	if c.Addresses == nil {
		c.Addresses = noAddresses{}
	}
}

// simulated asks each network's client for its addresses.
type simulated map[chain.Network]chain.AddressSource

func (s simulated) Derive(ctx context.Context, n chain.Network, from uint32, count int) ([]chain.Derived, error) {
	return s[n].Derive(ctx, n, from, count)
}

// derives reports whether this process has a source of addresses.
func (c *Config) derives() bool { return c.Addresses != noAddresses{} }

// sayMade logs what is filled in for development, and what is missing.
func (a *App) sayMade(ctx context.Context) error {
	for _, field := range a.cfg.made {
		a.cfg.Log.WarnContext(ctx, "made_for_development", slog.String("field", "Config."+field),
			slog.String("hint", "it is no secret: set it before any network is a real one"))
	}
	missing := func(field, cannot string) {
		a.cfg.Log.WarnContext(ctx, "config_missing", slog.String("field", "Config."+field), slog.String("cannot", cannot))
	}
	if !a.cfg.derives() {
		missing("Addresses", "create or show payments, nor send: another process must")
	}
	if a.cfg.Rates == noRates("") {
		missing("Rates", "price payments, withdrawals of tokens and sweeps: another process must")
	}
	return nil
}
