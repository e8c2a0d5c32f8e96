package outgoing

import (
	"strconv"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
)

// ID is the id of one of the house's own orders, taken apart: what it is for. This is the only place
// that spells such ids.
//
//	gas/NUMBER/SWEEP               gas for a sweep
//	merge/ORDER/NUMBER             merges coins that an order needs
//	merge/early/TENANT/DAY/NUMBER  merges coins that no order needs yet
//	child/ORDER                    pays for an order's transaction that nodes keep waiting
//	fill/ADDRESS/NONCE             uses up a nonce
type ID struct {
	Kind   OrderKind
	For    string // the sweep, the order, early/TENANT/DAY, or ADDRESS/NONCE
	Number int    // of gas and merges, from 0
}

// ParseID takes an id apart. It is the zero ID where the order is none of these.
func ParseID(id string) ID {
	kind, rest, _ := strings.Cut(id, "/")
	own, ok := ID{Kind: OrderKind(kind), For: rest}, rest != ""
	switch own.Kind {
	case OrderGas:
		var number string
		number, own.For, _ = strings.Cut(rest, "/")
		ok = own.numbered(number)
	case OrderMerge:
		at := max(strings.LastIndexByte(rest, '/'), 0)
		own.For = rest[:at]
		ok = own.numbered(strings.TrimPrefix(rest[at:], "/"))
	case OrderChild, OrderFill:
	default:
		ok = false
	}
	if !ok {
		return ID{}
	}
	return own
}

// numbered reads the number of an id that is for something.
func (i *ID) numbered(text string) bool {
	n, err := strconv.ParseUint(text, 10, 31)
	i.Number = int(n) //nolint:gosec // of 31 bits
	return err == nil && i.For != "" && (text[0] != '0' || text == "0")
}

// String is the id.
func (i ID) String() string {
	switch i.Kind {
	case OrderGas:
		return string(i.Kind) + "/" + strconv.Itoa(i.Number) + "/" + i.For
	case OrderMerge:
		return string(i.Kind) + "/" + i.For + "/" + strconv.Itoa(i.Number)
	case OrderChild, OrderFill:
		return string(i.Kind) + "/" + i.For
	}
	return i.For
}

// Early reports whether the order merges coins that no order needs yet.
func (i ID) Early() bool { return i.Kind == OrderMerge && strings.HasPrefix(i.For, earlyPrefix) }

// Helps reports whether the order is made for another one, and sent only while that one may be: a child
// or a merge.
func (i ID) Helps() bool { return i.Kind == OrderChild || i.Kind == OrderMerge }

const earlyPrefix = "early/"

// earlyFor is what the early merges of a tenant's coins on a day are for.
func earlyFor(tenant string, at time.Time) string {
	return earlyPrefix + tenant + "/" + at.UTC().Format(time.DateOnly)
}

// helps is ID.Helps of an id.
func helps(id string) bool { return ParseID(id).Helps() }

// is reports whether an order is one of the house's own that pays ourselves, of a kind.
func (j *claimedIntent) is(k OrderKind) bool {
	return j.v.Purpose == chain.ForCancel && ParseID(j.id).Kind == k
}

func (j *claimedIntent) merge() bool { return j.is(OrderMerge) }
func (j *claimedIntent) child() bool { return j.is(OrderChild) }
func (j *claimedIntent) early() bool { return j.merge() && ParseID(j.id).Early() }

// isGapFill reports whether the order fills a nonce given to it.
func (j *claimedIntent) isGapFill() bool { return j.is(OrderFill) && j.v.Nonce >= 0 }
