package seal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Inclusion shows that a seal covers one entry. SHA-256 of Before, the SHA-256 of Leaf and
// After, one behind the other, is the seal's Hash.
type Inclusion struct {
	Seal   Seal
	Entry  ledger.Entry
	Leaf   []byte // the bytes of Entry that are hashed
	Before []byte // what the seal hashes before the entry's hash
	After  []byte // and behind it
}

// Include returns the Inclusion of the newest sealed entry of an account and asset; ok is
// false where no seal covers one. Postings and seals may go on meanwhile.
//
// It reads three rows, and the entries that this one seal covers: at most MaxEntries, with one
// read for each of its ranges. Neither the number of seals nor the length of the journal
// plays a part.
//
// It returns ErrBroken where the seal, or what it covers, is not what was sealed, or where none
// of the keys has signed the seal. Without keys the signature is not looked at.
func Include(ctx context.Context, s storage.Store, p storage.Partition, account ledger.Account, asset ledger.Asset, keys [][]byte) (in Inclusion, ok bool, err error) {
	l := line{account, asset}
	h, row, ok, err := heightRows.One(ctx, s, p, heightID(l))
	if err != nil || !ok {
		return in, false, err
	}
	n, found := sealOf(row.Change)
	if !found || h.Account != account || h.Asset != asset {
		return in, false, fmt.Errorf("%w: no seal has written up to where %s is sealed in %s", ErrBroken, account, asset)
	}
	if in.Seal, ok, err = At(ctx, s, p, n); err != nil {
		return in, false, err
	}
	if !ok || in.Seal.Number != n || !in.Seal.within() {
		return in, false, fmt.Errorf("%w: seal %d, which covers %s in %s, is gone or was edited", ErrBroken, n, account, asset)
	}
	if len(keys) > 0 && (len(in.Seal.MAC) == 0 || !in.Seal.SignedWith(keys...)) {
		return in, false, fmt.Errorf("%w: seal %d was not made with this key", ErrBroken, n)
	}
	return in, true, in.fill(ctx, s, p, l, h.Seq)
}

// sealOf is the number of the seal that a Change of Next has made.
func sealOf(change string) (n int64, ok bool) {
	id, ok := strings.CutPrefix(change, "seal/")
	id, _, cut := strings.Cut(id, "/")
	n, err := strconv.ParseInt(id, 10, 64)
	return n, ok && cut && err == nil && rowID(n) == id
}

// within reports whether a seal covers no more than one may.
func (s *Seal) within() bool {
	left := int64(MaxEntries)
	for _, r := range s.Ranges {
		if r.From < 1 || r.To < r.From || r.To-r.From >= left {
			return false
		}
		left -= r.To - r.From + 1
	}
	return true
}

// fill makes the seal's hash again from what it covers.
func (in *Inclusion) fill(ctx context.Context, s storage.Store, p storage.Partition, l line, seq int64) error {
	before, err := in.hashBefore(ctx, s, p)
	if err != nil {
		return err
	}
	have, at := begin(p, &in.Seal, before), 0
	for _, r := range in.Seal.Ranges {
		entries, err := sealable(ctx, s, p, r)
		if err != nil {
			return err
		}
		have.add(r, entries)
		if r.Account == l.account && r.Asset == l.asset && r.To == seq {
			in.Entry, at = entries[len(entries)-1], len(have.buf)
		}
	}
	if at == 0 || !bytes.Equal(have.end(), in.Seal.Hash) {
		return fmt.Errorf("%w: what seal %d covers has another hash", ErrBroken, in.Seal.Number)
	}
	in.Leaf = leaf(&in.Entry)
	in.Before, in.After = have.buf[:at-sha256.Size:at-sha256.Size], have.buf[at:]
	return nil
}

// hashBefore is the hash of the seal before; nil of the first.
func (in *Inclusion) hashBefore(ctx context.Context, s storage.Store, p storage.Partition) ([]byte, error) {
	if in.Seal.Number == 1 {
		return nil, nil
	}
	before, ok, err := At(ctx, s, p, in.Seal.Number-1)
	if err == nil && !ok {
		err = fmt.Errorf("%w: there is no seal %d", ErrBroken, in.Seal.Number-1)
	}
	return before.Hash, err
}
