package solana

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	sdk "github.com/gagliardetto/solana-go"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
	"github.com/cryptopay-go/cryptopay/internal/nodes/solanatest"
)

// offline is a client that needs no node: its one token is of the first program.
func offline(t testing.TB) *Client {
	t.Helper()
	c, err := New(Options{Registry: registry(t, solanatest.Key("mint").PublicKey().String()), URL: "http://127.0.0.1:1"})
	require.NoError(t, err)
	for _, x := range c.tokens {
		x.made.Store(&tokenProgram)
	}
	return c
}

// blockOf is the answer to getBlock with these transactions, as validators document it.
func blockOf(txs ...string) []byte {
	return fmt.Appendf(nil, `{"blockHeight":7,"blockTime":1760000000,"blockhash":%q,"parentSlot":8,"previousBlockhash":%q,"transactions":[%s]}`,
		solanatest.Key("hash").PublicKey(), solanatest.Key("parent").PublicKey(), strings.Join(txs, ","))
}

func decoded(t testing.TB, c *Client, answer []byte, w chain.Watch) []chain.Transfer {
	t.Helper()
	b, err := readBlock(&transport.Call{Out: answer}, 9)
	require.NoError(t, err)
	found, err := c.match(t.Context(), b, w)
	require.NoError(t, err)
	return found
}

// inner is one instruction that a program called.
func inner(program int, accounts []int, data []byte) string {
	list := strings.ReplaceAll(fmt.Sprint(accounts), " ", ",")
	return fmt.Sprintf(`{"accounts":%s,"data":%q,"programIdIndex":%d,"stackHeight":2}`, list, sdk.Base58(data), program)
}

// called is a transaction of a program of its own, which pays one owner two times in
// coins and two times in tokens by calling other programs. err is its outcome.
func called(owner sdk.PublicKey, err string, more uint64) string {
	payer, program, mint := solanatest.Key("payer"), solanatest.Key("program").PublicKey(), solanatest.Key("mint").PublicKey()
	ata, vault := solanatest.ATA(owner, solanatest.Token, mint), solanatest.Key("vault").PublicKey()
	tx, e := sdk.NewTransaction([]sdk.Instruction{sdk.NewInstruction(program, sdk.AccountMetaSlice{
		sdk.Meta(owner).WRITE(), sdk.Meta(ata).WRITE(), sdk.Meta(vault).WRITE(), sdk.Meta(mint), sdk.Meta(solanatest.Token), sdk.Meta(sdk.SystemProgramID),
	}, []byte{1})}, sdk.Hash{1}, sdk.TransactionPayer(payer.PublicKey()))
	if e != nil {
		panic(e)
	}
	if _, e = tx.Sign(func(sdk.PublicKey) *sdk.PrivateKey { return &payer }); e != nil {
		panic(e)
	}
	raw, _ := tx.MarshalBinary()
	at := func(k sdk.PublicKey) int {
		for i, x := range tx.Message.AccountKeys {
			if x == k {
				return i
			}
		}
		panic(k)
	}
	coins := func(n uint64) string {
		return inner(at(sdk.SystemProgramID), []int{at(vault), at(owner)}, binary.LittleEndian.AppendUint64([]byte{2, 0, 0, 0}, n))
	}
	tokens := func(n uint64) string {
		return inner(at(solanatest.Token), []int{at(vault), at(mint), at(ata), at(payer.PublicKey())}, append(binary.LittleEndian.AppendUint64([]byte{12}, n), 6))
	}
	pre, post := make([]string, len(tx.Message.AccountKeys)), make([]string, len(tx.Message.AccountKeys))
	for i := range pre {
		pre[i], post[i] = "1000000000", "1000000000"
	}
	post[0] = "999995000"
	post[at(owner)] = fmt.Sprint(1_000_000_000 + 3000 + more)
	balance := func(amount int) string {
		return fmt.Sprintf(`{"accountIndex":%d,"mint":%q,"owner":%q,"programId":%q,"uiTokenAmount":{"amount":"%d","decimals":6,"uiAmount":0.1,"uiAmountString":"0.1"}}`,
			at(ata), mint, owner, solanatest.Token, amount)
	}
	return fmt.Sprintf(`{"meta":{"err":%s,"fee":5000,"innerInstructions":[{"index":0,"instructions":[%s]}],"loadedAddresses":{"readonly":[],"writable":[]},`+
		`"logMessages":["Program log: \"paid\""],"postBalances":[%s],"postTokenBalances":[%s],"preBalances":[%s],"preTokenBalances":[%s],"rewards":null,"status":{"Ok":null}},`+
		`"transaction":[%q,"base64"],"version":"legacy"}`,
		err, strings.Join([]string{coins(1000), tokens(10), coins(2000), tokens(20)}, ","), strings.Join(post, ","), balance(130), strings.Join(pre, ","), balance(100),
		base64.StdEncoding.EncodeToString(raw))
}

// TestD11_InnerInstructionsAreRead: a program pays one owner several times, in coins and
// in tokens. Each payment is a transfer of its own, where they come to what the balances
// say; else the balances are believed.
func TestD11_InnerInstructionsAreRead(t *testing.T) {
	t.Parallel()
	c, owner := offline(t), solanatest.Key("owner").PublicKey()
	got := decoded(t, c, blockOf(called(owner, "null", 0)), follow.Only{chain.Address(owner.String())})
	require.Len(t, got, 4)
	var seen []string
	for _, x := range got {
		seen = append(seen, fmt.Sprintf("%s %d %s", x.Currency, x.Ordinal, x.Amount))
	}
	require.Equal(t, []string{"SOL -1 0.000001", "SOL -2 0.000002", "USDTSOL 0 0.00001", "USDTSOL 1 0.00002"}, seen)

	got = decoded(t, c, blockOf(called(owner, "null", 7)), follow.Only{chain.Address(owner.String())})
	require.Len(t, got, 3, "coins beyond what instructions moved")
	require.Equal(t, "0.000003007", got[0].Amount.String())
	require.Less(t, got[0].Ordinal, -2, "not the number of an instruction")
}

// TestD11_FailedTransactionsPayNobody: whatever the rest of the answer says.
func TestD11_FailedTransactionsPayNobody(t *testing.T) {
	t.Parallel()
	c, owner := offline(t), solanatest.Key("owner").PublicKey()
	require.Empty(t, decoded(t, c, blockOf(called(owner, `{"InstructionError":[0,{"Custom":1}]}`, 0)), follow.Only{chain.Address(owner.String())}))
	require.Empty(t, decoded(t, c, blockOf(called(owner, `"AnOutcomeThatIsNew"`, 0)), follow.Only{chain.Address(owner.String())}))
}

// FuzzD14_Block: whatever a node answers is read or refused.
func FuzzD14_Block(f *testing.F) {
	owner := solanatest.Key("owner").PublicKey()
	f.Add(blockOf(called(owner, "null", 0)))
	f.Add(bytes.ReplaceAll(blockOf(called(owner, "null", 0)), []byte(`"legacy"`), []byte("2")))
	f.Add(blockOf())
	f.Add([]byte("null"))
	c := offline(f)
	f.Fuzz(func(t *testing.T, answer []byte) {
		b, err := readBlock(&transport.Call{Out: answer}, 9)
		if err != nil {
			return
		}
		found, err := c.match(t.Context(), b, follow.Only{chain.Address(owner.String())})
		if err != nil {
			require.ErrorIs(t, err, chain.ErrNode)
			return
		}
		for _, x := range found {
			require.True(t, x.Amount.IsPositive())
		}
	})
}

// FuzzTransaction: what is read as a transaction, or as a payment of ours, is read by the
// SDK as the same bytes, and of version 1 is written back as them.
func FuzzTransaction(f *testing.F) {
	c := offline(f)
	for _, v := range load(f).Transactions {
		raw, err := base64.StdEncoding.DecodeString(v.Wire)
		require.NoError(f, err)
		f.Add(raw)
	}
	for _, v := range loadVersion1(f) {
		raw, err := base64.StdEncoding.DecodeString(v.Wire)
		require.NoError(f, err)
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		x, err := readTransaction(raw)
		if err != nil {
			return
		}
		_, _ = c.Inspect(x.message)
		if x.version == 1 { // which the SDK does not read
			require.Equal(t, raw, append(x.write1(), slices.Concat(x.signatures...)...))
			return
		}
		tx, err := sdk.TransactionFromBytes(raw)
		require.NoError(t, err)
		again, err := tx.MarshalBinary()
		require.NoError(t, err)
		require.True(t, bytes.Equal(raw, again))
	})
}
