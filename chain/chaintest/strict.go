package chaintest

import (
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
)

func strictCases() []testCase {
	return []testCase{
		{"FQ08_AddressesHaveOneWriting", folded, oneWriting},
		{"FQ08_PayloadsHaveOneWriting", nothing, onePayload},
		{"FQ08_RecoveryIDsAreChecked", nothing, recoveryIDs},
		{"FQ08_UnderpricedIsNoRejection", replaces, underpriced},
	}
}

func folded(k *kit) string {
	return lacking(k.CaseMatters, "letters of the other case are another address")
}

// oneWriting: an address in capital or small letters is refused, or read as the one
// canonical address. Two writings of one address would be two rows in a directory.
func oneWriting(k *kit) {
	for range 5 {
		good := k.account().Address
		for _, s := range []string{strings.ToUpper(string(good)), strings.ToLower(string(good))} {
			if a, err := k.Client.ParseAddress(s); err == nil {
				require.Equal(k.t, good, a, "%q is another writing", s)
			}
		}
	}
}

// onePayload: bytes around a payload are refused, or change what is signed. Else one
// signature would be good for transactions that look different.
func onePayload(k *kit) {
	s := k.sender()
	u := s.build(s.order(s.intent(k.Native, k.account().Address)))
	text := string(u.Payload)
	for _, other := range []string{text + "\x00", text + "\x00\x00\x00\x00", text + "\n", text + " ", "\x00" + text, " " + text, text + "{}"} {
		seen, err := k.Client.Inspect([]byte(other))
		if err == nil {
			require.NotEqual(k.t, u.Digests, seen.Digests, "a second writing of a payload, of %d bytes for %d", len(other), len(text))
		}
	}
}

// recoveryIDs: a signature with another recovery id is refused, or makes the same
// bytes where a network's transactions do not carry it.
func recoveryIDs(k *kit) {
	s := k.sender()
	u := s.build(s.order(s.intent(k.Native, k.account().Address)))
	var good []chain.Signature
	for _, d := range u.Digests {
		sig, err := s.signs(d, u.Payload)
		require.NoError(k.t, err)
		if len(sig) != 65 {
			k.t.Skip("chaintest: not on this network: its signatures have no recovery id")
		}
		good = append(good, sig)
	}
	want, err := k.Client.Assemble(u, good)
	require.NoError(k.t, err)
	for _, flip := range []byte{1, 2, 3, 27, 255} {
		bad := append([]chain.Signature(nil), good...)
		bad[0] = append(chain.Signature(nil), good[0]...)
		bad[0][64] ^= flip
		if got, err := k.Client.Assemble(u, bad); err == nil {
			require.Equal(k.t, want, got, "recovery id %d in the place of %d", bad[0][64], good[0][64])
		}
	}
}

// underpriced: a node that has a transaction refuses one that spends the same and pays
// no more. That says nothing of later: once the first is forgotten the second can land.
func underpriced(k *kit) {
	s, to := k.sender(), k.account().Address
	k.start()
	o := s.order(s.intent(k.Native, to))
	first, _ := s.attempt(o)
	o.Intent.To = k.account().Address
	other, _ := s.attempt(o)
	require.NotEqual(k.t, first.Tx, other.Tx)
	require.NoError(k.t, k.broadcast(first))
	if err := k.broadcast(other); err != nil {
		require.NotErrorIs(k.t, err, chain.ErrRejected, "underpriced is no proof that it can never land")
	}
	require.NotEqual(k.t, chain.Conflicted, k.status(other).State, "nothing that it conflicts with is in a block")
}
