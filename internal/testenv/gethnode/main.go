// Command gethnode is a go-ethereum with a fresh chain of its own (id 1337), put together of
// go-ethereum's own packages as its own command does with --dev: the tests compile most of
// them anyway, and the whole command takes minutes to compile.
//
//	gethnode PORT
//
// It answers JSON-RPC on the loopback interface until it is ended.
package main

import (
	"fmt"
	"math/big"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/ethereum/go-ethereum/accounts/keystore"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/eth"
	"github.com/ethereum/go-ethereum/eth/catalyst"
	"github.com/ethereum/go-ethereum/eth/ethconfig"
	"github.com/ethereum/go-ethereum/eth/filters"
	"github.com/ethereum/go-ethereum/node"
	"github.com/ethereum/go-ethereum/rpc"
)

const (
	gasLimit = 200_000_000
	many     = 1000          // transactions of one account that the pool keeps: a test's people send much at once
	never    = 1_000_000_000 // seconds until it makes a block by itself
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gethnode:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want the port to listen on: got %q", args)
	}
	port, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	c := node.DefaultConfig
	c.DataDir, c.IPCPath = "", ""
	c.P2P.NoDiscovery, c.P2P.MaxPeers, c.P2P.ListenAddr = true, 0, ""
	c.HTTPHost, c.HTTPPort, c.HTTPModules = "127.0.0.1", port, []string{"eth", "net", "web3", "debug", "txpool", "testing"}
	n, err := node.New(&c)
	if err != nil {
		return err
	}
	defer n.Close() //nolint:errcheck // it ends with the process
	if err := develop(n); err != nil {
		return err
	}
	if err := n.Start(); err != nil {
		return err
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, os.Interrupt, syscall.SIGTERM)
	<-end
	return nil
}

// develop gives a node a chain on which one account has everything, and signs for it.
func develop(n *node.Node) error {
	key, err := crypto.GenerateKey()
	if err != nil {
		return err
	}
	keys := keystore.NewKeyStore(n.KeyStoreDir(), keystore.LightScryptN, keystore.LightScryptP)
	rich, err := keys.ImportECDSA(key, "")
	if err == nil {
		err = keys.Unlock(rich, "")
	}
	if err != nil {
		return err
	}
	n.AccountManager().AddBackend(keys)

	c := ethconfig.Defaults
	c.NetworkId, c.SyncMode = 1337, ethconfig.FullSync
	c.Genesis = core.DeveloperGenesisBlock(gasLimit, &rich.Address)
	c.Miner.PendingFeeRecipient, c.Miner.GasPrice = rich.Address, big.NewInt(1)
	c.TxPool.AccountSlots, c.TxPool.AccountQueue = many, many
	chain, err := eth.New(n, &c)
	if err != nil {
		return err
	}
	n.RegisterAPIs([]rpc.API{{Namespace: "eth", Service: filters.NewFilterAPI(filters.NewFilterSystem(chain.APIBackend, filters.Config{}))}})
	beacon, err := catalyst.NewSimulatedBeacon(never, rich.Address, chain)
	if err != nil {
		return err
	}
	catalyst.RegisterSimulatedBeaconAPIs(n, beacon)
	n.RegisterLifecycle(beacon)
	return nil
}
