package e2e_test

import (
	"crypto/ecdsa"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/eth/ethconfig"
	"github.com/ethereum/go-ethereum/ethclient/simulated"
	gethnode "github.com/ethereum/go-ethereum/node"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/evm"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
)

const (
	gwei          = 1_000_000_000
	payers        = 6
	confirmations = 3 // that a deposit needs here
	finalDepth    = 6 // blocks, until a transaction of ours is final
)

// node is a real EVM node that mines when told, with contracts and customers.
type node struct {
	t        testing.TB
	url      string
	rpc      *rpc.Client
	id       *big.Int
	boss     *ecdsa.PrivateKey
	people   []*ecdsa.PrivateKey
	bid      int64 // gwei that people pay for gas at the most
	next     int
	nonces   map[common.Address]hexutil.Uint64
	at       map[string]common.Address // contracts by name
	registry *chain.Registry
	commit   func() // mines one block
	fork     func(depth int)
}

// listed says which test contract stands for which shipped currency.
type listed map[string]string

// The usual ones: a token that, like USDT, returns nothing; a plain one; and one
// that keeps a hundredth of every transfer.
var usual = listed{"USDTERC20": "NoReturnToken", "USDCERC20": "TestToken", "DAIERC20": "FeeToken"}

func key(name string) *ecdsa.PrivateKey {
	k, err := crypto.ToECDSA(crypto.Keccak256([]byte(name)))
	if err != nil {
		panic(err)
	}
	return k
}

func addressOf(k *ecdsa.PrivateKey) common.Address { return crypto.PubkeyToAddress(k.PublicKey) }

// rich are the accounts that have ether from the start.
func (n *node) rich() []*ecdsa.PrivateKey { return append([]*ecdsa.PrivateKey{n.boss}, n.people...) }

func newNode(t testing.TB, url string) *node {
	n := &node{t: t, url: url, boss: key("boss"), bid: 200, at: map[string]common.Address{}, nonces: map[common.Address]hexutil.Uint64{}}
	for i := range payers {
		n.people = append(n.people, key(fmt.Sprint("customer ", i)))
	}
	return n
}

func (n *node) connect() {
	n.t.Helper()
	var err error
	n.rpc, err = rpc.DialOptions(n.t.Context(), n.url, rpc.WithHTTPClient(&http.Client{Transport: &http.Transport{}}))
	require.NoError(n.t, err)
	n.t.Cleanup(n.rpc.Close)
	var id hexutil.Uint64
	n.ask(&id, "eth_chainId")
	n.id = new(big.Int).SetUint64(uint64(id))
}

// openAnvil starts anvil with a chain of its own, and more arguments.
func openAnvil(t testing.TB, tokens listed, args ...string) *node {
	t.Helper()
	n := newNode(t, testenv.Anvil(t, args...).URL())
	n.connect()
	for _, k := range n.rich() {
		n.ask(nil, "anvil_setBalance", addressOf(k), (*hexutil.Big)(ether(1_000_000)))
	}
	n.commit = func() { n.ask(nil, "evm_mine") }
	n.found(tokens)
	return n
}

// openGeth starts go-ethereum in this process, behind its own HTTP server.
func openGeth(t testing.TB, tokens listed) *node {
	t.Helper()
	port := testenv.FreePort(t)
	n := newNode(t, fmt.Sprintf("http://127.0.0.1:%d", port))
	alloc := types.GenesisAlloc{}
	for _, k := range n.rich() {
		alloc[addressOf(k)] = types.Account{Balance: ether(1_000_000)}
	}
	b := simulated.NewBackend(alloc, func(c *gethnode.Config, _ *ethconfig.Config) {
		c.HTTPHost, c.HTTPPort, c.HTTPModules = "127.0.0.1", port, []string{"eth", "debug"}
	})
	t.Cleanup(func() { _ = b.Close() })
	b.Commit()
	testenv.GethIndexed(t, port)
	n.connect()
	n.commit = func() {
		require.Eventually(t, n.pooled, 10*time.Second, 2*time.Millisecond, "the pool has everything that was sent")
		b.Commit()
	}
	n.fork = func(depth int) {
		parent := n.block(n.height() - int64(depth))
		require.NoError(t, b.Fork(parent.Hash))
	}
	n.found(tokens)
	return n
}

// pooled reports whether the pool counts every transaction of the node's people:
// go-ethereum takes them in at its leisure.
func (n *node) pooled() bool {
	for a, next := range n.nonces {
		var at hexutil.Uint64
		if err := n.rpc.CallContext(n.t.Context(), &at, "eth_getTransactionCount", a, "pending"); err != nil || at < next {
			return false
		}
	}
	return true
}

func ether(n int64) *big.Int { return new(big.Int).Mul(big.NewInt(n), big.NewInt(1e18)) }

// ask calls the node itself, past the library.
func (n *node) ask(out any, method string, params ...any) {
	n.t.Helper()
	require.NoError(n.t, n.rpc.CallContext(n.t.Context(), out, method, params...), method)
}

func (n *node) height() int64 {
	n.t.Helper()
	var h hexutil.Uint64
	n.ask(&h, "eth_blockNumber")
	return int64(h)
}

type blockHead struct {
	Hash         common.Hash    `json:"hash"`
	Timestamp    hexutil.Uint64 `json:"timestamp"`
	Transactions []common.Hash  `json:"transactions"`
}

func (n *node) block(height int64) blockHead {
	n.t.Helper()
	var b blockHead
	n.ask(&b, "eth_getBlockByNumber", hexutil.Uint64(height), false)
	return b
}

type receipt struct {
	ContractAddress *common.Address `json:"contractAddress"`
	Status          hexutil.Uint64  `json:"status"`
	BlockHash       common.Hash     `json:"blockHash"`
	Index           hexutil.Uint64  `json:"transactionIndex"`
}

// receipt is nil where the transaction is in no block.
func (n *node) receipt(tx string) *receipt {
	n.t.Helper()
	var r *receipt
	n.ask(&r, "eth_getTransactionReceipt", tx)
	return r
}

// succeeded wants a transaction in a block, with status 1.
func (n *node) succeeded(tx string) *receipt {
	n.t.Helper()
	r := n.receipt(tx)
	require.NotNil(n.t, r, "%s is in no block", tx)
	require.EqualValues(n.t, 1, r.Status, tx)
	return r
}

// pack encodes arguments after the selector of a signature; "(…)" has none.
func pack(signature string, args ...any) []byte {
	name, list, _ := strings.Cut(strings.TrimSuffix(signature, ")"), "(")
	var types abi.Arguments
	for _, s := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
		typ, err := abi.NewType(s, "", nil)
		if err != nil {
			panic(err)
		}
		types = append(types, abi.Argument{Type: typ})
	}
	data, err := types.Pack(args...)
	if err != nil {
		panic(err)
	}
	if name == "" {
		return data
	}
	return append(crypto.Keccak256([]byte(signature))[:4], data...)
}

// send signs and sends a transaction of one of the node's people.
func (n *node) send(from *ecdsa.PrivateKey, to *common.Address, value *big.Int, data []byte, gas uint64) string {
	n.t.Helper()
	var nonce hexutil.Uint64
	n.ask(&nonce, "eth_getTransactionCount", addressOf(from), "pending")
	nonce = max(nonce, n.nonces[addressOf(from)]) // the pool may not count what it has just got
	n.nonces[addressOf(from)] = nonce + 1
	tx, err := types.SignNewTx(from, types.LatestSignerForChainID(n.id), &types.DynamicFeeTx{
		ChainID: n.id, Nonce: uint64(nonce), To: to, Value: value, Data: data, Gas: gas,
		GasFeeCap: big.NewInt(n.bid * gwei), GasTipCap: big.NewInt(2 * gwei),
	})
	require.NoError(n.t, err)
	raw, err := tx.MarshalBinary()
	require.NoError(n.t, err)
	var hash common.Hash
	n.ask(&hash, "eth_sendRawTransaction", hexutil.Bytes(raw))
	return hash.Hex()
}

// returnsFalse is the code of a token that has six decimals, and answers every
// other call with false.
const returnsFalse = "60003560e01c63313ce5671460060260005260206000f3"

// undoes is the code of a contract that calls itself with the value it got;
// there it pays the address in its calldata and reverts, which it survives.
const undoes = "333014601957" + "366000600037" + "6000600036600034305af15000" + "5b" + "6000600060006000346000355af15060006000fd"

func deployer(runtime string) string {
	return fmt.Sprintf("0x60%02x80600b6000396000f3%s", len(runtime)/2, runtime)
}

// found deploys the contracts and gives the customers tokens.
func (n *node) found(tokens listed) {
	n.t.Helper()
	raw, err := os.ReadFile("../../chain/evm/testdata/contracts.json")
	require.NoError(n.t, err)
	var file struct {
		Contracts map[string]struct{ Bytecode string }
	}
	require.NoError(n.t, json.Unmarshal(raw, &file))
	made := map[string]string{}
	deploy := func(name, code string, args ...byte) {
		made[name] = n.send(n.boss, nil, new(big.Int), append(common.FromHex(code), args...), 3_000_000)
	}
	supply := new(big.Int).Exp(big.NewInt(10), big.NewInt(30), nil)
	token := func(name, label, symbol string, decimals uint8) []byte {
		return pack("(string,string,uint8,uint256)", label, symbol, decimals, supply)
	}
	coins := []string{"TestToken", "NoReturnToken", "FeeToken", "LookAlike"}
	deploy("TestToken", file.Contracts["TestToken"].Bytecode, token("", "USD Coin", "USDC", 6)...)
	deploy("NoReturnToken", file.Contracts["NoReturnToken"].Bytecode, token("", "Tether USD", "USDT", 6)...)
	deploy("FeeToken", file.Contracts["FeeToken"].Bytecode, token("", "Dai", "DAI", 18)...)
	deploy("LookAlike", file.Contracts["TestToken"].Bytecode, token("", "Tether USD", "USDT", 6)...)
	deploy("MultiSender", file.Contracts["MultiSender"].Bytecode)
	deploy("ReturnsFalse", deployer(returnsFalse))
	deploy("Undoes", deployer(undoes))
	n.commit()
	for name, tx := range made {
		n.at[name] = *n.succeeded(tx).ContractAddress
	}
	var shares []string
	share := new(big.Int).Exp(big.NewInt(10), big.NewInt(25), nil)
	for _, p := range n.people {
		for _, name := range coins {
			to := n.at[name]
			shares = append(shares, n.send(n.boss, &to, new(big.Int), pack("transfer(address,uint256)", addressOf(p), share), 500_000))
		}
	}
	n.commit()
	for _, tx := range shares {
		n.succeeded(tx)
	}
	n.registry = registryWith(n.t, n.id.Int64(), n.contracts(tokens))
}

// contracts are the addresses that the listed currencies have here.
func (n *node) contracts(tokens listed) map[string]string {
	out := map[string]string{}
	for code, name := range tokens {
		out[code] = n.at[name].Hex()
	}
	return out
}

// registryWith is the shipped registry with a node's chain id and contracts, and
// fewer confirmations.
func registryWith(t testing.TB, id int64, contracts map[string]string) *chain.Registry {
	t.Helper()
	networks, currencies := chain.Networks(), chain.Mainnet()
	for i := range networks {
		if networks[i].Code == "ETH" {
			networks[i].ChainID = id
		}
	}
	for i, c := range currencies {
		if c.Network == "ETH" {
			currencies[i].Confirmations = confirmations
		}
		if a, ok := contracts[c.Code]; ok {
			currencies[i].Contract = a
		}
	}
	r, err := chain.NewRegistry(networks, currencies)
	require.NoError(t, err)
	return r
}

// client is a new client of the node, as a new process would have one.
func (n *node) client(change ...func(*evm.Options)) *evm.Client {
	n.t.Helper()
	return newClient(n.t, n.registry, n.url, n.id.Int64(), change...)
}

func newClient(t testing.TB, registry *chain.Registry, url string, id int64, change ...func(*evm.Options)) *evm.Client {
	t.Helper()
	o := evm.Options{
		Network: "ETH", ChainID: id, Registry: registry, URL: url, FinalDepth: finalDepth,
		HTTP: &http.Client{Transport: &http.Transport{}},
	}
	for _, f := range change {
		f(&o)
	}
	c, err := evm.New(o)
	require.NoError(t, err)
	return c
}

func (n *node) currency(code string) *chain.Currency {
	n.t.Helper()
	c, err := n.registry.Currency(code)
	require.NoError(n.t, err)
	return c
}

// payer is a customer who has coins and waits for nothing.
func (n *node) payer() *ecdsa.PrivateKey {
	n.next++
	return n.people[n.next%len(n.people)]
}

// pay sends coins of a listed currency.
func (n *node) pay(to, currency string, amount decimal.Decimal) string {
	n.t.Helper()
	c := n.currency(currency)
	units, recipient := amount.Shift(int32(c.Decimals)).BigInt(), common.HexToAddress(to)
	if c.Native() {
		return n.send(n.payer(), &recipient, units, nil, 21_000)
	}
	return n.transfer(common.HexToAddress(c.Contract), to, units)
}

func (n *node) transfer(token common.Address, to string, units *big.Int) string {
	n.t.Helper()
	return n.send(n.payer(), &token, new(big.Int), pack("transfer(address,uint256)", common.HexToAddress(to), units), 500_000)
}

// scatter pays ether from within a contract.
func (n *node) scatter(amount decimal.Decimal, gas uint64, to ...string) string {
	n.t.Helper()
	var all []common.Address
	for _, a := range to {
		all = append(all, common.HexToAddress(a))
	}
	contract := n.at["MultiSender"]
	return n.send(n.payer(), &contract, amount.Shift(18).BigInt(), pack("sendEther(address[])", all), gas)
}

// holds is what an address has at the head, in whole coins.
func (n *node) holds(a, currency string) decimal.Decimal {
	n.t.Helper()
	c := n.currency(currency)
	if c.Native() {
		var v hexutil.Big
		n.ask(&v, "eth_getBalance", a, "latest")
		return decimal.NewFromBigInt(v.ToInt(), -18)
	}
	var word hexutil.Bytes
	n.ask(&word, "eth_call", map[string]any{
		"to": c.Contract, "data": hexutil.Bytes(pack("balanceOf(address)", common.HexToAddress(a))),
	}, "latest")
	return decimal.NewFromBigInt(new(big.Int).SetBytes(word), -int32(c.Decimals))
}

// raw is a signed transaction as the node has it.
func (n *node) raw(tx string) hexutil.Bytes {
	n.t.Helper()
	var raw hexutil.Bytes
	n.ask(&raw, "eth_getRawTransactionByHash", tx)
	return raw
}

// reorg replaces anvil's last blocks by empty ones and puts what was in them
// back into its pool, save what is dropped.
func (n *node) reorg(depth int, drop ...string) {
	n.t.Helper()
	var back []hexutil.Bytes
	head := n.height()
	for h := head - int64(depth) + 1; h <= head; h++ {
		for _, tx := range n.block(h).Transactions {
			if !slices.Contains(drop, tx.Hex()) {
				back = append(back, n.raw(tx.Hex()))
			}
		}
	}
	n.ask(nil, "anvil_reorg", depth, []any{})
	clear(n.nonces)
	for _, raw := range back {
		n.ask(nil, "eth_sendRawTransaction", raw)
	}
}
