package solana

import "encoding/binary"

// The instructions that move something, by their first number.
const (
	sysCreate           = 0  // lamports, space, owner: payer, new
	sysTransfer         = 2  // lamports: from, to
	sysCreateSeed       = 3  // base, seed, lamports …: payer, new
	sysWithdrawNonce    = 5  // lamports: nonce, to
	sysTransferSeed     = 11 // lamports …: from, base, to
	tokTransfer         = 3  // amount: from, to
	tokMint             = 7  // amount: mint, to
	tokBurn             = 8  // amount: from, mint
	tokClose            = 9
	tokTransferChecked  = 12 // amount, decimals: from, mint, to
	tokMintChecked      = 14 // amount, decimals: mint, to
	tokBurnChecked      = 15 // amount, decimals: from, mint
	ataCreateIdempotent = 1
)

// note adds what one executed instruction moved, if it is one that is known to.
func (e *effect) note(x *call) {
	switch e.accounts[x.program] {
	case systemProgram:
		if m, ok := x.lamports(); ok {
			e.lamports = append(e.lamports, m)
		}
	case tokenProgram, token2022:
		if m, ok := x.tokens(); ok {
			e.moved = append(e.moved, m)
		}
	}
}

// between takes the amount at an offset of the data and the accounts by their places;
// −1 is nobody.
func (x *call) between(at, from, to int) (movement, bool) {
	if len(x.data) < at+8 || from >= len(x.accounts) || to >= len(x.accounts) {
		return movement{}, false
	}
	place := func(i int) int {
		if i < 0 {
			return -1
		}
		return int(x.accounts[i])
	}
	return movement{place(from), place(to), binary.LittleEndian.Uint64(x.data[at:])}, true
}

func (x *call) lamports() (movement, bool) {
	if len(x.data) < 4 {
		return movement{}, false
	}
	switch binary.LittleEndian.Uint32(x.data) {
	case sysCreate, sysTransfer, sysWithdrawNonce:
		return x.between(4, 0, 1)
	case sysTransferSeed:
		return x.between(4, 0, 2)
	case sysCreateSeed:
		if len(x.data) < 4+32+8 {
			return movement{}, false
		}
		seed := binary.LittleEndian.Uint64(x.data[36:])
		if seed > 32 {
			return movement{}, false
		}
		return x.between(44+int(seed), 0, 1)
	}
	return movement{}, false
}

func (x *call) tokens() (movement, bool) {
	if len(x.data) == 0 {
		return movement{}, false
	}
	switch x.data[0] {
	case tokTransfer:
		return x.between(1, 0, 1)
	case tokTransferChecked:
		return x.between(1, 0, 2)
	case tokMint, tokMintChecked:
		return x.between(1, -1, 1)
	case tokBurn, tokBurnChecked:
		return x.between(1, 0, -1)
	}
	return movement{}, false
}
