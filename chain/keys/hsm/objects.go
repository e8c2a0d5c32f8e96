//go:build cgo

package hsm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/miekg/pkcs11"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
)

// Of PKCS#11 3.0, which the binding does not know.
const (
	ckkEdwards     = 0x40
	ckmMakeEdwards = 0x1055
	ckmEdDSA       = 0x1057
)

// curve is how a module speaks of a curve.
type curve struct {
	name              string // of its mechanisms
	key, makes, signs uint
	params            []byte // in DER: what it is made with
	also              []byte // and as which it may be told
	point             int    // bytes
}

var (
	secp256k1Curve = curve{"CKM_EC_KEY_PAIR_GEN and CKM_ECDSA", pkcs11.CKK_EC, pkcs11.CKM_EC_KEY_PAIR_GEN, pkcs11.CKM_ECDSA, []byte("\x06\x05\x2b\x81\x04\x00\x0a"), nil, 65}
	ed25519Curve   = curve{"CKM_EC_EDWARDS_KEY_PAIR_GEN and CKM_EDDSA", ckkEdwards, ckmMakeEdwards, ckmEdDSA, []byte("\x13\x0cedwards25519"), []byte("\x06\x03\x2b\x65\x70"), 32}
)

func curveOf(onEdwards bool) curve {
	if onEdwards {
		return ed25519Curve
	}
	return secp256k1Curve
}

// can reports whether the module says that it has a curve's mechanisms.
func (t *token) can(c curve) error {
	all, err := t.lib.GetMechanismList(t.slot)
	if err != nil {
		return fmt.Errorf("hsm: mechanisms: %w", err)
	}
	for _, needed := range []uint{c.makes, c.signs} {
		if !slices.ContainsFunc(all, func(m *pkcs11.Mechanism) bool { return m.Mechanism == needed }) {
			return fmt.Errorf("hsm: the module must have %s", c.name)
		}
	}
	return nil
}

// make makes a key pair that the module keeps.
func (t *token) make(ctx context.Context, s pkcs11.SessionHandle, ref chain.KeyRef) (pair, error) {
	onEdwards, err := keys.CheckRef(ref)
	if err != nil {
		return pair{}, err
	}
	id, err := t.lib.GenerateRandom(s, 16)
	if err == nil {
		_, _, err = t.generate(s, curveOf(onEdwards), string(ref), id, true)
	}
	if err != nil {
		return pair{}, fmt.Errorf("hsm: no new key: %w", err)
	}
	return t.find(ctx, s, ref) // which also sees one that another process made meanwhile
}

func (t *token) generate(s pkcs11.SessionHandle, c curve, label string, id []byte, kept bool) (public, private pkcs11.ObjectHandle, err error) {
	is := pkcs11.NewAttribute
	named := []*pkcs11.Attribute{is(pkcs11.CKA_TOKEN, kept), is(pkcs11.CKA_LABEL, label), is(pkcs11.CKA_ID, id), is(pkcs11.CKA_MODIFIABLE, false)}
	return t.lib.GenerateKeyPair(s, []*pkcs11.Mechanism{pkcs11.NewMechanism(c.makes, nil)},
		append(named[:len(named):len(named)], is(pkcs11.CKA_EC_PARAMS, c.params), is(pkcs11.CKA_PRIVATE, false), is(pkcs11.CKA_VERIFY, true)),
		append(named[:len(named):len(named)], is(pkcs11.CKA_PRIVATE, true), is(pkcs11.CKA_SENSITIVE, true), is(pkcs11.CKA_EXTRACTABLE, false),
			is(pkcs11.CKA_SIGN, true), is(pkcs11.CKA_DERIVE, false)))
}

// point reads a public key.
func (t *token) point(s pkcs11.SessionHandle, object pkcs11.ObjectHandle, c curve) (chain.PublicKey, error) {
	a, err := t.lib.GetAttributeValue(s, object, []*pkcs11.Attribute{pkcs11.NewAttribute(pkcs11.CKA_EC_PARAMS, nil), pkcs11.NewAttribute(pkcs11.CKA_EC_POINT, nil)})
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(a[0].Value, c.params) && (c.also == nil || !bytes.Equal(a[0].Value, c.also)) {
		return nil, errCurve
	}
	// An OCTET STRING in DER, which some modules leave out.
	raw := a[1].Value
	if len(raw) == c.point+2 {
		raw = raw[2:]
	}
	if len(raw) != c.point {
		return nil, errCurve
	}
	if c.key == ckkEdwards {
		return raw, nil
	}
	pub, err := secp256k1.ParsePubKey(raw)
	if err != nil {
		return nil, errCurve
	}
	return pub.SerializeCompressed(), nil
}

var errCurve = errors.New("hsm: a key is on another curve")

// read reads the pairs of a name, or of all. Half a pair is none: its maker died, and nobody
// was shown its address. Keys of others are left alone.
func (t *token) read(ctx context.Context, s pkcs11.SessionHandle, ref chain.KeyRef) (map[chain.KeyRef][]pair, error) {
	type half struct{ label, id string }
	out := map[chain.KeyRef][]pair{}
	for _, c := range []curve{secp256k1Curve, ed25519Curve} {
		private := map[half]pkcs11.ObjectHandle{}
		each := func(class uint, do func(half, pkcs11.ObjectHandle) error) error {
			objects, err := t.search(s, class, c, ref)
			for _, o := range objects {
				if err == nil {
					err = ctx.Err()
				}
				if err != nil {
					return err
				}
				a, err := t.lib.GetAttributeValue(s, o, []*pkcs11.Attribute{pkcs11.NewAttribute(pkcs11.CKA_LABEL, nil), pkcs11.NewAttribute(pkcs11.CKA_ID, nil)})
				if err != nil {
					return fmt.Errorf("hsm: a key's label: %w", err)
				}
				at := half{string(a[0].Value), string(a[1].Value)}
				if onEdwards, err := keys.CheckRef(chain.KeyRef(at.label)); err != nil || curveOf(onEdwards).key != c.key {
					continue
				}
				if err := do(at, o); err != nil {
					return err
				}
			}
			return err
		}
		if err := each(pkcs11.CKO_PRIVATE_KEY, func(at half, o pkcs11.ObjectHandle) error { private[at] = o; return nil }); err != nil {
			return nil, err
		}
		if err := each(pkcs11.CKO_PUBLIC_KEY, func(at half, o pkcs11.ObjectHandle) error {
			key, whole := private[at]
			if !whole {
				return nil
			}
			pub, err := t.point(s, o, c)
			if errors.Is(err, errCurve) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("hsm: a public key: %w", err)
			}
			fixed, err := t.fixed(s, key)
			out[chain.KeyRef(at.label)] = append(out[chain.KeyRef(at.label)], pair{pub, key, fixed})
			return err
		}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// search lists the keys of a class, a curve and a name.
func (t *token) search(s pkcs11.SessionHandle, class uint, c curve, ref chain.KeyRef) (out []pkcs11.ObjectHandle, err error) {
	what := []*pkcs11.Attribute{pkcs11.NewAttribute(pkcs11.CKA_TOKEN, true), pkcs11.NewAttribute(pkcs11.CKA_CLASS, class), pkcs11.NewAttribute(pkcs11.CKA_KEY_TYPE, c.key)}
	if ref != "" {
		what = append(what, pkcs11.NewAttribute(pkcs11.CKA_LABEL, string(ref)))
	}
	if err := t.lib.FindObjectsInit(s, what); err != nil {
		return nil, fmt.Errorf("hsm: look for keys: %w", err)
	}
	for {
		part, _, e := t.lib.FindObjects(s, 1000)
		out = append(out, part...)
		if e != nil || len(part) == 0 {
			if err = errors.Join(e, t.lib.FindObjectsFinal(s)); err != nil {
				err = fmt.Errorf("hsm: look for keys: %w", err)
			}
			return out, err
		}
	}
}

// fixed reports whether a private key was made in the module and cannot leave it.
func (t *token) fixed(s pkcs11.SessionHandle, key pkcs11.ObjectHandle) (bool, error) {
	is := func(name uint) *pkcs11.Attribute { return pkcs11.NewAttribute(name, nil) }
	a, err := t.lib.GetAttributeValue(s, key, []*pkcs11.Attribute{
		is(pkcs11.CKA_LOCAL), is(pkcs11.CKA_SENSITIVE), is(pkcs11.CKA_ALWAYS_SENSITIVE), is(pkcs11.CKA_NEVER_EXTRACTABLE), is(pkcs11.CKA_EXTRACTABLE),
	})
	if err != nil {
		return false, fmt.Errorf("hsm: how a key is kept: %w", err)
	}
	yes := func(i int) bool { return len(a[i].Value) == 1 && a[i].Value[0] == 1 }
	return yes(0) && yes(1) && yes(2) && yes(3) && !yes(4), nil
}
