package simulation_test

import (
	"crypto/ecdsa"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"os"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/sim"
)

// sent is a transaction of somebody outside.
type sent struct {
	from   *ecdsa.PrivateKey
	nonce  uint64
	price  int64 // gwei
	token  common.Address
	broke  bool           // he has no tokens
	within bool           // a contract pays
	to     common.Address // whom it pays
}

const boss = "boss"

func person(name string) *ecdsa.PrivateKey {
	k, err := crypto.ToECDSA(crypto.Keccak256([]byte("customer/" + name)))
	if err != nil {
		panic(err)
	}
	return k
}

func addressOf(k *ecdsa.PrivateKey) common.Address { return crypto.PubkeyToAddress(k.PublicKey) }

// packed is a call with arguments of one word each.
func packed(signature string, args ...[]byte) []byte {
	out := crypto.Keccak256([]byte(signature))[:4]
	for _, a := range args {
		out = append(out, common.LeftPadBytes(a, 32)...)
	}
	return out
}

// undoes is the code of a contract that calls itself with the value it got; there
// it pays the address in its calldata and reverts, which it survives.
const undoes = "333014601957" + "366000600037" + "6000600036600034305af15000" + "5b" + "6000600060006000346000355af15060006000fd"

// deploy makes the contracts, and copies the tokens to where mainnet has them.
func (c *anvil) deploy() {
	c.t.Helper()
	raw, err := os.ReadFile("../chain/evm/testdata/contracts.json")
	require.NoError(c.t, err)
	var file struct {
		Contracts map[string]struct{ Bytecode string }
	}
	require.NoError(c.t, json.Unmarshal(raw, &file))
	supply := new(big.Int).Exp(big.NewInt(10), big.NewInt(30), nil)
	made, nonce := map[string]string{}, uint64(0)
	deploy := func(name, code string, args []byte) {
		hash, err := c.sign(&sent{from: person(boss), nonce: nonce, price: 100}, nil, nil, append(common.FromHex(code), args...), 3_000_000)
		require.NoError(c.t, err)
		made[name], nonce = hash, nonce+1
	}
	deploy("USDCERC20", file.Contracts["TestToken"].Bytecode, token("USD Coin", "USDC", supply))
	deploy("USDTERC20", file.Contracts["NoReturnToken"].Bytecode, token("Tether USD", "USDT", supply))
	deploy("LookAlike", file.Contracts["TestToken"].Bytecode, token("Tether USD", "USDT", supply))
	deploy("MultiSender", file.Contracts["MultiSender"].Bytecode, nil)
	deploy("Undoes", fmt.Sprintf("0x60%02x80600b6000396000f3%s", len(undoes)/2, undoes), nil)
	c.Mine(1)
	for name, hash := range made {
		var r types.Receipt
		c.ask(&r, "eth_getTransactionReceipt", hash)
		require.EqualValues(c.t, 1, r.Status, name)
		c.at[name] = r.ContractAddress
	}
	for _, code := range []string{"USDCERC20", "USDTERC20"} {
		cur, err := c.o.Registry.Currency(code)
		require.NoError(c.t, err)
		c.move(code, common.HexToAddress(cur.Contract))
	}
	c.slot("LookAlike", supply)
	c.slot("USDCERC20", supply)
	c.slot("USDTERC20", supply)
	c.Mine(1)
}

// token is what the constructors of the tokens take: two texts, 6 decimals, supply.
func token(name, symbol string, supply *big.Int) []byte {
	word := func(n *big.Int) []byte { return common.LeftPadBytes(n.Bytes(), 32) }
	text := func(s string) []byte {
		return append(word(big.NewInt(int64(len(s)))), common.RightPadBytes([]byte(s), 32)...)
	}
	var out []byte
	for _, w := range [][]byte{word(big.NewInt(128)), word(big.NewInt(192)), word(big.NewInt(6)), word(supply), text(name), text(symbol)} {
		out = append(out, w...)
	}
	return out
}

// kept is where a token of these keeps somebody's balance, if it does so at a slot.
func kept(a common.Address, slot uint64) common.Hash {
	return crypto.Keccak256Hash(common.LeftPadBytes(a.Bytes(), 32), common.BigToHash(new(big.Int).SetUint64(slot)).Bytes())
}

const slots = 8 // no contract here has more variables

// move copies a contract to another address, with its variables and what the boss has.
func (c *anvil) move(name string, to common.Address) {
	from := c.at[name]
	var code hexutil.Bytes
	c.ask(&code, "eth_getCode", from, "latest")
	c.ask(nil, "anvil_setCode", to, code)
	for i := range uint64(slots) {
		for _, at := range []common.Hash{common.BigToHash(new(big.Int).SetUint64(i)), kept(addressOf(person(boss)), i)} {
			var word common.Hash
			c.ask(&word, "eth_getStorageAt", from, at, "latest")
			c.ask(new(bool), "anvil_setStorageAt", to, at, word)
		}
	}
	c.at[name] = to
}

// slot finds where a token keeps balances, by the boss's.
func (c *anvil) slot(name string, supply *big.Int) {
	for i := range uint64(slots) {
		var word common.Hash
		c.ask(&word, "eth_getStorageAt", c.at[name], kept(addressOf(person(boss)), i), "latest")
		if word.Big().Cmp(supply) == 0 {
			c.slots[c.at[name]] = i
			return
		}
	}
	c.t.Fatalf("where %s keeps balances is not known", name)
}

// grant gives somebody what he needs: a rollback has taken it from him again.
func (c *anvil) grant(s *sent) {
	much := new(big.Int).Exp(big.NewInt(10), big.NewInt(24), nil)
	c.ask(nil, "anvil_setBalance", addressOf(s.from), (*hexutil.Big)(much))
	if s.token != (common.Address{}) && !s.broke {
		c.ask(new(bool), "anvil_setStorageAt", s.token, kept(addressOf(s.from), c.slots[s.token]), common.BigToHash(much))
	}
}

// sign sends a transaction of somebody outside.
func (c *anvil) sign(s *sent, to *common.Address, value *big.Int, data []byte, gas uint64) (string, error) {
	c.grant(s)
	tx, err := types.SignNewTx(s.from, types.LatestSignerForChainID(big.NewInt(1)), &types.DynamicFeeTx{
		ChainID: big.NewInt(1), Nonce: s.nonce, To: to, Value: value, Data: data, Gas: gas,
		GasFeeCap: big.NewInt(s.price * 1e9), GasTipCap: big.NewInt(s.price * 1e8),
	})
	require.NoError(c.t, err)
	raw, err := tx.MarshalBinary()
	require.NoError(c.t, err)
	if err := c.rpc.CallContext(c.t.Context(), nil, "eth_sendRawTransaction", hexutil.Bytes(raw)); err != nil {
		return "", err
	}
	hash := c.keep(raw)
	c.theirs[hash] = s
	return hash, nil
}

var errNotHere = errors.New("no contract here does that")

// Send sends one transaction for each payment, and tells the first. Everybody
// sends but once, so that nothing waits for what was dropped.
func (c *anvil) Send(tx sim.Tx) (first string, err error) {
	for i := range tx.Payments {
		c.people++
		s := &sent{from: person(fmt.Sprint("stranger ", c.people)), price: 20, to: common.HexToAddress(string(tx.Payments[i].To))}
		if old := c.theirs[tx.Replaces]; old != nil {
			s.from, s.nonce, s.price = old.from, old.nonce, old.price*2
		}
		hash, err := c.pay(s, &tx.Payments[i])
		if err != nil {
			return first, err
		}
		if first == "" {
			first = hash
		}
	}
	return first, nil
}

func (c *anvil) pay(s *sent, p *sim.Payment) (string, error) {
	contract, decimals := p.Contract, int32(6)
	if contract == "" {
		cur, err := c.o.Registry.Currency(p.Currency)
		if err != nil {
			return "", err
		}
		contract, decimals = cur.Contract, int32(cur.Decimals)
	}
	units := p.Amount.Shift(decimals).BigInt()
	if contract != "" {
		s.token, s.broke = common.HexToAddress(contract), p.Effect == sim.Reverted
		if p.Effect != sim.Plain && p.Effect != sim.Reverted {
			return "", errNotHere
		}
		return c.sign(s, &s.token, nil, packed("transfer(address,uint256)", s.to.Bytes(), units.Bytes()), 100_000)
	}
	multi, undo := c.at["MultiSender"], c.at["Undoes"]
	scatter := packed("sendEther(address[])", []byte{32}, []byte{1}, s.to.Bytes())
	switch p.Effect {
	case sim.Internal:
		s.within = true
		return c.sign(s, &multi, units, scatter, 200_000)
	case sim.Reverted:
		return c.sign(s, &multi, units, scatter, 40_000) // it runs out
	case sim.InnerReverted:
		return c.sign(s, &undo, units, common.LeftPadBytes(s.to.Bytes(), 32), 200_000)
	case sim.Plain:
		return c.sign(s, &s.to, units, nil, 21_000)
	}
	return "", errNotHere
}

func (c *anvil) Fund(to chain.Address, code string, amount decimal.Decimal) (string, error) {
	hash, err := c.Send(sim.Tx{Payments: []sim.Payment{{To: to, Currency: code, Amount: amount}}})
	c.Mine(1)
	return hash, err
}

func (c *anvil) Transactions(ours bool) (out []string) {
	for _, h := range c.made {
		if c.theirs[h] == nil || !ours {
			out = append(out, h)
		}
	}
	return out
}

func (c *anvil) Customer(name string) chain.Address {
	return chain.Address(addressOf(person(name)).Hex())
}

func (c *anvil) LookAlike(string) string { return c.at["LookAlike"].Hex() }
