package journal

import (
	"bufio"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/ledger"
)

// CSV writes a line per entry: when, its transaction, kind and reference, the account, the
// asset, what was added, and the account's running balance of the asset.
func (s Source) CSV(ctx context.Context, w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write([]string{"time", "transaction", "kind", "reference", "account", "asset", "amount", "balance"}); err != nil {
		return err
	}
	b := book{s: s}
	err := b.each(ctx, func(t *Tx) error {
		for _, e := range t.Entries {
			amount, balance, err := b.post(e)
			if err != nil {
				return err
			}
			if err := out.Write([]string{t.At.Format(time.RFC3339Nano), t.ID, string(t.Kind), t.Ref, account(e.Account), string(e.Asset), amount, balance}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	out.Flush()
	return out.Error()
}

// HLedger writes a journal for hledger, with the balances as assertions at its end.
func (s Source) HLedger(ctx context.Context, w io.Writer) error {
	out := text{bufio.NewWriter(w)}
	b := book{s: s}
	day := ""
	err := b.each(ctx, func(t *Tx) error {
		day = max(day, t.At.Format(time.DateOnly))
		out.put("%s * (%s) %s %s\n", t.At.Format(time.DateOnly), plain(t.ID), plain(string(t.Kind)), plain(t.Ref))
		for _, e := range t.Entries {
			amount, _, err := b.post(e)
			if err != nil {
				return err
			}
			out.put("    %s  %s \"%s\"\n", account(e.Account), amount, e.Asset)
		}
		out.put("\n")
		return nil
	})
	if err != nil {
		return err
	}
	if len(b.held) > 0 {
		out.put("%s * balances\n", day)
	}
	err = b.closing(func(a, asset, zero, balance string) {
		out.put("    %s  %s \"%s\" = %s \"%s\"\n", a, zero, asset, balance, asset)
	})
	if err != nil {
		return err
	}
	return out.Flush()
}

// Beancount writes a journal for Beancount, with the balances as assertions at its end.
func (s Source) Beancount(ctx context.Context, w io.Writer) error {
	out := text{bufio.NewWriter(w)}
	b := book{s: s}
	seen := map[string]bool{}
	var last time.Time
	err := b.each(ctx, func(t *Tx) error {
		day := t.At.Format(time.DateOnly)
		if t.At.After(last) {
			last = t.At
		}
		for _, e := range t.Entries {
			if a := account(e.Account); !seen[a] {
				seen[a] = true
				out.put("1970-01-01 open %s\n", a) // times may go back
			}
		}
		out.put("%s * \"%s\" \"%s\"\n  transaction: \"%s\"\n  time: \"%s\"\n", day, quoted(string(t.Kind)), quoted(t.Ref), quoted(t.ID), t.At.Format(time.RFC3339Nano))
		for _, e := range t.Entries {
			amount, _, err := b.post(e)
			if err != nil {
				return err
			}
			out.put("  %s  %s %s\n", account(e.Account), amount, commodity(e.Asset))
		}
		out.put("\n")
		return nil
	})
	if err != nil {
		return err
	}
	next := last.AddDate(0, 0, 1).Format(time.DateOnly) // a balance is that of the day's beginning
	err = b.closing(func(a, asset, _, balance string) {
		out.put("%s balance %s  %s ~ 0 %s\n", next, a, balance, commodity(ledger.Asset(asset)))
	})
	if err != nil {
		return err
	}
	return out.Flush()
}

// text is written to; what fails is told by Flush.
type text struct{ *bufio.Writer }

func (t text) put(format string, a ...any) { _, _ = fmt.Fprintf(t, format, a...) }

// book follows the balances of the accounts while a journal is written.
type book struct {
	s      Source
	held   map[key]ledger.Amount // by the entries
	kept   []ledger.Balance      // by the store
	scales map[ledger.Asset]uint8
}

type key struct {
	account ledger.Account
	asset   ledger.Asset
}

func (b *book) each(ctx context.Context, f func(*Tx) error) error {
	b.held, b.scales = map[key]ledger.Amount{}, map[ledger.Asset]uint8{}
	var failed error
	r := reading{s: b.s, open: map[string]*Tx{}}
	err := r.run(ctx, func(t Tx) bool {
		failed = f(&t)
		return failed == nil
	})
	b.kept = r.balances
	return errors.Join(failed, err)
}

// post adds an entry to its account, and writes both in the signs of double entry.
func (b *book) post(e ledger.Entry) (amount, balance string, err error) {
	k := key{e.Account, e.Asset}
	if b.held[k], err = b.held[k].Add(e.Delta); err != nil {
		return "", "", fmt.Errorf("journal: %s of %s: %w", e.Asset, e.Account, err)
	}
	if amount, err = b.turned(e.Asset, e.Delta); err != nil {
		return "", "", err
	}
	balance, err = b.turned(e.Asset, b.held[k])
	return amount, balance, err
}

// turned writes an amount with the other sign.
func (b *book) turned(asset ledger.Asset, a ledger.Amount) (string, error) {
	scale, ok := b.scales[asset]
	if !ok {
		var err error
		if scale, err = b.s.Scale(string(asset)); err != nil {
			return "", fmt.Errorf("journal: %w", err)
		}
		b.scales[asset] = scale
	}
	n, err := a.Neg()
	if err != nil {
		return "", fmt.Errorf("journal: %s: %w", asset, err)
	}
	return n.Format(scale, scale), nil
}

// closing calls f for each account that had entries, with its balance: as the store keeps
// it where nothing was left out, so that whoever adds up the entries checks the store.
func (b *book) closing(f func(account, asset, zero, balance string)) error {
	if b.s.Until.IsZero() {
		for _, kept := range b.kept {
			if k := (key{kept.Account, kept.Asset}); kept.Seq > 0 {
				b.held[k] = kept.Posted
			}
		}
	}
	keys := slices.SortedFunc(maps.Keys(b.held), func(x, y key) int { return cmp.Or(cmp.Compare(x.account, y.account), cmp.Compare(x.asset, y.asset)) })
	for _, k := range keys {
		zero, err := b.turned(k.asset, 0)
		if err != nil {
			return err
		}
		balance, err := b.turned(k.asset, b.held[k])
		if err != nil {
			return err
		}
		f(account(k.account), string(k.asset), zero, balance)
	}
	return nil
}

// account is the name of a ledger account in a journal, by the side of the balance sheet
// that it stands on.
func account(a ledger.Account) string {
	id, isWallet := a.WalletID()
	switch {
	case isWallet:
		return "Liabilities:Wallets:W-" + part(id)
	case a.Owed():
		return "Assets:Receivable:W-" + part(after(a))
	case a == ledger.Suspense:
		return "Liabilities:Suspense"
	case a == ledger.FeesPlatform:
		return "Income:Fees:Platform"
	case a == ledger.FeesNetwork:
		return "Income:Fees:Network"
	case a == ledger.Float:
		return "Equity:Float"
	case a == ledger.Adjustment:
		return "Equity:Adjustment"
	case strings.HasPrefix(string(a), string(ledger.Chain(""))):
		return "Assets:Chains:" + part(strings.ToUpper(after(a)))
	default:
		return "Equity:Other:X-" + part(string(a))
	}
}

func after(a ledger.Account) string {
	_, id, _ := strings.Cut(string(a), "/")
	return id
}

// part keeps what a part of a name may hold in both programs.
func part(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 128 && (r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '-') {
			return r
		}
		return '-'
	}, s)
}

// commodity is an asset's name in Beancount: a capital letter first, 2 to 24 signs.
func commodity(a ledger.Asset) string {
	s := strings.ToUpper(part(string(a)))
	if s == "" || s[0] < 'A' || len(s) < 2 || s[len(s)-1] == '-' {
		s = "C" + s + "C"
	}
	return s[:min(24, len(s))]
}

// plain is a text in a line of hledger's: it may hold no comment and no line's end.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune(";|()", r) {
			return '-'
		}
		return r
	}, s)
}

// quoted is a text between Beancount's quotation marks.
func quoted(s string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", " ", "\r", " ").Replace(s)
}
