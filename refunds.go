package cryptopay

import (
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"slices"

	"github.com/cryptopay-go/cryptopay/refund"
	"github.com/cryptopay-go/cryptopay/storage"
)

// claimTokens are the tokens that the claim link of a refund can have, by the keys, newest
// first: 256 bits that follow from a key and the refund's id, so that none is stored.
func (a *App) claimTokens(id string) []string {
	out := make([]string, len(a.cfg.Keys))
	for i, key := range a.cfg.Keys {
		secret, err := hkdf.Key(sha256.New, key, nil, "cryptopay claim link", sha256.Size)
		if err != nil {
			panic(err) // the sizes are constants
		}
		h := hmac.New(sha256.New, secret)
		_, _ = io.WriteString(h, id) // a hash never fails
		out[i] = base64.RawURLEncoding.EncodeToString(h.Sum(nil))
	}
	return out
}

// waitingRefunds selects the refunds of a tenant that a claim link may still pay.
func waitingRefunds(p storage.Partition) storage.Query {
	return storage.Query{
		Table: refund.Refunds.Table, Partition: p, Limit: page, Where: []storage.Cond{{Column: "status", Op: storage.Eq, Value: refund.AwaitingAddress}},
	}
}

// editedRefunds checks the seals of refunds that wait for their address.
func (a *App) editedRefunds(ctx context.Context, p storage.Partition) (out []Contradiction, err error) {
	err = storage.Pages(ctx, a.cfg.Store, waitingRefunds(p), func(rows []storage.Row) error {
		for _, row := range rows {
			r := refund.Refunds.Value(row)
			r.ID = row.ID
			why, err := a.Refunds.Altered(ctx, tenantOf(p), &r)
			if err != nil {
				return err
			}
			if why != "" {
				out = append(out, Contradiction{ofRefund, row.ID, why})
			}
		}
		return nil
	})
	return out, err
}

// ofRefund is the kind of a Contradiction.
const ofRefund = "refund"

// resealRefunds makes the seals of a tenant's refunds that the newest key has not made.
func (a *App) resealRefunds(ctx context.Context, p storage.Partition, r *Resealed) error {
	return storage.Pages(ctx, a.cfg.Store, waitingRefunds(p), func(rows []storage.Row) error {
		rows = slices.DeleteFunc(rows, func(row storage.Row) bool { return a.mandateKeys.Newest(refund.Refunds.Value(row).Seal) })
		n, err := a.resealRows(ctx, rows, ofRefund, r, func(ctx context.Context, row storage.Row) (storage.Row, string, error) {
			v, now, ok, err := refund.Refunds.One(ctx, a.joined(), p, row.ID)
			if err != nil || !ok || v.Status != refund.AwaitingAddress {
				return storage.Row{}, "", err
			}
			v.ID = row.ID
			why, err := a.Refunds.Altered(ctx, tenantOf(p), &v)
			if err == nil && why == "" {
				err = a.Refunds.Authorize(tenantOf(p), &v)
			}
			return refund.Refunds.Row(row.ID, now.Version, now.Due, v), why, err
		})
		r.Refunds += n
		return err
	})
}
