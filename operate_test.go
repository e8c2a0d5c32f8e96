package cryptopay_test

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

// D17: money that comes to an old address is not lost: it is found, booked to
// suspense, and finding it again changes nothing.
func TestD17_RecoverDepositsIsIdempotent(t *testing.T) {
	t.Parallel()
	h := newHost(t, 12, "BTC")
	p, err := h.app.Payments.Create(t.Context(), h.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "120", Currency: "BTC"}})
	require.NoError(t, err)
	h.clock.Advance(2 * time.Hour)
	h.mine(3)
	require.Equal(t, payment.Expired, h.payment(p.ID).Status)
	_, err = h.chains["BTC"].Pay(chain.Address(p.Address), "BTC", dec("0.002"))
	require.NoError(t, err)
	h.mine(4)
	before, err := h.app.Payments.Suspense(t.Context(), h.tenant, 10, 0)
	require.NoError(t, err)
	require.Len(t, before, 1)

	_, _, err = h.app.Operate.RecoverDeposits(t.Context(), "BTC", chain.Address(p.Address), 1, 0, cryptopay.Call{By: "ann"})
	require.ErrorIs(t, err, cryptopay.ErrCall)
	found, id, err := h.app.Operate.RecoverDeposits(t.Context(), "BTC", chain.Address(p.Address), 1, 0, because("a customer asked"))
	require.NoError(t, err)
	require.Zero(t, found, "it is known already")
	kept, err := h.app.Operate.List(t.Context(), "BTC", 10, 0)
	require.NoError(t, err)
	require.Len(t, kept, 1)
	require.Equal(t, id, kept[0].ID)
	require.Equal(t, []any{outgoing.OpRecover, "ann", "a customer asked", `{"Found":0}`}, []any{kept[0].Kind, kept[0].By, kept[0].Reason, kept[0].After})
	h.step()
	after, err := h.app.Payments.Suspense(t.Context(), h.tenant, 10, 0)
	require.NoError(t, err)
	require.Len(t, after, 1)
	h.sound()

	s, err := h.app.NetworkStatus(t.Context(), "BTC")
	require.NoError(t, err)
	require.Equal(t, h.chains["BTC"].Height(), s.Head)
	_, err = h.app.NetworkStatus(t.Context(), "ETH")
	require.ErrorIs(t, err, chain.ErrCurrency)
	_, err = h.app.Operate.ResumeNetwork(t.Context(), "ETH", 1, because("a look"))
	require.ErrorIs(t, err, chain.ErrCurrency)
}

// folding writes addresses in upper case, and reads them in any.
type folding struct{}

func (folding) Make(owner [32]byte) chain.Address {
	return chain.Address("0x" + strings.ToUpper(hex.EncodeToString(owner[:20])))
}

func (folding) Parse(s string) (chain.Address, error) {
	digits, ok := strings.CutPrefix(s, "0x")
	if raw, err := hex.DecodeString(digits); !ok || err != nil || len(raw) != 20 {
		return "", &chain.AddressError{Network: "ETH", Address: s, Reason: "not 20 bytes in hex"}
	}
	return chain.Address("0x" + strings.ToUpper(digits)), nil
}

// TestD17_AnOperatorMayWriteAnAddressInAnyWay: explorers show addresses in lower case. One of
// ours is not called a stranger's for that, and a stranger's is not taken for ours.
func TestD17_AnOperatorMayWriteAnAddressInAnyWay(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	h := newHost(t, 13, "BTC")
	h.chains["ETH"] = sim.MustNew(sim.Options{Network: "ETH", Registry: chain.MainnetRegistry(), Seed: 13, Now: h.clock.Now, Finality: 20, Addresses: folding{}})
	h.restart()
	p := h.create("100", "ETH")
	h.mine(5)
	written := chain.Address(strings.ToLower(p.Address))
	require.NotEqual(t, p.Address, string(written))
	_, id, err := h.app.Operate.RecoverDeposits(ctx, "ETH", written, 1, 0, because("a customer asked"))
	require.NoError(t, err)
	kept, err := h.app.Operate.List(ctx, "ETH", 1, 0)
	require.NoError(t, err)
	require.Equal(t, id, kept[0].ID)
	require.Contains(t, kept[0].Object, p.Address)
	_, err = h.app.Operate.FillNonce(ctx, "ETH", written, 0, 0, because("it is stuck"))
	require.ErrorIs(t, err, outgoing.ErrHelp)
	require.NotContains(t, err.Error(), "no address of ours")
	_, err = h.app.Operate.AdoptNonce(ctx, "ETH", written, 7, because("accounted for"))
	require.NoError(t, err)
	own, _, ok, err := outgoing.Nonces.One(ctx, h.store, storage.Network("ETH"), p.Address)
	require.NoError(t, err)
	require.True(t, ok, "it is the address's own nonce that was adopted")
	require.EqualValues(t, 7, own.Next)
	stranger := h.chains["ETH"].Customer("stranger")
	_, err = h.app.Operate.AdoptNonce(ctx, "ETH", stranger, 7, because("a slip of the hand"))
	require.ErrorIs(t, err, outgoing.ErrHelp, "it is no address of ours")
	_, _, err = h.app.Operate.RecoverDeposits(ctx, "ETH", "somewhere", 1, 0, because("a customer asked"))
	require.ErrorIs(t, err, incoming.ErrNotOurs)
}

// TestD17_RecoverOfNoBlocksIsAnError: an operator in a hurry gives the heights the wrong way
// round, or one that was not read yet. He is told so: that nothing was found would read as if
// the customer had not paid.
func TestD17_RecoverOfNoBlocksIsAnError(t *testing.T) {
	t.Parallel()
	h := newHost(t, 12, "BTC")
	p, err := h.app.Payments.Create(t.Context(), h.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "120", Currency: "BTC"}})
	require.NoError(t, err)
	h.mine(5)
	head := h.chains["BTC"].Height()
	for _, r := range [][2]int64{{4, 2}, {head + 1, 0}, {head + 1, head + 9}, {-1, 0}, {1, -1}} {
		_, _, err = h.app.Operate.RecoverDeposits(t.Context(), "BTC", chain.Address(p.Address), r[0], r[1], because("a customer asked"))
		require.ErrorIs(t, err, incoming.ErrAgain, r)
	}
	kept, err := h.app.Operate.List(t.Context(), "BTC", 10, 0)
	require.NoError(t, err)
	require.Empty(t, kept)
	_, _, err = h.app.Operate.RecoverDeposits(t.Context(), "BTC", chain.Address(p.Address), head, head+9, because("a customer asked"))
	require.NoError(t, err)
}

// D17: a deposit that was missed is found on a dry run, and stored by the call itself.
// A network is rewound the same way. Each call is kept, a dry run is not.
func TestD17_DryRunsFindAndStoreNothing(t *testing.T) {
	t.Parallel()
	h := newHost(t, 12, "ETH")
	p, err := h.app.Payments.Create(t.Context(), h.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "120", Currency: "USDTERC20"}})
	require.NoError(t, err)
	_, err = h.chains["ETH"].Pay(chain.Address(p.Address), "USDTERC20", dec("120"))
	require.NoError(t, err)
	h.mine(3)
	seen, err := h.store.Find(t.Context(), storage.Query{Table: incoming.Sightings.Table, Limit: 10})
	require.NoError(t, err)
	require.Len(t, seen, 1)
	for _, err := range h.store.Commit(t.Context(), storage.Change{ID: "it was missed", Partition: seen[0].Partition, Drop: seen}) {
		require.NoError(t, err)
	}
	look := because("a customer asked")
	look.DryRun = true
	for range 2 {
		found, id, err := h.app.Operate.RecoverDeposits(t.Context(), "ETH", chain.Address(p.Address), 1, 0, look)
		require.NoError(t, err)
		require.Equal(t, []any{1, ""}, []any{found, id})
	}
	head := h.chains["ETH"].Height()
	id, err := h.app.Operate.ResumeNetwork(t.Context(), "ETH", head-2, look)
	require.NoError(t, err)
	require.Empty(t, id)
	_, err = h.app.Operate.ResumeNetwork(t.Context(), "ETH", head+1000, look)
	require.ErrorIs(t, err, incoming.ErrAgain)
	kept, err := h.app.Operate.List(t.Context(), "ETH", 10, 0)
	require.NoError(t, err)
	require.Empty(t, kept)
	s, err := h.app.NetworkStatus(t.Context(), "ETH")
	require.NoError(t, err)
	require.Equal(t, head, s.Head)

	found, id, err := h.app.Operate.RecoverDeposits(t.Context(), "ETH", chain.Address(p.Address), 1, 0, because("a customer asked"))
	require.NoError(t, err)
	require.Equal(t, 1, found)
	require.NotEmpty(t, id)
	id, err = h.app.Operate.ResumeNetwork(t.Context(), "ETH", head-2, because("read it again"))
	require.NoError(t, err)
	s, err = h.app.NetworkStatus(t.Context(), "ETH")
	require.NoError(t, err)
	require.Equal(t, head-2, s.Head)
	kept, err = h.app.Operate.List(t.Context(), "ETH", 10, 0)
	require.NoError(t, err)
	require.Len(t, kept, 2)
	i := slices.IndexFunc(kept, func(o cryptopay.Operation) bool { return o.ID == id })
	require.Equal(t, []any{outgoing.OpResume, fmt.Sprintf(`{"Head":%d,"Final":1,"Halted":""}`, head), fmt.Sprintf(`{"Head":%d,"Final":1,"Halted":""}`, head-2)},
		[]any{kept[i].Kind, kept[i].Before, kept[i].After})
	h.mine(60)
	require.Equal(t, payment.Completed, h.payment(p.ID).Status)
	h.sound()
}

// An operator tells where to go on; never back, and on no network that is not here.
func TestL14_AdoptedNonces(t *testing.T) {
	t.Parallel()
	h := newHost(t, 9, "ETH")
	h.step()
	hot, err := h.app.Hot(t.Context(), "ETH", h.tenant)
	require.NoError(t, err)
	var record string
	adopt := func(n chain.Network, next uint64) (err error) {
		record, err = h.app.Operate.AdoptNonce(t.Context(), n, hot, next, because("accounted for"))
		return err
	}
	require.NoError(t, adopt("ETH", 3))
	require.NoError(t, adopt("ETH", 5))
	require.NotEmpty(t, record)
	require.NoError(t, adopt("ETH", 5))
	require.Empty(t, record, "it is the nonce already, and nothing was recorded")
	require.Error(t, adopt("ETH", 4))
	require.ErrorIs(t, adopt("BTC", 1), chain.ErrCurrency)
	kept, err := h.app.Operate.List(t.Context(), "ETH", 10, 0)
	require.NoError(t, err)
	require.Len(t, kept, 2)
}

// TestL14_TwoOperatorsAtOnce: of two who decide at one moment, neither is told that his word was taken
// where it was not, and each record that is named is there.
func TestL14_TwoOperatorsAtOnce(t *testing.T) {
	t.Parallel()
	f := &failing.Commits{Store: memory.New()}
	h := newHostOn(t, f, 27, "ETH")
	h.step()
	hot, err := h.app.Hot(t.Context(), "ETH", h.tenant)
	require.NoError(t, err)
	adopt := func(next uint64) (string, error) {
		return h.app.Operate.AdoptNonce(t.Context(), "ETH", hot, next, because("accounted for"))
	}
	f.Counts = func(c *storage.Change) bool { return strings.HasPrefix(c.ID, "out/adopt") }
	f.Seen, f.At = 0, map[int]failing.Fault{1: failing.Passed}
	var first string
	f.Meanwhile = func() {
		first, err = adopt(5)
		require.NoError(t, err)
	}
	second, err := adopt(7)
	require.NoError(t, err)
	own, _, _, err := outgoing.Nonces.One(t.Context(), h.store, storage.Network("ETH"), string(hot))
	require.NoError(t, err)
	require.EqualValues(t, 7, own.Next)
	kept, err := h.app.Operate.AuditLog(t.Context(), storage.Network("ETH"), 0, 0)
	require.NoError(t, err)
	require.Len(t, kept, 2)
	require.Equal(t, []string{first, second}, []string{kept[0].ID, kept[1].ID})
}
