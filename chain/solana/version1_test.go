package solana

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"os"
	"strconv"
	"testing"

	sdk "github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/internal/nodes/solanatest"
)

// TestFN01_Version1IsReadAsAnyOther: coins, tokens and a memo in one transaction of
// version 1, each transfer explained by its instruction and proven.
func TestFN01_Version1IsReadAsAnyOther(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, b := n.fresh("a").Address, n.fresh("b").Address
	from := n.Head(t)
	at := solanatest.ATA(pubOf(b), n.program, n.mint)
	tx := n.SendV1(nil, solanatest.Words("order 7"), n.MoveCoins(pubOf(a), 2_000_000_000), n.MoveCoins(pubOf(a), 1_000_000_000),
		n.OpenATA(pubOf(b), n.program, n.mint), n.MoveTokens(at, n.program, n.mint, 4_000_000, 6))
	n.pay(chaintest.Payment{To: a, Currency: "SOL", Amount: decimal.NewFromInt(5)}) // the older form, in the same block
	n.Mine(1)
	got, err := n.scan(n.client, from, a, b)
	require.NoError(t, err)
	require.Len(t, got, 4)
	for i, want := range []struct {
		to       chain.Address
		currency string
		amount   string
	}{{a, "SOL", "2"}, {a, "SOL", "1"}, {b, "USDTSOL", "4"}} {
		x := got[i]
		require.Equal(t, tx, x.Tx)
		require.Equal(t, want.to, x.To)
		require.Equal(t, want.currency, x.Currency)
		require.Equal(t, want.amount, x.Amount.String())
		require.Equal(t, "order 7", x.Memo)
		require.EqualValues(t, n.Payer.PublicKey().String(), x.From)
		require.False(t, x.Unproven)
	}
	again, err := n.client.History(t.Context(), a, from.Height, from.Height+1)
	require.NoError(t, err)
	require.Len(t, again, 3)
	require.Contains(t, again, got[0], "one transfer has one identity, whoever asks")
}

// TestFN01_LaterVersionsCostThemselvesAlone: the bytes of transactions of versions that
// nobody here can read. What they paid to us is seen by balances and is not proven; those
// of strangers are passed; the rest of the block is read as always.
func TestFN01_LaterVersionsCostThemselvesAlone(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, b, s := n.fresh("a").Address, n.fresh("b").Address, n.fresh("stranger").Address
	n.fund(b, "USDTSOL", decimal.NewFromInt(1))
	from := n.Head(t)
	n.SendLater(2, nil, n.MoveCoins(pubOf(s), 1_000_000_000))
	ours := n.SendLater(127, nil, n.MoveCoins(pubOf(a), 2_000_000_000),
		n.MoveTokens(solanatest.ATA(pubOf(b), n.program, n.mint), n.program, n.mint, 3_000_000, 6))
	n.SendLater(2, nil, n.MoveCoins(pubOf(a), 7_000_000_000), n.Fails())
	n.pay(chaintest.Payment{To: a, Currency: "SOL", Amount: decimal.NewFromInt(5)})
	n.Mine(1)
	got, err := n.scan(n.client, from, a, b)
	require.NoError(t, err)
	require.Len(t, got, 3)
	for i, want := range []struct {
		to       chain.Address
		currency string
		amount   string
	}{{a, "SOL", "2"}, {b, "USDTSOL", "3"}} {
		x := got[i]
		require.True(t, x.Unproven)
		require.Equal(t, ours, x.Tx)
		require.Equal(t, want.to, x.To)
		require.Equal(t, want.currency, x.Currency)
		require.Equal(t, want.amount, x.Amount.String())
	}
	require.Equal(t, "5", got[2].Amount.String())
	require.False(t, got[2].Unproven)
	require.Equal(t, -1-n.place(ours, string(a)), got[0].Ordinal, "a name that a client which reads the version can give, too")
	require.Equal(t, n.place(ours, solanatest.ATA(pubOf(b), n.program, n.mint).String()), got[1].Ordinal)
	again, err := n.client.History(t.Context(), a, from.Height, from.Height+1)
	require.NoError(t, err)
	require.ElementsMatch(t, []chain.Transfer{got[0], got[2]}, again)
}

// place is where a transaction of the newest block has an account, as the node says it.
func (n *town) place(tx, account string) int {
	n.t.Helper()
	slot, err := slotOf(n.Head(n.t).Hash)
	require.NoError(n.t, err)
	var block struct {
		Transactions []struct {
			Transaction struct {
				Signatures  []string
				AccountKeys []struct{ Pubkey string }
			}
		}
	}
	n.Call(&block, "getBlock", slot, blockOptions("accounts", confirmed))
	for _, x := range block.Transactions {
		for i, k := range x.Transaction.AccountKeys {
			if x.Transaction.Signatures[0] == tx && k.Pubkey == account {
				return i
			}
		}
	}
	n.t.Fatalf("block %d has no account %s in transaction %s", slot, account, tx)
	return 0
}

// TestFN01_Version1IsSent: with Options.SendVersion1 payments go out in version 1, as
// @solana/kit reads them, at the cost that was quoted, and die as any other.
func TestFN01_Version1IsSent(t *testing.T) {
	t.Parallel()
	for name, program := range map[string]sdk.PublicKey{"spl": solanatest.Token, "token_2022": solanatest.Token2022} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := openTownOf(t, program, func(o *Options) { o.SendVersion1 = true })
			hot, to := n.fresh("hot"), n.fresh("to").Address
			n.fund(hot.Address, "SOL", decimal.NewFromInt(3))
			n.fund(hot.Address, "USDTSOL", decimal.NewFromInt(9))
			var raw [][]byte
			for _, code := range []string{"SOL", "USDTSOL"} {
				o := n.order(hot.Address, to, code, 1_000_000)
				o.Intent.Memo = "invoice 12"
				a := n.Sign(t, o, hot)
				raw = append(raw, a.Raw)
				require.NoError(t, n.Broadcast(t, a))
				n.Mine(1)
				st := n.Status(t, a)
				require.True(t, st.Executed)
				require.Positive(t, st.Cost)
				legacy, err := n.newClient().Inspect(raw[len(raw)-1][:len(a.Raw)-64])
				require.NoError(t, err, "a signer needs no option to read it")
				require.Equal(t, "invoice 12", legacy.Memo)
				require.LessOrEqual(t, st.Cost, legacy.MaxCost)
				got, err := n.client.Balance(t.Context(), code, to)
				require.NoError(t, err)
				require.True(t, got.IsPositive())
			}
			for i, m := range solanatest.Decode(t, raw...) {
				require.Equal(t, 1, m.Version)
				require.True(t, m.Signed)
				require.Len(t, m.Instructions, 2+i, "no instructions of the budget")
				require.EqualValues(t, hot.Address, m.Keys[0])
				require.NotEqual(t, "0", m.Config.PriorityFee)
				require.Empty(t, m.Config.Heap)
			}
		})
	}
}

// TestFN01_Version1LivesAndDiesAsAnyOther: the same rules of a sweep that another pays,
// of a signature of another message, and of a transaction that no block took.
func TestFN01_Version1LivesAndDiesAsAnyOther(t *testing.T) {
	t.Parallel()
	n := openTown(t, func(o *Options) { o.SendVersion1 = true })
	from, hot := n.fresh("from"), n.fresh("hot")
	n.fund(from.Address, "USDTSOL", decimal.NewFromInt(5))
	n.fund(hot.Address, "SOL", decimal.NewFromInt(1))
	n.fund(hot.Address, "USDTSOL", decimal.NewFromInt(1))
	in := sweep("i", from, hot)
	lost := n.Sign(t, chain.Order{Intent: in, Attempt: 1}, hot, from)
	require.EqualValues(t, 0x81, lost.Raw[0])
	n.Mine(Window(t))
	require.Equal(t, chain.Conflicted, n.Status(t, lost).State)
	in.ID = "ii"
	a := n.Sign(t, chain.Order{Intent: in, Attempt: 1}, hot, from)
	bad := append([]byte(nil), a.Raw...)
	bad[5] ^= 1 // the mask of settings is signed, too
	_, err := n.client.signed(a.Tx, bad)
	require.ErrorIs(t, err, chain.ErrRejected)
	_, err = n.client.signed(a.Tx, append(bad[:0:0], append(a.Raw, 0)...))
	require.ErrorIs(t, err, chain.ErrRejected, "nothing may follow the signatures")
	require.NoError(t, n.Broadcast(t, a))
	n.Mine(1)
	st := n.Status(t, a)
	require.True(t, st.Executed)
	require.Negative(t, st.Cost, "the rent of the closed account is more than the fee")
}

// Window is until a transaction that no block took is dead.
func Window(testing.TB) int { return solanatest.Window + 2*solanatest.Finality }

// TestFN01_InspectReadsEverySettingOfVersion1: a setting that Build does not make, one
// that is missing, and ones that are out of bounds are refused, and the cost counts.
func TestFN01_InspectReadsEverySettingOfVersion1(t *testing.T) {
	t.Parallel()
	c, to := offline(t), solanatest.Key("to").PublicKey()
	from := solanatest.Key("from").PublicKey()
	s := &sending{cur: c.native, from: key(from), payer: key(from), to: key(to), amount: 2_000_000_000, version1: true}
	payload, err := s.message(1_000_000, &header{Block: chain.Block{Height: 77}, blockhash: string(key{9}.text())})
	require.NoError(t, err)
	u, err := c.Inspect(payload)
	require.NoError(t, err)
	require.EqualValues(t, (5000+1000)/10, u.MaxCost)
	p, err := c.readPayment(payload)
	require.NoError(t, err)
	require.EqualValues(t, 77, p.height)
	words := p.config.words
	more := append(words[:len(words):len(words)], 0, 0, 0, 0)
	for what, set := range map[string]config{
		"none":               {},
		"no size":            {mask: configPriority | configUnits, words: words[:12]},
		"a heap":             {mask: configOurs | 1<<4, words: more},
		"half a fee":         {mask: configOurs &^ 1, words: words[4:]},
		"a newer one":        {mask: configOurs | 1<<20, words: more},
		"no deadline":        configOf(1000, 1000, 1<<26),
		"too many units":     configOf(1000, mostUnits+1, deadline),
		"a fee out of reach": configOf(priority(mostUnits, maxPrice)+1, 1000, deadline),
		"a negative fee":     configOf(-1, 1000, deadline),
	} {
		m := *p.message_
		m.config = set
		_, err := c.Inspect(m.write1())
		require.ErrorIs(t, err, chain.ErrRejected, what)
	}
	_, err = c.Inspect(append(payload[:len(payload):len(payload)], 0))
	require.ErrorIs(t, err, chain.ErrRejected)
}

// version1Vector is a transaction of version 1 as @solana/kit was told to make it, and
// what it made.
type version1Vector struct {
	What string `json:"what"`
	solanatest.Encoded
	Expect solanatest.Message `json:"expect"` // as kit reads it back
}

func loadVersion1(t testing.TB) (all []version1Vector) {
	t.Helper()
	raw, err := os.ReadFile("testdata/version1.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &all))
	require.NotEmpty(t, all)
	return all
}

// TestFN01_RecordedVersion1: transactions of @solana/kit, read without it.
func TestFN01_RecordedVersion1(t *testing.T) {
	t.Parallel()
	for _, v := range loadVersion1(t) {
		raw, err := base64.StdEncoding.DecodeString(v.Wire)
		require.NoError(t, err)
		x, err := readTransaction(raw)
		require.NoError(t, err, v.What)
		require.Equal(t, 1, x.version)
		require.Equal(t, v.Message, base64.StdEncoding.EncodeToString(x.message))
		require.Equal(t, x.message, x.write1())
		require.Len(t, x.signatures, len(v.Signatures))
		for i, s := range v.Signatures {
			require.Equal(t, s, signatureText(x.signatures[i]))
			require.True(t, ed25519.Verify(x.keys[i][:], x.message, x.signatures[i]))
		}
		require.Equal(t, v.Expect, told(x), v.What)
		for cut := range raw {
			_, err = readTransaction(raw[:cut])
			require.Error(t, err, "%s: cut to %d bytes", v.What, cut)
		}
		_, err = readTransaction(append(raw[:len(raw):len(raw)], 0))
		require.ErrorIs(t, err, errVersion)
	}
}

// told puts what the reader read in the words of @solana/kit.
func told(x *transaction) solanatest.Message {
	m := solanatest.Message{Version: x.version, Blockhash: string(x.blockhash.text()), Signed: true, Instructions: []solanatest.Instruction{}}
	words := x.config.words
	next := func(bit uint32, size int) string {
		if x.config.mask&bit == 0 {
			return ""
		}
		var b [8]byte
		copy(b[:], words[:size])
		words = words[size:]
		return strconv.FormatUint(binary.LittleEndian.Uint64(b[:]), 10)
	}
	if x.config.mask != 0 {
		m.Config = &solanatest.Config{PriorityFee: next(configPriority, 8), Units: next(configUnits, 4), Size: next(configSize, 4), Heap: next(1<<4, 4)}
	}
	for _, k := range x.keys {
		m.Keys = append(m.Keys, string(k.text()))
	}
	for i := range x.calls {
		c := &x.calls[i]
		to := solanatest.Instruction{Program: string(x.keys[c.program].text()), Data: base64.StdEncoding.EncodeToString(c.data)}
		for _, a := range c.accounts {
			at := int(a)
			writable := at < x.signers-x.readSigned || at >= x.signers && at < len(x.keys)-x.readOnly
			to.Accounts = append(to.Accounts, solanatest.Account{Address: string(x.keys[a].text()), Signer: at < x.signers, Writable: writable})
		}
		m.Instructions = append(m.Instructions, to)
	}
	return m
}

// TestFN01_RecordIsKits: testdata/version1.json is what @solana/kit makes today. With
// CRYPTOPAY_RECORD=1 it is written anew.
func TestFN01_RecordIsKits(t *testing.T) {
	t.Parallel()
	payer, other := solanatest.Key("recorded payer"), solanatest.Key("recorded other")
	n := &solanatest.Node{Payer: payer}
	mint, to := solanatest.Key("recorded mint").PublicKey(), solanatest.Key("recorded to").PublicKey()
	tokens := []sdk.Instruction{
		n.OpenATA(to, solanatest.Token, mint), solanatest.Words("order 7"),
		n.MoveTokens(solanatest.ATA(to, solanatest.Token, mint), solanatest.Token, mint, 1_500_000, 6),
	}
	const blockhash = "4ruaGCyaofHWGxPFXFVjuEJCdfBGZ2wCtEx6LzdzVqtV"
	made := []version1Vector{{What: "coins, with every setting"}, {What: "tokens, their account and a memo"}, {What: "two signers, no settings"}, {What: "no instructions, one setting"}}
	messages := []solanatest.Message{
		solanatest.MessageOf(payer, nil, blockhash, solanatest.Config{PriorityFee: "18446744073709551615", Units: "1400000", Size: "67108864", Heap: "65536"}, n.MoveCoins(to, 1<<62)),
		solanatest.MessageOf(payer, nil, blockhash, solanatest.Config{PriorityFee: "7", Units: "110000", Size: "2147483655"}, tokens...),
		solanatest.MessageOf(payer, []sdk.PrivateKey{other}, blockhash, solanatest.Config{}, system.NewTransferInstruction(5, other.PublicKey(), to).Build(), n.MoveCoins(to, 6)),
		solanatest.MessageOf(payer, nil, blockhash, solanatest.Config{Units: "150"}),
	}
	var wires [][]byte
	for i, e := range solanatest.Encode(t, messages...) {
		made[i].Encoded = e
		raw, err := base64.StdEncoding.DecodeString(e.Wire)
		require.NoError(t, err)
		wires = append(wires, raw)
	}
	for i, m := range solanatest.Decode(t, wires...) {
		require.True(t, m.Signed)
		made[i].Expect = m
	}
	if os.Getenv("CRYPTOPAY_RECORD") == "1" {
		text, err := json.MarshalIndent(made, "", " ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile("testdata/version1.json", append(text, '\n'), 0o600))
	}
	require.Equal(t, made, loadVersion1(t))
}
