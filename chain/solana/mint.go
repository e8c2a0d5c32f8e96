package solana

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/cryptopay-go/cryptopay/chain"
)

// The extensions of Token-2022, by number. A mint may have those that only describe
// it; whatever else is refused, each for what it would do.
const (
	memoTransfer = 8 // of a token account: nothing comes in without a memo

	metadataPointer    = 18
	tokenMetadata      = 19
	groupPointer       = 20
	tokenGroup         = 21
	groupMemberPointer = 22
	groupMember        = 23
)

var harmless = []uint16{metadataPointer, tokenMetadata, groupPointer, tokenGroup, groupMemberPointer, groupMember}

var refusals = map[uint16]string{
	1:  "a transfer fee: less arrives than is sent",
	3:  "a close authority: it can be closed and made anew with other rules",
	4:  "confidential transfers: amounts that nobody else can read",
	6:  "a default account state: accounts can be frozen from the start",
	9:  "no transfers: it cannot be moved",
	10: "interest: what wallets show is not what is moved",
	12: "a permanent delegate: it can be taken out of any account",
	14: "a transfer hook: a program decides on each transfer",
	16: "confidential transfer fees: less arrives than is sent, unseen",
	24: "confidential minting: a supply that nobody else can read",
	25: "a scaled amount: what wallets show is not what is moved",
	26: "a pause: all transfers can be stopped",
	28: "permissioned burning: it can be destroyed in any account",
}

// extension is one entry behind a mint or a token account.
type extension struct {
	kind  uint16
	value []byte
}

// extensions reads what follows a mint or a token account; false where it does not
// fit together.
func extensions(d []byte) ([]extension, bool) {
	if len(d) <= extensionsAt {
		return nil, true
	}
	var out []extension
	for d = d[extensionsAt:]; len(d) >= 4; {
		kind, size := binary.LittleEndian.Uint16(d), int(binary.LittleEndian.Uint16(d[2:]))
		if kind == 0 {
			return out, true // the rest is room
		}
		if len(d) < 4+size {
			return nil, false
		}
		out = append(out, extension{kind, d[4 : 4+size]})
		d = d[4+size:]
	}
	return out, true
}

// checkMints reads every registered mint and refuses those that cannot be used.
func (c *Client) checkMints(ctx context.Context) error {
	mints := slices.SortedFunc(maps.Keys(c.tokens), func(a, b key) int { return slices.Compare(a[:], b[:]) })
	const page = 100
	for part := range slices.Chunk(mints, page) {
		all, err := c.accounts(ctx, finalized, part...)
		if err != nil {
			return err
		}
		for i, m := range part {
			t := c.tokens[m]
			if err := all[i].mintOf(t.Currency); err != nil {
				return err
			}
			switch t.program() {
			case all[i].owner:
			case key{}:
				t.made.Store(&all[i].owner)
			default:
				return fmt.Errorf("%w: mint %s was of another program before", chain.ErrNode, t.Contract)
			}
		}
	}
	return nil
}

// mintOf says why an account is not a mint that can be used for a currency.
func (a *account) mintOf(cur *chain.Currency) error {
	refuse := func(why string) error {
		return fmt.Errorf("solana: currency %s cannot be used: %s %s: take it out of the Registry", cur.Code, cur.Contract, why)
	}
	d := a.data
	switch {
	case !a.exists():
		return fmt.Errorf("%w: %w", chain.ErrNode, refuse("is not on this chain, or not yet on this node"))
	case a.owner != tokenProgram && a.owner != token2022:
		return refuse("is no mint of a token program")
	case len(d) != mintSize && (a.owner != token2022 || len(d) <= extensionsAt || d[kindAt] != kindMint) || d[45] != 1:
		return refuse("is no mint")
	case d[44] != cur.Decimals:
		return refuse(fmt.Sprintf("has %d decimals, not %d", d[44], cur.Decimals))
	}
	all, ok := extensions(d)
	if !ok {
		return refuse("has extensions that cannot be read")
	}
	for _, x := range all {
		if slices.Contains(harmless, x.kind) {
			continue
		}
		why, known := refusals[x.kind]
		if !known {
			why = fmt.Sprintf("extension %d, which is not known to be harmless", x.kind)
		}
		return refuse("has " + why)
	}
	return nil
}
