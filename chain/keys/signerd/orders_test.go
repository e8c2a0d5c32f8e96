package signerd_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys/signerd"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
)

// With mandates the signer pays what was ordered, once: by one nonce, until the App proves that
// what was signed is dead. A registry that is made again from the log knows as much.
func TestFS02_SignerPaysAnOrderOnce(t *testing.T) {
	t.Parallel()
	ours := mandate.Keys{mandate.Derive([]byte("a key of the host, of 32 bytes.."))}
	h := newSigned(t, "ETH", 100, 100)
	h.signer.kill()
	h.signer.order.Mandates = ours
	h.signer.start()
	ordered := func(r chain.SignRequest) chain.SignRequest {
		in := &r.Intent
		in.Mandate = ours.Make(mandate.Terms{
			Store: "s", Tenant: in.Tenant, Order: in.ID, Kind: in.Purpose, Network: in.Network, Currency: in.Currency, To: in.To, Amount: in.Amount,
		})
		return r
	}
	order := func(attempt string, slot int) chain.SignRequest {
		return ordered(h.request(wish{intent: "w", attempt: attempt, slots: []int{slot}, amount: h.one()}))
	}
	said := func(r chain.SignRequest) error {
		_, errs := h.ask(r)
		return errs[0]
	}
	require.ErrorContains(t, said(h.request(wish{intent: "made up", attempt: "made up/1", slots: []int{9}, amount: h.one()})), "mandate")
	first := order("w/1", 0)
	sigs, errs := h.ask(first)
	require.NoError(t, errs[0])
	signed, err := h.client.Assemble(first.Unsigned, sigs[0])
	require.NoError(t, err)
	second := order("w/2", 1)
	require.ErrorContains(t, said(second), "may still be paid by attempt w/1")
	require.NoError(t, said(first), "the same again")

	h.signer.kill()
	for _, end := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(filepath.Join(h.signer.order.Dir, "registry.db"+end)); !errors.Is(err, os.ErrNotExist) {
			require.NoError(t, err)
		}
	}
	h.signer.order.Rebuild = true
	h.signer.start()
	require.ErrorContains(t, said(second), "may still be paid by attempt w/1")
	ending := mandate.Ending{Store: "s", Network: "ETH", Order: "w", Dead: []mandate.Attempt{{ID: "w/1", Tx: "0x1", Spends: mandate.SpendsOf(first.Unsigned.Spends)}}}
	forged, err := ours.SealEnding(ending)
	require.NoError(t, err)
	second.Endings = []string{forged}
	require.ErrorContains(t, said(second), "may still be paid by attempt w/1", "of another transaction")
	ending.Dead[0].Tx = signed.Tx
	proof, err := ours.SealEnding(ending)
	require.NoError(t, err)
	second.Endings = []string{forged, proof}
	require.NoError(t, said(second))
	h.signer.kill()
	for _, end := range []string{"", "-wal", "-shm"} {
		_ = os.Remove(filepath.Join(h.signer.order.Dir, "registry.db"+end))
	}
	h.signer.start()
	third := order("w/3", 2)
	third.Endings = []string{proof}
	require.ErrorContains(t, said(third), "may still be paid by attempt w/2")
}

// What was signed before the signer had mandates, or by an earlier version, counts for it, also in
// a registry that is made again from the log.
func TestFS02_SignerKnowsWhatItPaidBeforeItHadMandates(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]bool{"the registry stands": false, "it is made from an older log": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ours := mandate.Keys{mandate.Derive([]byte("a key of the host, of 32 bytes.."))}
			h := newSigned(t, "ETH", 100, 100)
			order := func(attempt string, slot int) error {
				r := h.request(wish{intent: "w", attempt: attempt, slots: []int{slot}, amount: h.one()})
				in := &r.Intent
				in.Mandate = ours.Make(mandate.Terms{
					Store: "s", Tenant: in.Tenant, Order: in.ID, Kind: in.Purpose, Network: in.Network, Currency: in.Currency, To: in.To, Amount: in.Amount,
				})
				_, errs := h.ask(r)
				return errs[0]
			}
			require.NoError(t, order("w/1", 0))
			require.NoError(t, order("w/2", 1), "nobody could prove to it what is dead")
			h.signer.kill()
			if lose {
				dir := h.signer.order.Dir
				for _, end := range []string{"", "-wal", "-shm"} {
					_ = os.Remove(filepath.Join(dir, "registry.db"+end))
				}
				path := filepath.Join(dir, "signed.log")
				was, err := os.ReadFile(path)
				require.NoError(t, err)
				var out []byte
				var hash [sha256.Size]byte
				for text := range bytes.Lines(was) {
					var l signerd.Line
					require.NoError(t, json.Unmarshal(text, &l))
					l.Tx, l.Orders, l.Endings, l.Before = "", nil, nil, hex.EncodeToString(hash[:])
					one, err := json.Marshal(&l)
					require.NoError(t, err)
					hash, out = sha256.Sum256(one), append(append(out, one...), '\n')
				}
				require.NoError(t, os.WriteFile(path, out, 0o600))
				h.signer.order.Rebuild = true
			}
			h.signer.order.Mandates = ours
			h.signer.start()
			require.NoError(t, order("w/1", 0), "the same again")
			require.ErrorContains(t, order("w/3", 2), "may still be paid by attempt w/1")
		})
	}
}
