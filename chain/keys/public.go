package keys

import (
	"crypto/hmac"
	"crypto/sha512"
	"encoding/binary"
	"hash"
	"sync"

	"github.com/btcsuite/btcd/btcutil/v2/hdkeychain"
	"github.com/decred/dcrd/dcrec/secp256k1/v4"

	"github.com/cryptopay-go/cryptopay/chain"
)

// public derives children of one extended public key by BIP32's CKDpub. It
// keeps what is the same for all of them: the parent as a point, and the HMAC
// already keyed with the chain code. All of it is public, so variable time does
// no harm. Safe for concurrent use.
type public struct {
	point  secp256k1.JacobianPoint
	serial []byte    // the parent, compressed
	macs   sync.Pool // of hash.Hash
}

func newPublic(k *hdkeychain.ExtendedKey) (*public, error) {
	pub, err := k.ECPubKey()
	if err != nil {
		return nil, err
	}
	code := k.ChainCode()
	p := &public{serial: pub.SerializeCompressed()}
	p.macs.New = func() any { return hmac.New(sha512.New, code) }
	pub.AsJacobian(&p.point)
	return p, nil
}

// child is the compressed public key of a not hardened index.
func (p *public) child(i uint32) (chain.PublicKey, error) {
	var buf [sha512.Size]byte
	h := p.macs.Get().(hash.Hash)
	h.Reset()
	h.Write(p.serial)
	h.Write(binary.BigEndian.AppendUint32(buf[:0], i))
	left := h.Sum(buf[:0])[:32]
	p.macs.Put(h)

	var tweak secp256k1.ModNScalar
	if overflow := tweak.SetByteSlice(left); overflow || i >= hdkeychain.HardenedKeyStart {
		return nil, errNoKey
	}
	var add, sum secp256k1.JacobianPoint
	secp256k1.ScalarBaseMultNonConst(&tweak, &add)
	secp256k1.AddNonConst(&add, &p.point, &sum)
	if sum.Z.IsZero() || sum.X.IsZero() && sum.Y.IsZero() {
		return nil, errNoKey
	}
	sum.ToAffine()
	return secp256k1.NewPublicKey(&sum.X, &sum.Y).SerializeCompressed(), nil
}
