package keys_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
)

func encodeAll() map[chain.Network]keys.Encode {
	return map[chain.Network]keys.Encode{"ETH": asHex, "BTC": asHex}
}

// world is a simulated network, a signer for it, and what a thief could do who
// has all but the keys: build any payload, and edit any request.
type world struct {
	t        testing.TB
	sim      *sim.Chain
	client   chain.Client
	store    storage.Store
	config   keys.SignerConfig
	signer   *keys.Signer
	own      []chain.Derived // 0 is the sender, 1 to 3 are ours too
	customer chain.Address
	coin     string // the native one
	coins    []chain.Coin
	asked    int // of Allow
}

func newWorld(t testing.TB, n chain.Network) *world {
	registry := chain.MainnetRegistry()
	w := &world{t: t, sim: sim.MustNew(sim.Options{Network: n, Registry: registry, Seed: 1}), store: memory.New()}
	w.client = w.sim.Client()
	require.NoError(t, w.store.Open(t.Context(), keys.Tables()...))
	gas, err := registry.Gas(n)
	require.NoError(t, err)
	w.coin = gas.Code
	info, err := registry.Network(string(n))
	require.NoError(t, err)
	seed := newSeed(t)
	accounts, err := seed.Accounts([]chain.NetworkInfo{info})
	require.NoError(t, err)
	source, err := keys.NewSource(accounts, map[chain.Network]keys.Encode{n: w.client.AddressOf})
	require.NoError(t, err)
	w.own, err = source.Derive(t.Context(), n, 0, 4)
	require.NoError(t, err)
	w.customer = w.sim.Customer("payee")
	for range 4 {
		tx, err := w.sim.Fund(w.own[0].Address, w.coin, decimal.New(5, 0))
		require.NoError(t, err)
		if w.sim.Family() == chain.UTXOFamily {
			w.coins = append(w.coins, chain.Coin{
				Outpoint: tx + ":0", Address: w.own[0].Address, Key: w.own[0].Key, Amount: must(gas.Units(decimal.New(5, 0), ledger.Down)),
			})
		}
	}
	w.config = keys.SignerConfig{
		Seed: seed, Chains: map[chain.Network]keys.Chain{n: w.client}, Registry: keys.StoreRegistry{Store: w.store},
		KeyOf: func(_ context.Context, _ chain.Network, a chain.Address) (chain.KeyRef, bool, error) {
			for _, d := range w.own {
				if d.Address == a {
					return d.Key, true, nil
				}
			}
			return "", false, nil
		},
		Allow: func(_ context.Context, in chain.Intent, pays ledger.Amount) error {
			w.asked++
			if pays > 3e8 {
				return errors.New("above the limit")
			}
			return nil
		},
	}
	w.restart()
	return w
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func (w *world) restart() {
	var err error
	w.signer, err = keys.NewSigner(w.config)
	require.NoError(w.t, err)
}

func (w *world) intent(id string) chain.Intent {
	in := chain.Intent{
		ID: id, Purpose: chain.ForWithdrawal, Tenant: "a", Network: w.sim.Network(), Currency: w.coin,
		To: w.customer, Amount: 1e8, MaxCost: 1e7, Memo: "m",
	}
	if w.sim.Family() == chain.AccountFamily {
		in.From, in.FromKey = w.own[0].Address, w.own[0].Key
	}
	return in
}

// build makes the payload of an intent: with what nonce, or which coins.
func (w *world) build(in chain.Intent, slot, attempt int) chain.Unsigned {
	fee, err := w.client.EstimateFee(w.t.Context(), in)
	require.NoError(w.t, err)
	o := chain.Order{Intent: in, Fee: fee, Attempt: attempt, Nonce: uint64(slot), Change: w.own[1].Address}
	if w.sim.Family() == chain.UTXOFamily {
		o.Coins = w.coins[slot : slot+1]
	}
	u, err := w.client.Build(w.t.Context(), o)
	require.NoError(w.t, err)
	return u
}

func (w *world) ask(in chain.Intent, u chain.Unsigned, attempt string) chain.SignRequest {
	r := chain.SignRequest{Intent: in, Attempt: attempt, Unsigned: u}
	for range u.Digests {
		r.Keys = append(r.Keys, w.own[0].Key)
	}
	return r
}

func (w *world) request(id string, slot int) chain.SignRequest {
	in := w.intent(id)
	return w.ask(in, w.build(in, slot, 1), id+"/1")
}

func (w *world) signs(r chain.SignRequest) []chain.Signature {
	w.t.Helper()
	sigs, err := w.signer.Sign(w.t.Context(), r)
	require.NoError(w.t, err)
	return sigs
}

func (w *world) refuses(r chain.SignRequest, why ...any) {
	w.t.Helper()
	sigs, err := w.signer.Sign(w.t.Context(), r)
	require.ErrorIs(w.t, err, chain.ErrRefused, why...)
	require.Nil(w.t, sigs)
}

func both(t *testing.T, f func(t *testing.T, w *world)) {
	t.Parallel()
	for _, n := range []chain.Network{"ETH", "BTC"} {
		t.Run(string(n), func(t *testing.T) { t.Parallel(); f(t, newWorld(t, n)) })
	}
}

func TestSign(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		r := w.request("w1", 0)
		sigs := w.signs(r)
		signed, err := w.client.Assemble(r.Unsigned, sigs) // which verifies them
		require.NoError(t, err)
		require.NotEmpty(t, signed.Raw)
		require.Equal(t, 1, w.asked)
		for i, purpose := range []chain.Purpose{chain.ForSweep, chain.ForGas} {
			in := w.intent("i-" + string(purpose))
			in.Purpose, in.To = purpose, w.own[2].Address
			w.signs(w.ask(in, w.build(in, 1+2*i, 1), in.ID))
		}
		nameless := w.intent("nameless")
		nameless.Purpose, nameless.To = "x", w.own[2].Address
		w.refuses(w.ask(nameless, w.build(nameless, 2, 1), "nameless/1"), "an unknown purpose, though it pays us")
		all := w.intent("all")
		all.Purpose, all.To, all.All, all.Amount, all.Memo = chain.ForSweep, w.own[3].Address, true, 0, ""
		w.signs(w.ask(all, w.build(all, 2, 1), "all/1"))
		cancel := w.intent("w1") // the filling of a slot bears its intent's id
		cancel.Purpose, cancel.Amount, cancel.To, cancel.Memo = chain.ForCancel, 0, w.own[0].Address, ""
		w.signs(w.ask(cancel, w.build(cancel, 0, 3), "w1/cancel"))
	})
}

// TestW13_EditedIntent edits every field of an intent after the payload was
// built, and signs nothing.
func TestW13_EditedIntent(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		foreign := w.sim.Customer("thief")
		for name, edit := range map[string]func(in *chain.Intent){
			"id":           func(in *chain.Intent) { in.ID = "" },
			"purpose":      func(in *chain.Intent) { in.Purpose = chain.ForSweep },
			"gas":          func(in *chain.Intent) { in.Purpose = chain.ForGas },
			"cancel":       func(in *chain.Intent) { in.Purpose = chain.ForCancel },
			"no purpose":   func(in *chain.Intent) { in.Purpose = "" },
			"network":      func(in *chain.Intent) { in.Network = "LTC" },
			"currency":     func(in *chain.Intent) { in.Currency = "USDT_ETH" },
			"from":         func(in *chain.Intent) { in.From = w.own[1].Address },
			"from key":     func(in *chain.Intent) { in.FromKey = w.own[1].Key },
			"to":           func(in *chain.Intent) { in.To = foreign },
			"to ours":      func(in *chain.Intent) { in.To = w.own[1].Address },
			"memo":         func(in *chain.Intent) { in.Memo = "n" },
			"amount up":    func(in *chain.Intent) { in.Amount++ },
			"amount down":  func(in *chain.Intent) { in.Amount-- },
			"no amount":    func(in *chain.Intent) { in.Amount = 0 },
			"negative":     func(in *chain.Intent) { in.Amount = -in.Amount },
			"all":          func(in *chain.Intent) { in.All = true },
			"cost":         func(in *chain.Intent) { in.MaxCost = 1 },
			"no cost":      func(in *chain.Intent) { in.MaxCost = 0 },
			"cost below 0": func(in *chain.Intent) { in.MaxCost = -1 },
		} {
			r := w.request("w1", 0)
			edit(&r.Intent)
			w.refuses(r, name)
		}
		require.NoError(t, w.empty(), "and nothing was bound")
		w.signs(w.request("w1", 0))
	})
}

func (w *world) empty() error {
	for _, table := range keys.Tables() {
		n, err := w.store.Count(w.t.Context(), storage.Query{Table: table})
		if err != nil || n != 0 {
			return fmt.Errorf("%d rows in %s: %w", n, table.Name, err)
		}
	}
	return nil
}

// TestW13_EditedPayload builds what a thief would like to have signed, under an
// honest intent.
func TestW13_EditedPayload(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		foreign := w.sim.Customer("thief")
		honest := w.intent("w1")
		for name, edit := range map[string]func(in *chain.Intent){
			"to":     func(in *chain.Intent) { in.To = foreign },
			"amount": func(in *chain.Intent) { in.Amount++ },
			"memo":   func(in *chain.Intent) { in.Memo = "" },
			"cancel": func(in *chain.Intent) { in.Purpose, in.Amount, in.To = chain.ForCancel, 0, foreign },
		} {
			in := honest
			edit(&in)
			w.refuses(w.ask(honest, w.build(in, 0, 1), "w1/1"), name)
		}
		limit := honest
		limit.Amount = 4e8
		w.refuses(w.ask(limit, w.build(limit, 0, 1), "w1/1"), "the host's own limit")

		u := w.build(honest, 0, 1)
		for name, edit := range map[string]func(r *chain.SignRequest){
			"a byte":     func(r *chain.SignRequest) { r.Unsigned.Payload = append(bytes.Clone(u.Payload), ' ') },
			"no payload": func(r *chain.SignRequest) { r.Unsigned.Payload = nil },
			"network":    func(r *chain.SignRequest) { r.Unsigned.Network = "LTC" },
			"spends":     func(r *chain.SignRequest) { r.Unsigned.Spends = []string{"x/1"} },
			"no spends":  func(r *chain.SignRequest) { r.Unsigned.Spends = nil },
			"digest":     func(r *chain.SignRequest) { r.Unsigned.Digests = []chain.Digest{{From: w.own[0].Address}} },
			"sender": func(r *chain.SignRequest) {
				r.Unsigned.Digests = []chain.Digest{{Hash: u.Digests[0].Hash, From: w.own[1].Address}}
			},
			"no key":        func(r *chain.SignRequest) { r.Keys = nil },
			"two keys":      func(r *chain.SignRequest) { r.Keys = append(r.Keys, w.own[0].Key) },
			"another's key": func(r *chain.SignRequest) { r.Keys[0], r.Intent.FromKey = w.own[1].Key, "" },
			"no such path":  func(r *chain.SignRequest) { r.Keys[0], r.Intent.FromKey = "m/x", "" },
			"no attempt":    func(r *chain.SignRequest) { r.Attempt = "" },
			"swapped":       func(r *chain.SignRequest) { r.Unsigned.Payload = w.build(honest, 1, 1).Payload },
		} {
			r := w.ask(honest, u, "w1/1")
			edit(&r)
			w.refuses(r, name)
		}
		require.NoError(t, w.empty())
		// Every byte of the payload, one after the other.
		rng := rand.New(rand.NewPCG(1, 2))
		for i := range u.Payload {
			r := w.ask(honest, u, "w1/1")
			b := bytes.Clone(u.Payload)
			b[i] ^= byte(1 + rng.IntN(255))
			r.Unsigned.Payload = b
			w.refuses(r, "byte %d: %q", i, b)
			if seen, err := w.client.Inspect(b); err == nil { // and where the request agrees with it
				r = w.ask(honest, seen, "w1/1")
				if sigs, err := w.signer.Sign(t.Context(), r); err == nil {
					require.Equal(t, u.Outputs[0], seen.Outputs[0])
					require.LessOrEqual(t, seen.MaxCost, honest.MaxCost)
					require.Equal(t, u.Memo, seen.Memo)
					require.NotEmpty(t, sigs)
					w.store = memory.New()
					require.NoError(t, w.store.Open(t.Context(), keys.Tables()...))
					w.config.Registry = keys.StoreRegistry{Store: w.store}
					w.restart()
				}
			}
		}
	})
}

// fixed is a network that sees in every payload what a test says.
type fixed struct {
	keys.Chain
	seen chain.Unsigned
}

func (f *fixed) Inspect([]byte) (chain.Unsigned, error) { return f.seen, nil }

// TestSign_Outputs: whatever the payload calls change, only what is ours is.
func TestSign_Outputs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "BTC")
	in := w.intent("w1")
	u := w.build(in, 0, 1)
	f := &fixed{Chain: w.client}
	w.config.Chains = map[chain.Network]keys.Chain{"BTC": f}
	foreign := w.sim.Customer("thief")
	pay := chain.Output{To: in.To, Currency: in.Currency, Amount: in.Amount}
	out := func(to chain.Address, a ledger.Amount, change bool) chain.Output {
		return chain.Output{To: to, Currency: in.Currency, Amount: a, Change: change}
	}
	try := func(outputs ...chain.Output) error {
		w.restart()
		f.seen = u
		f.seen.Outputs = outputs
		r := w.ask(in, f.seen, "w1/1")
		_, err := w.signer.Sign(t.Context(), r)
		return err
	}
	for name, outputs := range map[string][]chain.Output{
		"foreign change":         {pay, out(foreign, 5, true)},
		"paid twice":             {pay, pay},
		"paid nothing":           {},
		"only change":            {out(w.own[1].Address, 5, true)},
		"another asset":          {{To: in.To, Currency: "LTC", Amount: in.Amount}},
		"to the payee as change": {pay, out(in.To, 1, true)},
		"in two parts":           {out(in.To, in.Amount/2, false), out(in.To, in.Amount/2, false)},
		"negative":               {pay, out(w.own[1].Address, -5, true)},
	} {
		require.ErrorIs(t, try(outputs...), chain.ErrRefused, name)
	}
	w.config.KeyOf = nil // then the sender's own address is all that is ours
	require.ErrorIs(t, try(pay, out(w.own[1].Address, 5, true)), chain.ErrRefused)
	w.config.KeyOf = func(context.Context, chain.Network, chain.Address) (chain.KeyRef, bool, error) {
		return "", true, errGone
	}
	require.ErrorIs(t, try(pay, out(w.own[1].Address, 5, true)), errGone)
	w.config.KeyOf = nil
	require.NoError(t, try(pay, out(w.own[0].Address, 5, true)))
}

var errGone = errors.New("the store is gone")

// TestW13_EditedDirectory: a directory of addresses that says that a foreign address is of
// one of our keys, or of a key that there is not, is not believed.
func TestW13_EditedDirectory(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		foreign := w.sim.Customer("thief")
		in := w.intent("i1")
		in.Purpose, in.To = chain.ForSweep, foreign
		r := w.ask(in, w.build(in, 0, 1), "i1/1")
		for _, ref := range []chain.KeyRef{w.own[0].Key, w.own[1].Key, "", "m/x", "m/44'/1'", "ed25519/m/x", "ed25519/m/1'"} {
			w.config.KeyOf = func(context.Context, chain.Network, chain.Address) (chain.KeyRef, bool, error) { return ref, true, nil }
			w.restart()
			w.refuses(r, ref)
		}
		w.config.Chains = map[chain.Network]keys.Chain{w.sim.Network(): &lax{w.client, foreign}}
		w.config.KeyOf = func(context.Context, chain.Network, chain.Address) (chain.KeyRef, bool, error) {
			return "m/x", true, nil
		}
		w.restart()
		w.refuses(r, "a key that there is not has no address")
	})
}

// lax gives an address for no key at all.
type lax struct {
	keys.Chain
	address chain.Address
}

func (l *lax) AddressOf(pub chain.PublicKey) (chain.Address, error) {
	if len(pub) == 0 {
		return l.address, nil
	}
	return l.Chain.AddressOf(pub)
}

// doubtful reads every payload, and says that it could not.
type doubtful struct{ keys.Chain }

func (d *doubtful) Inspect(payload []byte) (chain.Unsigned, error) {
	seen, err := d.Chain.Inspect(payload)
	return seen, errors.Join(err, errors.New("there is more behind it"))
}

func TestSign_PayloadMustBeRead(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		r := w.request("w1", 0)
		w.config.Chains = map[chain.Network]keys.Chain{w.sim.Network(): &doubtful{w.client}}
		w.restart()
		w.refuses(r)
	})
}

// TestW13_Together: every payment of a transaction is an intent's, and asked for.
func TestW13_Together(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "BTC")
	first, second := w.intent("w1"), w.intent("w2")
	second.To, second.Amount = w.sim.Customer("another payee"), 15e7
	first.Memo, second.Memo = "", ""
	fee, err := w.client.EstimateFee(t.Context(), first)
	require.NoError(t, err)
	build := func(also ...chain.Intent) chain.Unsigned {
		u, err := w.client.Build(t.Context(), chain.Order{
			Intent: first, Also: also, Fee: fee, Attempt: 1, Coins: w.coins[:1], Change: w.own[1].Address,
		})
		require.NoError(t, err)
		return u
	}
	u := build(second)
	good := func() chain.SignRequest {
		r := w.ask(first, u, "w1/1")
		r.Also = []chain.Intent{second}
		return r
	}
	for name, edit := range map[string]func(r *chain.SignRequest){
		"nobody says what the second output is": func(r *chain.SignRequest) { r.Also = nil },
		"one that is not paid":                  func(r *chain.SignRequest) { r.Also = append(r.Also, w.intent("w3")) },
		"the same twice":                        func(r *chain.SignRequest) { r.Also = append(r.Also, second); r.Unsigned = build(second, second) },
		"itself":                                func(r *chain.SignRequest) { r.Also[0].ID = first.ID },
		"no name":                               func(r *chain.SignRequest) { r.Also[0].ID = "" },
		"another amount":                        func(r *chain.SignRequest) { r.Also[0].Amount++ },
		"another recipient":                     func(r *chain.SignRequest) { r.Also[0].To = w.customer },
		"another currency":                      func(r *chain.SignRequest) { r.Also[0].Currency = "LTC" },
		"another tenant's":                      func(r *chain.SignRequest) { r.Also[0].Tenant = "somebody else" },
		"another network":                       func(r *chain.SignRequest) { r.Also[0].Network = "LTC" },
		"a memo":                                func(r *chain.SignRequest) { r.Also[0].Memo = "m" },
		"all":                                   func(r *chain.SignRequest) { r.Also[0].All = true },
		"no cost":                               func(r *chain.SignRequest) { r.Also[0].MaxCost = 0 },
		"a cost beyond counting":                func(r *chain.SignRequest) { r.Also[0].MaxCost = 1<<63 - 1 },
		"a sweep":                               func(r *chain.SignRequest) { r.Also[0].Purpose = chain.ForSweep },
		"with a sweep":                          func(r *chain.SignRequest) { r.Intent.Purpose = chain.ForSweep },
		"from elsewhere":                        func(r *chain.SignRequest) { r.Also[0].From = w.own[0].Address },
	} {
		r := good()
		edit(&r)
		w.refuses(r, name)
	}
	require.NoError(t, w.empty(), "and nothing was bound")
	second.Amount = 3e8 + 1
	u = build(second)
	w.refuses(good(), "the host's limit is asked for each")
	second.Amount = 15e7
	u = build(second)
	var asked []string
	w.config.Allow = func(_ context.Context, in chain.Intent, pays ledger.Amount) error {
		require.Equal(t, in.Amount, pays)
		asked = append(asked, in.ID)
		return nil
	}
	w.restart()
	w.signs(good())
	require.ElementsMatch(t, []string{"w1", "w2"}, asked)
}

func TestK04_Signatures(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		half := new(secp256k1.ModNScalar)
		pubs := map[string]bool{}
		rs := map[string][]byte{}
		for slot := range 4 {
			for attempt := 1; attempt <= 4; attempt++ {
				in := w.intent(fmt.Sprint("w", slot))
				u := w.build(in, slot, attempt)
				r := w.ask(in, u, fmt.Sprintf("w%d/%d", slot, attempt))
				first := w.signs(r)
				w.restart()
				require.Equal(t, first, w.signs(r), "deterministic")
				for i, sig := range first {
					require.Len(t, sig, 65)
					require.LessOrEqual(t, sig[64], byte(1))
					require.False(t, half.SetByteSlice(sig[32:64]))
					require.False(t, half.IsOverHalfOrder(), "low S")
					pub, _, err := ecdsa.RecoverCompact(append([]byte{27 + 4 + sig[64]}, sig[:64]...), u.Digests[i].Hash[:])
					require.NoError(t, err)
					pubs[string(pub.SerializeCompressed())] = true
					var rr, ss secp256k1.ModNScalar
					rr.SetByteSlice(sig[:32])
					ss.SetByteSlice(sig[32:64])
					require.True(t, ecdsa.NewSignature(&rr, &ss).Verify(u.Digests[i].Hash[:], pub))
					digest := u.Digests[i].Hash
					if d, ok := rs[string(sig[:32])]; ok {
						require.Equal(t, d, digest[:], "one nonce for two digests gives the key away")
					}
					rs[string(sig[:32])] = digest[:]
					// RFC 6979 says which nonce it is: the library's own, checked there by its vectors.
					private, err := w.config.Seed.PrivateKey(string(w.own[0].Key))
					require.NoError(t, err)
					k := secp256k1.NonceRFC6979(private, digest[:], nil, nil, 0)
					var point secp256k1.JacobianPoint
					secp256k1.ScalarBaseMultNonConst(k, &point)
					point.ToAffine()
					require.Equal(t, point.X.Bytes()[:], []byte(sig[:32]))
				}
			}
		}
		require.Len(t, pubs, 1)
	})
}

// A signature that a fault of the machine made wrong can tell the key to whoever also has
// the right one: it is not handed out.
func TestK04_WrongSignatureIsNotHandedOut(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		r := w.request("w", 0)
		for _, bit := range []int{0, 255, 256, 511} {
			w.signer.Faulty(bit)
			w.refuses(r, "bit %d", bit)
		}
		w.restart()
		w.signs(r)
	})
}

func TestK05_SignOnce(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		r := w.request("w1", 0)
		first := w.signs(r)
		require.Equal(t, first, w.signs(r), "the same again is the same")
		for _, stage := range []string{"same process", "after a restart"} {
			in := w.intent("w1")
			other := w.ask(in, w.build(in, 0, 2), "w1/1")
			w.refuses(other, "another payload for one attempt, %s", stage)
			w.refuses(w.ask(in, w.build(in, 1, 1), "w1/1"), "another slot for one attempt, %s", stage)
			w.refuses(w.request("w2", 0), "another intent for one slot, %s", stage)
			thief := r
			thief.Intent.ID = "w9"
			w.refuses(thief, "the same payload for another intent, %s", stage)
			thief.Attempt = "w9/1"
			w.refuses(thief, "the same payload for another intent and attempt, %s", stage)
			w.restart()
			require.Equal(t, first, w.signs(r))
		}
		in := w.intent("w1")
		w.signs(w.ask(in, w.build(in, 0, 2), "w1/2")) // a replacement shares the slot
		w.signs(w.request("w2", 1))                   // another intent has its own

		// A request whose key is wrong binds nothing.
		r = w.request("w3", 2)
		r.Keys[0], r.Intent.FromKey = w.own[1].Key, ""
		w.refuses(r)
		w.signs(w.request("w4", 2))
	})
}

// TestK05_Concurrent: many ask at once, through signers of their own, for one
// attempt or for one slot; on one store exactly one wins.
func TestK05_Concurrent(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.db")
	require.NoError(t, sqlite.Migrate(t.Context(), path, keys.Tables()...))
	db, err := sqlite.Open(path, sqlite.Options{})
	require.NoError(t, err)
	require.NoError(t, db.Open(t.Context(), keys.Tables()...))
	t.Cleanup(func() { _ = db.Close() })
	for name, store := range map[string]storage.Store{"memory": nil, "sqlite": db} {
		w := newWorld(t, "ETH")
		if store != nil {
			w.config.Registry = keys.StoreRegistry{Store: store}
		}
		w.config.Allow = nil
		const askers = 8
		rounds := 40
		if store != nil {
			rounds = 8
		}
		for round := range rounds {
			var requests []chain.SignRequest
			for i := range askers {
				in := w.intent(fmt.Sprint("w", round))
				attempt := fmt.Sprintf("w%d/1", round)
				if round%2 == 1 { // one slot, many intents; else one attempt, many payloads
					in.ID = fmt.Sprintf("w%d-%d", round, i)
					attempt = in.ID
				}
				requests = append(requests, w.ask(in, w.build(in, round, 1+i), attempt))
			}
			var wg sync.WaitGroup
			errs := make([]error, askers)
			begin := make(chan struct{})
			for i := range askers {
				s, err := keys.NewSigner(w.config)
				require.NoError(t, err)
				wg.Go(func() {
					<-begin
					_, errs[i] = s.Sign(t.Context(), requests[i])
				})
			}
			close(begin)
			wg.Wait()
			won := 0
			for _, err := range errs {
				if err == nil {
					won++
				} else {
					require.ErrorIs(t, err, chain.ErrRefused, name)
				}
			}
			require.Equal(t, 1, won, "%s, round %d", name, round)
		}
	}
}

func TestNewSignerRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	for _, edit := range []func(c *keys.SignerConfig){
		func(c *keys.SignerConfig) { c.Seed = nil },
		func(c *keys.SignerConfig) { c.Chains = nil },
		func(c *keys.SignerConfig) { c.Registry = nil },
	} {
		c := w.config
		edit(&c)
		_, err := keys.NewSigner(c)
		require.Error(t, err)
	}
}

// Many requests are asked at once. Each is signed or refused as if it were alone, in their
// order, whether the Registry binds many at once or one after the other.
func TestFP01_EachOfManyIsSignedAsAlone(t *testing.T) {
	t.Parallel()
	for name, wrap := range map[string]func(keys.StoreRegistry) keys.Registry{
		"many": func(r keys.StoreRegistry) keys.Registry { return r },
		"one":  func(r keys.StoreRegistry) keys.Registry { return struct{ keys.Registry }{r} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "ETH")
			w.config.Registry = wrap(keys.StoreRegistry{Store: w.store})
			w.restart()
			ask := func(id string, slot, attempt int, edit func(*chain.Intent)) chain.SignRequest {
				in := w.intent(id)
				if edit != nil {
					edit(&in)
				}
				return w.ask(in, w.build(in, slot, attempt), in.ID+"/1")
			}
			earlier := ask("earlier", 9, 1, nil)
			_, err := w.signer.Sign(t.Context(), earlier)
			require.NoError(t, err)
			stranger := ask("stranger", 6, 1, func(in *chain.Intent) { in.Purpose, in.Memo = chain.ForSweep, "" })
			requests := []chain.SignRequest{
				ask("a", 0, 1, nil),
				ask("a", 0, 2, nil), // the attempt with another payload
				ask("b", 0, 1, nil), // the slot of another intent
				ask("c", 2, 1, func(in *chain.Intent) { in.Amount = 4e8 }), // above the limit
				stranger,            // to an address that is not ours
				ask("d", 9, 1, nil), // a slot that was signed for before
				earlier,
				ask("e", 7, 1, nil),
			}
			for range 2 { // asked again, each gets the same answer
				sigs, errs := w.signer.SignMany(t.Context(), requests)
				require.Len(t, sigs, len(requests))
				for i, good := range []bool{true, false, false, false, false, false, true, true} {
					if !good {
						require.ErrorIs(t, errs[i], chain.ErrRefused, "request %d", i)
						require.Empty(t, sigs[i], "request %d", i)
						continue
					}
					require.NoError(t, errs[i], "request %d", i)
					alone, err := w.signer.Sign(t.Context(), requests[i])
					require.NoError(t, err)
					require.Equal(t, alone, sigs[i], "request %d", i)
				}
			}
		})
	}
}

// Many sweeps to one address are bound in three calls of the store, whoever many they are,
// and the directory is asked for the address once.
func TestFP01_ManyAreBoundTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	s := &failing.Store{Store: w.store, Counts: func(failing.Call) bool { return true }}
	w.config.Registry = keys.StoreRegistry{Store: s}
	looks, keyOf := 0, w.config.KeyOf
	w.config.KeyOf = func(ctx context.Context, n chain.Network, a chain.Address) (chain.KeyRef, bool, error) {
		looks++
		return keyOf(ctx, n, a)
	}
	w.restart()
	var requests []chain.SignRequest
	for i := range 40 {
		in := w.intent(fmt.Sprint("s", i))
		in.Purpose, in.Memo, in.To = chain.ForSweep, "", w.own[2].Address
		requests = append(requests, w.ask(in, w.build(in, i, 1), in.ID+"/1"))
	}
	s.Calls = 0
	_, errs := w.signer.SignMany(t.Context(), requests)
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.Equal(t, 3, s.Calls)
	require.Equal(t, 1, looks)
	for at := 1; at <= 3; at++ { // and where one of these calls fails, nothing is handed out that is not bound
		for i := range requests {
			in := w.intent(fmt.Sprint("f", at, "-", i))
			in.Purpose, in.Memo, in.To = chain.ForSweep, "", w.own[2].Address
			requests[i] = w.ask(in, w.build(in, 100*at+i, 1), in.ID+"/1")
		}
		s.Calls, s.FailAt = 0, at
		sigs, errs := w.signer.SignMany(t.Context(), requests)
		for i := range requests {
			if errs[i] != nil {
				require.Empty(t, sigs[i])
				continue
			}
			_, _, bound, err := keys.SignedAttempts.One(t.Context(), w.store, "network/ETH", requests[i].Attempt)
			require.NoError(t, err)
			require.True(t, bound)
		}
	}
}

// A signer that has the keys of mandates signs no withdrawal without a right one, also among
// those that one transaction pays together. What goes to addresses of ours needs none.
func TestFS02_SignerAsksForMandates(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		host, old := mandate.Derive(bytes.Repeat([]byte{1}, 32)), mandate.Derive(bytes.Repeat([]byte{2}, 32))
		w.config.Mandates = mandate.Keys{host, old}
		w.restart()
		order := func(in chain.Intent, keys ...mandate.Key) chain.Intent {
			in.Mandate = mandate.Keys(keys).Make(mandate.Terms{
				Store: "s", Tenant: in.Tenant, Order: in.ID, Kind: in.Purpose, Network: in.Network, Currency: in.Currency,
				To: in.To, Memo: in.Memo, Amount: in.Amount, Requested: in.Amount + 1, Wallet: "master",
			})
			return in
		}
		w.refuses(w.ask(w.intent("none"), w.build(w.intent("none"), 0, 1), "none/1"))
		stranger := order(w.intent("forged"), mandate.Derive(bytes.Repeat([]byte{3}, 32)))
		w.refuses(w.ask(stranger, w.build(stranger, 0, 1), "forged/1"))
		another := w.intent("another")
		another.Mandate = order(w.intent("first"), host).Mandate
		w.refuses(w.ask(another, w.build(another, 0, 1), "another/1"))
		dearer := order(w.intent("dearer"), host)
		dearer.Amount++
		w.refuses(w.ask(dearer, w.build(dearer, 0, 1), "dearer/1"))
		for slot, key := range []mandate.Key{host, old} {
			in := order(w.intent("right "+key.ID), key)
			w.signs(w.ask(in, w.build(in, slot, 1), in.ID))
		}
		sweep := w.intent("sweep")
		sweep.Purpose, sweep.To = chain.ForSweep, w.own[2].Address
		w.signs(w.ask(sweep, w.build(sweep, 2, 1), "sweep/1"))
		if w.sim.Family() != chain.UTXOFamily {
			return
		}
		first, second := w.intent("w1"), w.intent("w2")
		second.To, first.Memo, second.Memo = w.sim.Customer("another payee"), "", ""
		first = order(first, host)
		fee, err := w.client.EstimateFee(t.Context(), first)
		require.NoError(t, err)
		together := func(also chain.Intent) chain.SignRequest {
			u, err := w.client.Build(t.Context(), chain.Order{
				Intent: first, Also: []chain.Intent{also}, Fee: fee, Attempt: 1, Coins: w.coins[3:4], Change: w.own[1].Address,
			})
			require.NoError(t, err)
			r := w.ask(first, u, "w1/1")
			r.Also = []chain.Intent{also}
			return r
		}
		w.refuses(together(second))
		w.signs(together(order(second, old)))
	})
}

// A signer with mandates signs for an order only what excludes what it signed for it before, and
// for each order of a batch, whoever leads it.
func TestFS02_SignerBindsAllOfABatch(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		host := mandate.Keys{mandate.Derive(bytes.Repeat([]byte{1}, 32))}
		w.config.Mandates = host
		w.restart()
		order := func(id string) chain.Intent {
			in := w.intent(id)
			in.Memo = ""
			in.Mandate = host.Make(mandate.Terms{
				Store: "s", Tenant: in.Tenant, Order: in.ID, Kind: in.Purpose, Network: in.Network, Currency: in.Currency, To: in.To, Amount: in.Amount,
			})
			return in
		}
		first, second := order("w1"), order("w2")
		w.signs(w.ask(first, w.build(first, 0, 1), "w1/1"))
		w.refuses(w.ask(first, w.build(first, 1, 1), "w1/2"), "another nonce, or coin")
		w.signs(w.ask(first, w.build(first, 0, 2), "w1/2"))
		if w.sim.Family() != chain.UTXOFamily {
			return
		}
		together := func(leader, also chain.Intent, coin int, attempt string) chain.SignRequest {
			fee, err := w.client.EstimateFee(t.Context(), leader)
			require.NoError(t, err)
			u, err := w.client.Build(t.Context(), chain.Order{
				Intent: leader, Also: []chain.Intent{also}, Fee: fee, Attempt: 1, Coins: w.coins[coin : coin+1], Change: w.own[1].Address,
			})
			require.NoError(t, err)
			r := w.ask(leader, u, attempt)
			r.Also = []chain.Intent{also}
			return r
		}
		w.refuses(together(second, first, 1, "w2/1"), "a member that is paid already")
		third := order("w3")
		w.signs(together(second, third, 1, "w2/1"))
		w.refuses(w.ask(third, w.build(third, 2, 1), "w3/2"), "a member alone")
		w.refuses(w.ask(second, w.build(second, 2, 1), "w2/2"), "its leader alone")
	})
}
