package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/evm"
	"github.com/cryptopay-go/cryptopay/storage"
)

// tokens.json holds two compiled test tokens: one that, like USDT, returns
// nothing from transfer, and a plain ERC-20.
//
//go:embed tokens.json
var tokensJSON []byte

type artifact struct {
	ABI      json.RawMessage `json:"abi"`
	Bytecode string          `json:"bytecode"`
}

// node is a real EVM node for development, whose first unlocked account plays
// the customer and the operator.
type node struct {
	rpc    *rpc.Client
	client *evm.Client
	reg    *chain.Registry
	payer  common.Address
	tokens map[string]common.Address
	anvil  *exec.Cmd
}

// startAnvil runs a local node on a free port for the life of this program.
func startAnvil(ctx context.Context) (world, error) {
	program, err := findAnvil()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, "--port", "0", "--host", "127.0.0.1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, address, ok := strings.Cut(lines.Text(), "Listening on "); ok {
			go func() { // keep the pipe empty
				for lines.Scan() {
					continue
				}
			}()
			return dialNode(ctx, "http://"+address, cmd)
		}
	}
	return nil, errors.Join(errors.New("anvil did not start"), cmd.Wait())
}

func findAnvil() (string, error) {
	if p, err := exec.LookPath("anvil"); err == nil {
		return p, nil
	}
	p, err := filepath.Abs(".tools/node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil")
	if err == nil {
		if _, err = os.Stat(p); err == nil {
			return p, nil
		}
	}
	return "", errors.New("anvil is not installed: run ./test.sh tools here, or put anvil on the PATH")
}

func dialNode(ctx context.Context, url string, anvil *exec.Cmd) (world, error) {
	c, err := rpc.DialContext(ctx, url)
	if err != nil {
		return nil, err
	}
	n := &node{rpc: c, tokens: map[string]common.Address{}, anvil: anvil}
	var id hexutil.Uint64
	var accounts []common.Address
	err = errors.Join(c.CallContext(ctx, &id, "eth_chainId"), c.CallContext(ctx, &accounts, "eth_accounts"))
	if err != nil {
		return nil, err
	}
	if len(accounts) == 0 {
		return nil, errors.New("the node has no unlocked account to play the customer: use a development node")
	}
	n.payer = accounts[0]
	if err := n.deploy(ctx); err != nil {
		return nil, err
	}
	if n.reg, err = n.listed(int64(id)); err != nil {
		return nil, err
	}
	n.client, err = evm.New(evm.Options{Network: "ETH", ChainID: int64(id), Registry: n.reg, URL: url, FinalDepth: 12})
	return n, err
}

// deploy puts both test tokens on the chain.
func (n *node) deploy(ctx context.Context) error {
	var artifacts map[string]artifact
	if err := json.Unmarshal(tokensJSON, &artifacts); err != nil {
		return err
	}
	for code, name := range map[string]string{"USDTERC20": "NoReturnToken", "USDCERC20": "TestToken"} {
		a := artifacts[name]
		parsed, err := abi.JSON(bytes.NewReader(a.ABI))
		if err != nil {
			return err
		}
		supply := new(big.Int).Exp(big.NewInt(10), big.NewInt(15), nil)
		args, err := parsed.Pack("", "Demo "+code[:4], code[:4], uint8(6), supply)
		if err != nil {
			return err
		}
		receipt, err := n.send(ctx, map[string]any{"from": n.payer, "data": hexutil.Bytes(append(common.FromHex(a.Bytecode), args...))})
		if err != nil {
			return err
		}
		n.tokens[code] = receipt.ContractAddress
	}
	return nil
}

type receipt struct {
	ContractAddress common.Address `json:"contractAddress"`
	Status          hexutil.Uint64 `json:"status"`
}

// send has the node sign and send, and waits until it is mined.
func (n *node) send(ctx context.Context, tx map[string]any) (*receipt, error) {
	var hash common.Hash
	if err := n.rpc.CallContext(ctx, &hash, "eth_sendTransaction", tx); err != nil {
		return nil, err
	}
	for range 200 {
		var r *receipt
		if err := n.rpc.CallContext(ctx, &r, "eth_getTransactionReceipt", hash); err != nil {
			return nil, err
		}
		if r != nil && r.Status == 1 {
			return r, nil
		}
		if r != nil {
			return nil, fmt.Errorf("transaction %s reverted", hash)
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil, fmt.Errorf("transaction %s was not mined", hash)
}

// listed is the shipped registry with the node's chain id and test contracts.
func (n *node) listed(id int64) (*chain.Registry, error) {
	networks, currencies := chain.Networks(), chain.Mainnet()
	for i := range networks {
		if networks[i].Code == "ETH" {
			networks[i].ChainID, networks[i].HeadAge = id, -1 // a test chain has a block when somebody sends something
		}
	}
	for i, c := range currencies {
		if a, ok := n.tokens[c.Code]; ok {
			currencies[i].Contract = a.Hex()
		}
	}
	return chain.NewRegistry(networks, currencies)
}

func (n *node) clients() []chain.Client                   { return []chain.Client{n.client} }
func (n *node) networks() []chain.Network                 { return []chain.Network{"ETH"} }
func (n *node) currencies() []string                      { return []string{"USDTERC20", "ETH", "USDCERC20"} }
func (n *node) registry() *chain.Registry                 { return n.reg }
func (n *node) supplier() string                          { return "0x00000000000000000000000000000000DeaDBeef" }
func (n *node) save(context.Context, storage.Store) error { return nil }

func (n *node) close() error {
	n.rpc.Close()
	if n.anvil == nil {
		return nil
	}
	err := n.anvil.Process.Signal(os.Interrupt)
	_ = n.anvil.Wait() // it was interrupted
	return err
}

func (n *node) fund(ctx context.Context, to chain.Address, currency string, amount decimal.Decimal) error {
	_, err := n.pay(ctx, to, currency, amount)
	return err
}

func (n *node) pay(ctx context.Context, to chain.Address, currency string, amount decimal.Decimal) (string, error) {
	c, err := n.reg.Currency(currency)
	if err != nil {
		return "", err
	}
	units := amount.Shift(int32(c.Decimals)).BigInt()
	address := common.HexToAddress(string(to))
	tx := map[string]any{"from": n.payer, "to": address, "value": (*hexutil.Big)(units)}
	if !c.Native() {
		data := append(common.FromHex("0xa9059cbb"), common.LeftPadBytes(address.Bytes(), 32)...)
		data = append(data, common.LeftPadBytes(units.Bytes(), 32)...)
		tx = map[string]any{"from": n.payer, "to": common.HexToAddress(c.Contract), "data": hexutil.Bytes(data)}
	}
	var hash common.Hash
	err = n.rpc.CallContext(ctx, &hash, "eth_sendTransaction", tx)
	return hash.Hex(), err
}

// mine makes the node's next block; a node that cannot be told to gets a
// transaction to put into one.
func (n *node) mine(ctx context.Context) error {
	if n.rpc.CallContext(ctx, nil, "evm_mine") == nil {
		return nil
	}
	_, err := n.send(ctx, map[string]any{"from": n.payer, "to": n.payer})
	return err
}
