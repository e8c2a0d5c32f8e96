package sim_test

import (
	"bytes"
	"slices"
	"strings"

	"github.com/cryptopay-go/cryptopay/chain"
)

// strictBugs are clients that take a second writing of what has one, or a node's word
// for a proof.
func strictBugs() map[string]bug {
	return map[string]bug{
		"capital letters are another address": {found: "FQ08_AddressesHaveOneWriting", client: func(l *liar) {
			l.parse = func(s string) (chain.Address, error) {
				if _, err := l.full.ParseAddress(strings.ToLower(s)); err == nil {
					return chain.Address(s), nil
				}
				return l.full.ParseAddress(s)
			}
		}},
		"space around a payload is nothing": {found: "FQ08_PayloadsHaveOneWriting", client: func(l *liar) {
			l.payload = func(p []byte) []byte { return bytes.TrimSpace(p) }
		}},
		"what follows a payload is not read": {found: "FQ08_PayloadsHaveOneWriting", client: func(l *liar) {
			l.payload = func(p []byte) []byte { return bytes.TrimRight(p, "\x00") }
		}},
		"recovery ids are halved": {found: "FQ08_RecoveryIDsAreChecked", client: func(l *liar) {
			l.assemble = func(_ chain.Unsigned, sigs []chain.Signature) []chain.Signature {
				out := slices.Clone(sigs)
				for i := range out {
					if out[i] = slices.Clone(out[i]); len(out[i]) == 65 {
						out[i][64] &= 1
					}
				}
				return out
			}
			l.sealed = func(s *chain.Signed, sigs []chain.Signature) {
				for _, sig := range sigs {
					s.Raw = append(s.Raw, sig[64]>>1)
				}
			}
		}},
		"underpriced is a no": {found: "FQ08_UnderpricedIsNoRejection", client: rejecting},
	}
}
