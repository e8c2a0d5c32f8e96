package chaintest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/proof"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// testCase is one promise. needs says what the network lacks for it, "" where
// it has it all.
type testCase struct {
	name  string
	needs func(k *kit) string
	run   func(k *kit)
}

// kit is a Harness with what the cases share.
type kit struct {
	*Harness
	t        *testing.T
	ctx      context.Context
	accounts int
	trail    []chain.Block
	seen     []chain.Transfer
}

func newKit(t *testing.T, h *Harness) *kit {
	t.Helper()
	require.NotNil(t, h.Client, "chaintest: Harness.Client is required")
	require.NotNil(t, h.Registry, "chaintest: Harness.Registry is required")
	require.NotNil(t, h.Pay, "chaintest: Harness.Pay is required")
	require.NotNil(t, h.Mine, "chaintest: Harness.Mine is required")
	c := *h
	if c.Amount.IsZero() {
		c.Amount = decimal.NewFromInt(1)
	}
	k := &kit{Harness: &c, t: t, ctx: t.Context()}
	if c.Context != nil {
		k.ctx = c.Context(t)
	}
	return k
}

// account makes a fresh account.
func (k *kit) account() Account {
	k.t.Helper()
	n := k.accounts
	k.accounts++
	if k.NewAccount != nil {
		return k.NewAccount(k.t, n)
	}
	a, err := Secp256k1Account(k.Client, fmt.Sprintf("%s/%d", k.t.Name(), n))
	require.NoError(k.t, err)
	return a
}

// Secp256k1Account makes the account of the key that is the SHA-256 of a seed
// text: for tests alone.
func Secp256k1Account(c chain.Client, seed string) (Account, error) {
	sum := sha256.Sum256([]byte(seed))
	key := secp256k1.PrivKeyFromBytes(sum[:])
	pub := chain.PublicKey(key.PubKey().SerializeCompressed())
	address, err := c.AddressOf(pub)
	if err != nil {
		return Account{}, err
	}
	sign := func(digest [32]byte) (chain.Signature, error) {
		compact := ecdsa.SignCompact(key, digest[:], true) // header ‖ r ‖ s
		return append(slices.Clone(compact[1:]), compact[0]-27-4), nil
	}
	return Account{Address: address, Key: pub, Sign: sign}, nil
}

func (k *kit) currency(code string) *chain.Currency {
	k.t.Helper()
	c, err := k.Registry.Currency(code)
	require.NoError(k.t, err)
	return c
}

func (k *kit) units(code string, d decimal.Decimal) ledger.Amount {
	k.t.Helper()
	a, err := k.currency(code).Units(d, ledger.Down)
	require.NoError(k.t, err)
	return a
}

// start sets the trail to the head, as a new scanner does.
func (k *kit) start() {
	k.t.Helper()
	s, err := k.Client.Scan(k.ctx, nil, watch(), 10)
	require.NoError(k.t, err)
	require.Len(k.t, s.Blocks, 1, "an empty trail starts at the head alone")
	require.Empty(k.t, s.Blocks[0].Transfers, "the head of an empty trail comes without transfers")
	require.Zero(k.t, s.Rewound)
	k.trail, k.seen = []chain.Block{s.Blocks[0].Block}, nil
}

// catchUp scans in pages of three until nothing is left, and checks on the way
// that blocks link to each other and to the trail. It returns what was rewound.
func (k *kit) catchUp(w chain.Watch) int {
	k.t.Helper()
	rewound := 0
	w = k.few(w)
	for range 1000 {
		s, err := k.Client.Scan(k.ctx, k.trail, w, 3)
		require.NoError(k.t, err)
		rewound += k.apply(s)
		if len(s.Blocks) == 0 {
			return rewound
		}
	}
	require.FailNow(k.t, "Scan never came to the head")
	return 0
}

// few is w, as a chain.FewWatch where the case is of histories.
func (k *kit) few(w chain.Watch) chain.Watch {
	set, ok := w.(*watchSet)
	if !k.Histories || !ok {
		return w
	}
	tagger, _ := k.Client.(chain.Tagger)
	return fewSet{set, tagger}
}

// apply puts one answer onto the trail.
func (k *kit) apply(s chain.Scan) int {
	k.t.Helper()
	require.LessOrEqual(k.t, len(s.Blocks), 3, "no more blocks than asked for")
	require.Less(k.t, s.Rewound, len(k.trail), "something of the trail is left")
	gone := map[string]bool{}
	for _, b := range k.trail[len(k.trail)-s.Rewound:] {
		gone[b.Hash] = true
	}
	k.trail = k.trail[:len(k.trail)-s.Rewound]
	k.seen = slices.DeleteFunc(k.seen, func(x chain.Transfer) bool { return gone[x.Block.Hash] })
	for _, b := range s.Blocks {
		last := k.trail[len(k.trail)-1]
		if k.Histories {
			require.Greater(k.t, b.Height, last.Height, "heights rise")
		} else {
			require.Equal(k.t, last.Height+1, b.Height, "heights follow without a gap")
		}
		require.Equal(k.t, last.Hash, b.Parent, "each block is the child of the one before")
		require.NotEmpty(k.t, b.Hash)
		require.False(k.t, b.Time.IsZero(), "blocks have a time")
		for _, x := range b.Transfers {
			require.Equal(k.t, b.Block, x.Block, "a transfer names the block it is in")
		}
		k.trail = append(k.trail, b.Block)
		k.seen = append(k.seen, b.Transfers...)
	}
	return s.Rewound
}

// of returns the transfers seen so far that a transaction made.
func (k *kit) of(tx string) []chain.Transfer {
	return slices.DeleteFunc(slices.Clone(k.seen), func(x chain.Transfer) bool { return x.Tx != tx })
}

// only expects one transfer of a transaction and returns it.
func (k *kit) only(tx string) chain.Transfer {
	k.t.Helper()
	all := k.of(tx)
	require.Len(k.t, all, 1, "transfers of %s", tx)
	return all[0]
}

// pay is one plain payment in the native coin.
func (k *kit) pay(to chain.Address) string {
	k.t.Helper()
	return k.Pay(k.t, Payment{To: to, Currency: k.Native, Amount: k.Amount})
}

// batchCurrency is what several payments of one transaction are made in.
func (k *kit) batchCurrency() string {
	if k.Family == chain.UTXOFamily || k.Token == "" {
		return k.Native
	}
	return k.Token
}

// coin funds an account of a UTXO network with one output and returns it.
func (k *kit) coin(a Account, amount decimal.Decimal) chain.Coin {
	k.t.Helper()
	k.start()
	tx := k.Pay(k.t, Payment{To: a.Address, Currency: k.Native, Amount: amount})
	k.Mine(k.t, 1)
	k.catchUp(watch(a.Address))
	x := k.only(tx)
	return chain.Coin{
		Outpoint: fmt.Sprintf("%s:%d", x.Tx, x.Ordinal), Address: a.Address,
		Amount: k.units(k.Native, x.Amount),
	}
}

// stored makes what outgoing makes after its commit.
func (k *kit) stored(s chain.Signed) chain.Stored {
	return proof.NewStored(string(k.Client.Network()), s.Tx, s.Raw)
}

// watchSet is a Watch over a fixed set that can learn in Sync.
type watchSet struct {
	mu    sync.Mutex
	set   map[chain.Address]bool
	learn func() []chain.Address
	syncs int
	err   error
}

func watch(a ...chain.Address) *watchSet {
	w := &watchSet{set: map[chain.Address]bool{}}
	for _, x := range a {
		w.set[x] = true
	}
	return w
}

func (w *watchSet) Sync(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.syncs++
	if w.err != nil {
		return w.err
	}
	if w.learn != nil {
		for _, a := range w.learn() {
			w.set[a] = true
		}
	}
	return nil
}

func (w *watchSet) Contains(a chain.Address) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.set[a]
}

func (w *watchSet) Open() []chain.Address {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []chain.Address
	for a := range w.set {
		out = append(out, a)
	}
	slices.Sort(out)
	return out
}

// fewSet is a watchSet that lists its accounts.
type fewSet struct {
	*watchSet
	tagger chain.Tagger
}

// Few lists them all.
func (w fewSet) Few(_ context.Context, most int, _ time.Time) (list []chain.Address, few bool, err error) {
	for _, a := range w.Open() {
		if w.tagger != nil {
			if account, _, tagged := w.tagger.Untag(a); tagged {
				a = account
			}
		}
		if !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	return list, len(list) <= most, nil
}
