package keys

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// Chain is what a Signer needs of a network: reading payloads back and writing
// addresses. Every chain.Client is one; neither method needs a node.
type Chain interface {
	chain.Inspector
	AddressOf(pub chain.PublicKey) (chain.Address, error)
}

// Binding is what a signature commits a Signer to, for ever.
type Binding struct {
	Network chain.Network
	Intent  string
	Attempt string
	Payload [32]byte // SHA-256 of what is signed
	Slots   []string // "address/nonce" or outpoints
	Tx      string   // hash of the signed transaction, "" where its Chain does not make it
	// Orders are the withdrawals that it pays, and Endings what became of transactions that paid
	// them before. A Registry of this package binds nothing that would pay one of them beside
	// another transaction.
	Orders  []string
	Endings []mandate.Ending
	// Unproved says that the Signer has no Mandates, so that nobody can show it what is dead:
	// a Registry remembers Orders, and refuses nothing for them.
	Unproved bool
	// What the payload does, as the Signer read it back.
	Pays  []chain.Output // to others
	Keeps []Kept         // to addresses of ours
	Cost  ledger.Amount  // the most that the network can take, in units of its gas currency
	// Signatures are those of a Holder, which makes others each time. A LimitedRegistry
	// keeps them: BindMany puts those of the first time here.
	Signatures []chain.Signature
}

// Kept is an output to an address of ours, with the key that it was derived from.
type Kept struct {
	chain.Output
	Key chain.KeyRef
}

// Registry remembers bindings. Bind is atomic and durable before it returns:
// nil where all of it is new or known with the same content, an error that
// wraps chain.ErrRefused where the attempt is bound to another payload, a
// slot to another intent, or where a withdrawal could be paid twice: see Binding.Orders.
type Registry interface {
	Bind(ctx context.Context, b Binding) error
}

// manyRegistry is a Registry that binds many with few calls of its store. Error i belongs
// to binding i.
type manyRegistry interface {
	BindMany(ctx context.Context, bs []Binding) []error
}

// SignerConfig wires a Signer. Seed or Keys, Chains and Registry are required. It signs nothing
// with a key below the SLIP-44 coin type of another network. Accounts of one's own, without
// a coin type, must not be shared by networks that sign alike, such as BTC and LTC.
type SignerConfig struct {
	Seed     *Seed
	Keys     Holder // in place of a Seed
	Chains   map[chain.Network]Chain
	Registry Registry
	// KeyOf names the key of an address of ours, as a directory has it: App.KeyOf.
	// Change, sweeps, gas and cancels go nowhere else. The answer is a hint only: the
	// Signer derives the address from that key itself and refuses where it is another.
	// Defaults to refusing them all, but for what returns to a sending address.
	KeyOf func(ctx context.Context, n chain.Network, a chain.Address) (chain.KeyRef, bool, error)
	// Mandates are the keys that orders to pay are proved with, newest first:
	// cryptopay.MandateKeys. With them every withdrawal is refused that has no right
	// mandate, so that nobody has it signed who can write to the database alone. Defaults
	// to not asking for mandates.
	Mandates mandate.Keys
	// Allow is asked for every withdrawal: allow-lists, limits, velocity. An
	// error refuses. Defaults to allowing what the intent says.
	Allow func(ctx context.Context, in chain.Intent, pays ledger.Amount) error
}

// Signer signs with keys of one Seed or Holder.
type Signer struct {
	cfg SignerConfig
	// compact makes a signature on secp256k1: in tests also a wrong one.
	compact func(key *secp256k1.PrivateKey, hash []byte, compressed bool) []byte
}

// NewSigner checks the configuration.
func NewSigner(cfg SignerConfig) (*Signer, error) {
	if (cfg.Seed == nil) == (cfg.Keys == nil) || len(cfg.Chains) == 0 || cfg.Registry == nil {
		return nil, errors.New("keys: Seed or Keys, Chains and Registry are required")
	}
	return &Signer{cfg, ecdsa.SignCompact}, nil
}

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %s", chain.ErrRefused, fmt.Sprintf(format, args...))
}

// Sign checks and signs; see chain.Signer.
func (s *Signer) Sign(ctx context.Context, r chain.SignRequest) ([]chain.Signature, error) {
	out, errs := s.SignMany(ctx, []chain.SignRequest{r})
	return out[0], errs[0]
}

// SignMany is Sign of each request; see chain.ManySigner. KeyOf is asked once for an
// address, and a Registry that can binds all at once.
func (s *Signer) SignMany(ctx context.Context, rs []chain.SignRequest) ([][]chain.Signature, []error) {
	out, errs := make([][]chain.Signature, len(rs)), make([]error, len(rs))
	var bindings []Binding
	var signed []int // the requests that these bindings are of
	o := owners{s, map[place]chain.KeyRef{}}
	for i := range rs {
		var b Binding
		// Signed first, bound second, handed out last: a request whose keys are
		// wrong must not bind the nonce of one whose keys are right.
		if out[i], b, errs[i] = s.checked(ctx, &rs[i], o); errs[i] == nil {
			bindings, signed = append(bindings, b), append(signed, i)
		}
	}
	for n, err := range s.bind(ctx, bindings) {
		if err != nil {
			out[signed[n]], errs[signed[n]] = nil, err
		} else if kept := bindings[n].Signatures; len(kept) > 0 {
			out[signed[n]] = kept
		}
	}
	return out, errs
}

func (s *Signer) bind(ctx context.Context, bs []Binding) []error {
	if many, ok := s.cfg.Registry.(manyRegistry); ok && (len(bs) > 1 || len(bs) > 0 && len(bs[0].Signatures) > 0) {
		return many.BindMany(ctx, bs)
	}
	errs := make([]error, len(bs))
	for i := range bs {
		errs[i] = s.cfg.Registry.Bind(ctx, bs[i])
	}
	return errs
}

// checked makes the signatures of a request that may be signed, which are not handed out
// before they are bound.
func (s *Signer) checked(ctx context.Context, r *chain.SignRequest, o owners) ([]chain.Signature, Binding, error) {
	c, ok := s.cfg.Chains[r.Intent.Network]
	if !ok || r.Unsigned.Network != r.Intent.Network {
		return nil, Binding{}, refuse("network %q is not this signer's", r.Intent.Network)
	}
	seen, err := c.Inspect(r.Unsigned.Payload)
	if err != nil {
		return nil, Binding{}, refuse("the payload cannot be read: %v", err)
	}
	b := Binding{
		Network: r.Intent.Network, Intent: r.Intent.ID, Attempt: r.Attempt,
		Payload: sha256.Sum256(r.Unsigned.Payload), Slots: seen.Spends, Cost: seen.MaxCost,
	}
	if err := s.check(ctx, c, *r, seen, o, &b); err != nil {
		return nil, Binding{}, err
	}
	b.Orders, b.Endings = s.ordersOf(r)
	b.Unproved = len(s.cfg.Mandates) == 0
	if more, ok := c.(chain.Coster); ok {
		if b.Cost, err = more.MostCost(r.Unsigned.Payload); err != nil {
			return nil, Binding{}, refuse("its cost: %v", err)
		}
	}
	out := make([]chain.Signature, len(seen.Digests))
	for i, d := range seen.Digests {
		if out[i], err = s.sign(ctx, c, r.Keys[i], d, r.Unsigned.Payload); err != nil {
			return nil, Binding{}, err
		}
	}
	if s.cfg.Keys != nil {
		b.Signatures = out
	}
	if c, ok := c.(assembler); ok {
		signed, err := c.Assemble(seen, out)
		if err != nil {
			return nil, Binding{}, refuse("the signed transaction: %v", err)
		}
		b.Tx = signed.Tx
	}
	return out, b, nil
}

// assembler is a Chain that makes whole transactions, as every chain.Client does.
type assembler interface {
	Assemble(u chain.Unsigned, sigs []chain.Signature) (chain.Signed, error)
}

// ordersOf are the withdrawals that a request pays, and what is known of them: an Ending that
// none of our keys made, or of another store, shows nothing.
func (s *Signer) ordersOf(r *chain.SignRequest) (ids []string, endings []mandate.Ending) {
	stores := map[string]string{}
	for _, in := range append([]chain.Intent{r.Intent}, r.Also...) {
		if in.Purpose != chain.ForWithdrawal {
			continue
		}
		ids = append(ids, in.ID)
		if t, err := mandate.Of(in.Mandate); err == nil {
			stores[in.ID] = t.Store
		}
	}
	for _, text := range r.Endings {
		e, err := s.cfg.Mandates.CheckEnding(text)
		if store, ours := stores[e.Order]; err == nil && ours && e.Store == store && e.Network == r.Intent.Network {
			endings = append(endings, e)
		}
	}
	return ids, endings
}

// check compares the decoded payload with the intents, and notes in b where the outputs go.
func (s *Signer) check(ctx context.Context, c Chain, r chain.SignRequest, seen chain.Unsigned, ours owners, b *Binding) error {
	in := r.Intent
	if seen.Network != in.Network || !slices.Equal(seen.Spends, r.Unsigned.Spends) || !slices.Equal(seen.Digests, r.Unsigned.Digests) {
		return refuse("the payload is not what the request says of it")
	}
	if err := whole(r, seen); err != nil {
		return err
	}
	if err := s.ordered(append([]chain.Intent{in}, r.Also...)); err != nil {
		return err
	}
	o := chain.Order{Intent: in, Also: r.Also}
	if most, err := o.MaxCost(); err != nil || seen.MaxCost < 0 || seen.MaxCost > most {
		return refuse("it may cost %d, what is paid allows %d", seen.MaxCost, most)
	}
	if seen.Memo != in.Memo {
		return refuse("the memo is not the intent's")
	}
	return s.payments(ctx, c, r, seen, ours, b)
}

// ordered refuses withdrawals whose mandates are not right.
func (s *Signer) ordered(ins []chain.Intent) error {
	for i := range ins {
		if len(s.cfg.Mandates) == 0 || ins[i].Purpose != chain.ForWithdrawal {
			continue
		}
		if err := s.cfg.Mandates.CheckIntent(&ins[i]); err != nil {
			return refuse("withdrawal %s: %v", ins[i].ID, err)
		}
	}
	return nil
}

// whole refuses a request that lacks what the other checks stand on.
func whole(r chain.SignRequest, seen chain.Unsigned) error {
	in := r.Intent
	switch {
	case in.ID == "" || r.Attempt == "" || len(seen.Spends) == 0:
		return refuse("an intent, an attempt and something to spend must be named")
	case len(r.Keys) != len(seen.Digests) || len(r.Keys) == 0:
		return refuse("%d keys for %d signatures of attempt %q", len(r.Keys), len(seen.Digests), r.Attempt)
	case in.MaxCost <= 0:
		return refuse("the intent does not say what the network may take")
	case in.All && in.Purpose == chain.ForWithdrawal:
		return refuse("a withdrawal is of an amount, not of all")
	case in.Amount < 0 || in.Amount == 0 && !in.All && in.Purpose != chain.ForCancel:
		return refuse("the intent has no amount")
	case !slices.Contains(purposes, in.Purpose):
		return refuse("purpose %q is unknown", in.Purpose)
	}
	for i := range r.Also {
		also := &r.Also[i]
		if also.ID == "" || also.Purpose != chain.ForWithdrawal || also.All || also.Amount <= 0 || also.MaxCost <= 0 || also.Memo != "" ||
			also.Tenant != in.Tenant || also.Network != in.Network || also.From != in.From || in.Purpose != chain.ForWithdrawal ||
			also.ID == in.ID || slices.ContainsFunc(r.Also[:i], func(o chain.Intent) bool { return o.ID == also.ID }) {
			return refuse("intent %q cannot be paid together with %q", also.ID, in.ID)
		}
	}
	for i, d := range seen.Digests {
		if foreign(in.Network, r.Keys[i]) {
			return refuse("a key is of another network than %s", in.Network)
		}
		from, key := in.From, in.FromKey
		if in.Payer != "" && d.From == in.Payer {
			from, key = in.Payer, in.PayerKey
		}
		if from != "" && d.From != from || key != "" && r.Keys[i] != key {
			return refuse("it spends from another address than the intent's")
		}
	}
	return nil
}

var purposes = []chain.Purpose{chain.ForWithdrawal, chain.ForSweep, chain.ForGas, chain.ForCancel}

// payments holds every output against the intents.
func (s *Signer) payments(ctx context.Context, c Chain, r chain.SignRequest, seen chain.Unsigned, ours owners, b *Binding) error {
	open := append([]chain.Intent{r.Intent}, r.Also...)
	for _, o := range seen.Outputs {
		if o.Amount < 0 {
			return refuse("an output is negative")
		}
		// The first output to an intent's destination is its payment; anything
		// else must come back to us, whatever the payload calls it.
		at := slices.IndexFunc(open, func(in chain.Intent) bool {
			return o.To == in.To && o.Currency == in.Currency && (in.All || o.Amount == in.Amount)
		})
		if at < 0 || open[at].Purpose != chain.ForWithdrawal {
			key, err := ours.own(ctx, c, r, seen, o.To)
			if err != nil {
				return err
			}
			b.Keeps = append(b.Keeps, Kept{o, key})
		} else {
			if s.cfg.Allow != nil {
				if err := s.cfg.Allow(ctx, open[at], o.Amount); err != nil {
					return refuse("%v", err)
				}
			}
			b.Pays = append(b.Pays, o)
		}
		if at >= 0 {
			open = slices.Delete(open, at, at+1)
		}
	}
	if len(open) > 0 && open[0].Purpose != chain.ForCancel {
		return refuse("it does not pay %d %s to the address of %s", open[0].Amount, open[0].Currency, open[0].ID)
	}
	return nil
}

// owners finds the keys of addresses, each once.
type owners struct {
	*Signer
	ours map[place]chain.KeyRef // "" is not ours
}

type place struct {
	network chain.Network
	address chain.Address
}

// own returns the key that an address of ours is derived from.
func (o owners) own(ctx context.Context, c Chain, r chain.SignRequest, seen chain.Unsigned, a chain.Address) (chain.KeyRef, error) {
	for i, d := range seen.Digests {
		if d.From == a {
			return r.Keys[i], nil
		}
	}
	at := place{r.Intent.Network, a}
	if _, known := o.ours[at]; !known && o.cfg.KeyOf != nil {
		ref, ok, err := o.cfg.KeyOf(ctx, r.Intent.Network, a)
		if err != nil {
			return "", err
		}
		mine := false
		if ok && !foreign(r.Intent.Network, ref) {
			if mine, err = o.derives(ctx, c, ref, a); err != nil {
				return "", err
			}
		}
		o.ours[at] = ""
		if mine {
			o.ours[at] = ref
		}
	}
	if o.ours[at] != "" {
		return o.ours[at], nil
	}
	return "", refuse("%s %s pays an address that is not ours", r.Intent.Purpose, r.Intent.ID)
}

// derives reports whether a key gives an address, or the account that it is of.
func (s *Signer) derives(ctx context.Context, c Chain, ref chain.KeyRef, a chain.Address) (bool, error) {
	if t, ok := c.(chain.Tagger); ok {
		if account, _, tagged := t.Untag(a); tagged {
			a = account
		}
	}
	if _, err := CheckRef(ref); err != nil {
		return false, nil //nolint:nilerr // nothing is derived from it
	}
	var pub chain.PublicKey
	var err error
	if s.cfg.Keys != nil {
		if pub, err = s.cfg.Keys.Public(ctx, ref); err != nil {
			return false, fmt.Errorf("keys: public key: %w", err)
		}
	} else if pub, err = s.cfg.Seed.public(ref); err != nil {
		return false, nil //nolint:nilerr // nothing is derived from it
	}
	mine, err := c.AddressOf(pub)
	return err == nil && mine == a, nil
}

// sign makes one signature, deterministic and low-S, and verifies it.
func (s *Signer) sign(ctx context.Context, c Chain, ref chain.KeyRef, d chain.Digest, payload []byte) (chain.Signature, error) {
	if s.cfg.Keys != nil {
		return s.signHeld(ctx, c, ref, d, payload)
	}
	if path, ok := strings.CutPrefix(string(ref), edwards); ok {
		return s.signEdwards(c, path, d, payload)
	}
	if path, ok := onSoft(ref); ok {
		return s.signSoft(c, path, d, payload)
	}
	if d.Whole {
		return nil, refuse("a key reference is of the wrong curve")
	}
	k, err := s.cfg.Seed.derive(string(ref))
	if err != nil {
		return nil, refuse("a key reference is unusable: %v", err)
	}
	defer k.Zero()
	priv, err := k.ECPrivKey()
	if err != nil {
		return nil, refuse("a key has no private part")
	}
	defer priv.Zero()
	pub := priv.PubKey().SerializeCompressed()
	if a, err := c.AddressOf(pub); err != nil || a != d.From {
		return nil, refuse("a key is not the sender's")
	}
	compact := s.compact(priv, d.Hash[:], true)
	back, _, err := ecdsa.RecoverCompact(compact, d.Hash[:])
	if err != nil || !bytes.Equal(back.SerializeCompressed(), pub) {
		return nil, refuse("the signature does not verify")
	}
	const header = 27 + 4 // compact format, compressed key
	return append(append(chain.Signature{}, compact[1:]...), compact[0]-header), nil
}
