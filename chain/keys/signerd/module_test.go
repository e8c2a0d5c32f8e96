package signerd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/keys/hsm"
	"github.com/cryptopay-go/cryptopay/chain/keys/signerd"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
)

// making makes this test's own program make keys in a module, and print the accounts.
const making = "CRYPTOPAY_TEST_ACCOUNTS"

func openModule(ctx context.Context, token *testenv.Token) (*hsm.Module, error) {
	return hsm.Open(ctx, hsm.Config{Library: token.Library, Token: token.Label, PIN: []byte(token.PIN)})
}

func makeKeys(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	ctx := context.Background()
	m, err := openModule(ctx, o.Module)
	if err != nil {
		return err
	}
	names, err := keys.NamesOf(chain.Networks())
	if err != nil {
		return err
	}
	encode := map[chain.Network]keys.Encode{}
	for _, n := range o.Networks {
		encode[n] = simulated(n, time.Now).Client().AddressOf
	}
	out, err := signerd.MadeIn(ctx, m, names, encode, 12)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

// made are the addresses of the module's keys, made where there are none yet.
func (s *signer) made(n chain.Network) []chain.Derived {
	s.t.Helper()
	text, err := json.Marshal(s.order)
	require.NoError(s.t, err)
	cmd := exec.CommandContext(s.t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), making+"="+string(text), "SOFTHSM2_CONF="+s.order.Module.Conf)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	require.NoError(s.t, err, said.String())
	var accounts signerd.Accounts
	require.NoError(s.t, json.Unmarshal(out, &accounts))
	source, public, err := accounts.Source(map[chain.Network]keys.Encode{n: simulated(n, time.Now).Client().AddressOf})
	require.NoError(s.t, err)
	all, err := source.Derive(s.t.Context(), n, 0, 12)
	require.NoError(s.t, err)
	for _, d := range all {
		pub, err := public(n, d.Key)
		require.NoError(s.t, err)
		a, err := simulated(n, time.Now).Client().AddressOf(pub)
		require.NoError(s.t, err)
		require.Equal(s.t, d.Address, a)
	}
	return all
}

// newModuleSigned is newSigned with the keys in a module.
func newModuleSigned(t testing.TB, n chain.Network, pays, costs int64) *thief {
	t.Helper()
	if testing.Short() {
		t.Skip("starts processes")
	}
	token := testenv.SoftHSM(t)
	return newSignedWith(t, &token, n, pays, costs)
}

// A module that goes away in the middle is an unknown outcome. When it is back the same
// request is signed, once: it is counted once, and each time that it is asked again it gets
// the signatures of the first time, though the module would make others, and also of a
// signer that was killed since.
func TestFS07_ModuleGoneInTheMiddle(t *testing.T) {
	t.Parallel()
	for _, n := range []chain.Network{"ETH", "BTC"} {
		t.Run(string(n), func(t *testing.T) {
			t.Parallel()
			h := newModuleSigned(t, n, 5, 4)
			dir := h.signer.order.Module.Dir
			before := h.request(h.apart(0, wish{intent: "w0", attempt: "a0", amount: h.one()}))
			first, errs := h.ask(before)
			require.NoError(t, errs[0])
			require.True(t, h.health().OK)
			require.NoError(t, os.Rename(dir, dir+".gone"))
			r := h.request(h.apart(1, wish{intent: "w1", attempt: "a1", amount: 2 * h.one()}))
			for range 2 {
				_, errs = h.ask(r)
				require.Error(t, errs[0])
				require.NotErrorIs(t, errs[0], chain.ErrRefused, "nobody knows what it did")
			}
			require.Len(t, h.signer.lines(), 1)
			require.Equal(t, "the module does not answer", h.health().Error)
			require.NoError(t, os.Rename(dir+".gone", dir))
			require.True(t, h.health().OK)

			sigs, errs := h.ask(r)
			require.NoError(t, errs[0])
			for range 2 {
				again, errs := h.ask(r, r, before)
				for i := range again {
					require.NoError(t, errs[i])
				}
				require.Equal(t, [][]chain.Signature{sigs[0], sigs[0], first[0]}, again)
				h.signer.kill()
				h.signer.start()
			}
			other := h.request(h.apart(1, wish{intent: "w1", attempt: "a1", amount: h.one()}))
			_, errs = h.ask(other)
			require.ErrorIs(t, errs[0], chain.ErrRefused)
			_, errs = h.ask(h.request(h.apart(2, wish{intent: "w2", attempt: "a2", amount: 2*h.one() + 1})))
			require.ErrorContains(t, errs[0], "would pass the limit", "three coins of five are taken")
			h.send(before, first[0])
			h.send(r, sigs[0])
			require.Equal(t, 3*h.one(), h.loot())
		})
	}
}

// The signer's own checks stand before a module as before a seed: what a stolen App calls
// ours, keys of another address or of none, and the limits.
func TestFS07_StolenAppAndAModule(t *testing.T) {
	t.Parallel()
	h := newModuleSigned(t, "ETH", 5, 4)
	r := h.request(wish{intent: "w", attempt: "a", slots: []int{0}, amount: h.one()})
	swept := r
	swept.Intent.Purpose = chain.ForSweep // to the thief, "ours"
	_, errs := h.ask(swept)
	require.ErrorContains(t, errs[0], "not ours")
	other := r
	other.Keys = []chain.KeyRef{h.own[1].Key}
	_, errs = h.ask(other)
	require.ErrorIs(t, errs[0], chain.ErrRefused)
	other.Intent.FromKey = ""
	_, errs = h.ask(other)
	require.ErrorContains(t, errs[0], "not the sender's")
	for _, ref := range []chain.KeyRef{"no path", "ed25519/m/44'/60'/0'", "m/44'/60'/0'/0/999"} {
		none := other
		none.Keys = []chain.KeyRef{ref}
		_, errs = h.ask(none)
		require.Error(t, errs[0])
	}
	_, errs = h.ask(h.request(wish{intent: "w", attempt: "b", slots: []int{0}, amount: 6 * h.one()}))
	require.ErrorContains(t, errs[0], "would pass the limit")
	_, errs = h.ask(r)
	require.NoError(t, errs[0])
	require.Len(t, h.signer.lines(), 1)
}

// A signer whose module has other keys than the App was told of, or an older copy of them,
// signs nothing with them.
func TestFS07_AnotherModuleSignsNothing(t *testing.T) {
	t.Parallel()
	h := newModuleSigned(t, "ETH", 5, 4)
	r := h.request(wish{intent: "w", attempt: "a", slots: []int{0}, amount: h.one()})
	h.signer.kill()
	other := testenv.SoftHSM(t)
	h.signer.order.Module = &other
	h.signer.start()
	_, errs := h.ask(r)
	require.ErrorContains(t, errs[0], "no key of this name")
	require.NotErrorIs(t, errs[0], chain.ErrRefused, "the right module may be put back")
	h.signer.made("ETH")
	_, errs = h.ask(r)
	require.ErrorContains(t, errs[0], "not the sender's")
	require.Empty(t, h.signer.lines())
}
