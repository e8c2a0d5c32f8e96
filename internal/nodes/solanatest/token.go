package solanatest

import (
	"encoding/binary"

	sdk "github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
	"github.com/stretchr/testify/require"
)

// Extension is one of Token-2022's, behind a mint or a token account.
type Extension struct {
	Kind  uint16
	Value []byte
}

// data is what a token program keeps, with its extensions.
func data(base []byte, kind byte, extensions []Extension) []byte {
	if len(extensions) == 0 {
		return base
	}
	out := append(append([]byte(nil), base...), make([]byte, 165-len(base))...)
	out = append(out, kind)
	for _, x := range extensions {
		out = binary.LittleEndian.AppendUint16(out, x.Kind)
		out = binary.LittleEndian.AppendUint16(out, uint16(len(x.Value)))
		out = append(out, x.Value...)
	}
	return out
}

const plenty = 10_000_000_000 // lamports: enough for any account

// Mint makes a mint, of which the payer has plenty and may make more.
func (n *Node) Mint(name string, program sdk.PublicKey, decimals uint8, extensions ...Extension) sdk.PublicKey {
	n.t.Helper()
	mint := Key("mint " + name).PublicKey()
	n.MintAt(mint, program, decimals, extensions...)
	return mint
}

// MintAt is Mint at an address, which may be one that is used elsewhere.
func (n *Node) MintAt(mint, program sdk.PublicKey, decimals uint8, extensions ...Extension) {
	n.t.Helper()
	base := make([]byte, 82)
	base[0], base[44], base[45], base[46] = 1, decimals, 1, 1
	payer := n.Payer.PublicKey()
	copy(base[4:], payer[:])
	binary.LittleEndian.PutUint64(base[36:], 1<<62)
	copy(base[50:], payer[:]) // may freeze
	n.Set(mint, program, plenty, data(base, 1, extensions))
	n.Hold(ATA(payer, program, mint), payer, program, mint, 1<<62, 1)
}

// Hold makes a token account; state 1 is in use, 2 frozen.
func (n *Node) Hold(at, owner, program, mint sdk.PublicKey, amount uint64, state byte, extensions ...Extension) {
	n.t.Helper()
	base := make([]byte, 165)
	copy(base, mint[:])
	copy(base[32:], owner[:])
	binary.LittleEndian.PutUint64(base[64:], amount)
	base[108] = state
	n.Set(at, program, plenty, data(base, 2, extensions))
}

// ATA is an owner's associated token account.
func ATA(owner, program, mint sdk.PublicKey) sdk.PublicKey {
	a, _, err := sdk.FindProgramAddress([][]byte{owner[:], program[:], mint[:]}, sdk.SPLAssociatedTokenAccountProgramID)
	if err != nil {
		panic(err)
	}
	return a
}

// OpenATA makes the associated token account of an owner where it is missing.
func (n *Node) OpenATA(owner, program, mint sdk.PublicKey) sdk.Instruction {
	return sdk.NewInstruction(sdk.SPLAssociatedTokenAccountProgramID, sdk.AccountMetaSlice{
		sdk.Meta(n.Payer.PublicKey()).SIGNER().WRITE(), sdk.Meta(ATA(owner, program, mint)).WRITE(), sdk.Meta(owner),
		sdk.Meta(mint), sdk.Meta(sdk.SystemProgramID), sdk.Meta(program),
	}, []byte{1})
}

// MoveTokens moves tokens of the payer's to a token account.
func (n *Node) MoveTokens(to, program, mint sdk.PublicKey, amount uint64, decimals uint8) sdk.Instruction {
	payer := n.Payer.PublicKey()
	return sdk.NewInstruction(program, sdk.AccountMetaSlice{
		sdk.Meta(ATA(payer, program, mint)).WRITE(), sdk.Meta(mint), sdk.Meta(to).WRITE(), sdk.Meta(payer).SIGNER(),
	}, append(binary.LittleEndian.AppendUint64([]byte{12}, amount), decimals))
}

// MoveCoins moves lamports of the payer's.
func (n *Node) MoveCoins(to sdk.PublicKey, lamports uint64) sdk.Instruction {
	return system.NewTransferInstruction(lamports, n.Payer.PublicKey(), to).Build()
}

// Words is a memo.
func Words(text string) sdk.Instruction { return sdk.NewInstruction(Memo, nil, []byte(text)) }

// Fails is an instruction that cannot succeed.
func (n *Node) Fails() sdk.Instruction { return n.MoveCoins(Key("nobody").PublicKey(), 1<<62) }

// Unwrap gives lamports to an address as a program does, with no instruction that moves
// them: a token account of wrapped coins is filled and closed.
func (n *Node) Unwrap(to sdk.PublicKey, lamports uint64) string {
	n.t.Helper()
	n.salt++
	wrapped := Key(string(rune(n.salt)) + " wrapped")
	at, payer := wrapped.PublicKey(), n.Payer.PublicKey()
	const least = 2_039_280
	require.Greater(n.t, lamports, uint64(least))
	return n.Send([]sdk.PrivateKey{wrapped},
		system.NewCreateAccountInstruction(lamports, 165, Token, payer, at).Build(),
		sdk.NewInstruction(Token, sdk.AccountMetaSlice{sdk.Meta(at).WRITE(), sdk.Meta(sdk.SolMint)}, append([]byte{18}, payer[:]...)),
		sdk.NewInstruction(Token, sdk.AccountMetaSlice{sdk.Meta(at).WRITE(), sdk.Meta(to).WRITE(), sdk.Meta(payer).SIGNER()}, []byte{9}),
	)
}
