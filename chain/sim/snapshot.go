package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/cryptopay-go/cryptopay/chain"
)

// saved is a Snapshot: all but Options, faults of nodes, and what follows from
// the rest.
type saved struct {
	Version   int                  `json:"version"`
	Network   chain.Network        `json:"network"`
	Family    chain.Family         `json:"family"`
	Genesis   string               `json:"genesis"`
	Start     int64                `json:"start"`
	Rand      []byte               `json:"rand"`
	Seq       uint64               `json:"seq"`
	Level     int64                `json:"level"`
	Main      []*block             `json:"main"`
	Orphans   []*block             `json:"orphans,omitempty"`
	Txs       []*tx                `json:"txs,omitempty"`
	Pool      []string             `json:"pool,omitempty"`
	Contracts map[string]Behaviour `json:"contracts,omitempty"`
}

const snapshotVersion = 1

// Snapshot writes the whole chain down, with every block and transaction that
// ever was. Same chain, same bytes.
func (c *Chain) Snapshot() ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	random, err := c.rng.MarshalBinary()
	if err != nil {
		return nil, err
	}
	s := saved{
		Version: snapshotVersion, Network: c.opt.Network, Family: c.opt.Family, Genesis: c.genesis,
		Start: c.opt.StartHeight, Rand: random, Seq: c.seq, Level: c.level, Main: c.main,
		Orphans: c.orphans(), Contracts: c.contracts,
	}
	for _, h := range c.made {
		s.Txs = append(s.Txs, c.txs[h])
	}
	for _, t := range c.pooled() {
		s.Pool = append(s.Pool, t.Hash)
	}
	return json.Marshal(s)
}

// Restore puts a Snapshot of a chain of the same network and family in the
// place of what this one has. Its first block, and with it the seed's part in
// signatures, comes from the snapshot. On an error nothing is changed.
func (c *Chain) Restore(data []byte) error {
	var s saved
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("sim: not a snapshot: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case s.Version != snapshotVersion:
		return fmt.Errorf("sim: a snapshot of version %d, this is %d", s.Version, snapshotVersion)
	case s.Network != c.opt.Network || s.Family != c.opt.Family:
		return fmt.Errorf("sim: a snapshot of %s (%s), this is %s (%s)", s.Network, s.Family, c.opt.Network, c.opt.Family)
	case len(s.Main) == 0 || s.Main[0].Hash != s.Genesis:
		return errors.New("sim: a snapshot without its first block")
	}
	random := new(rand.PCG)
	if err := random.UnmarshalBinary(s.Rand); err != nil {
		return fmt.Errorf("sim: not a snapshot: %w", err)
	}
	txs, made, err := s.transactions()
	if err != nil {
		return err
	}
	c.txs, c.made, c.rng, c.seq, c.level = txs, made, random, s.Seq, s.Level
	c.genesis, c.opt.StartHeight = s.Genesis, s.Start
	c.contracts = s.Contracts
	if c.contracts == nil {
		c.contracts = map[string]Behaviour{}
	}
	c.replay(&s)
	return nil
}

// transactions reads all of them, and checks that none is missing.
func (s *saved) transactions() (map[string]*tx, []string, error) {
	txs, made := map[string]*tx{}, []string(nil)
	for _, x := range s.Txs {
		t, err := newTx(x.Raw, x.Arrived)
		if err != nil {
			return nil, nil, err
		}
		if t.Hash != x.Hash {
			return nil, nil, fmt.Errorf("sim: a snapshot with changed transaction %s", x.Hash)
		}
		txs[t.Hash], made = t, append(made, t.Hash)
	}
	used := s.Pool[:len(s.Pool):len(s.Pool)]
	for _, b := range append(s.Main[:len(s.Main):len(s.Main)], s.Orphans...) {
		for _, r := range b.Txs {
			used = append(used, r.Tx)
		}
	}
	for _, h := range used {
		if txs[h] == nil {
			return nil, nil, fmt.Errorf("sim: a snapshot without transaction %s", h)
		}
	}
	return txs, made, nil
}

// replay rebuilds the state from the blocks.
func (c *Chain) replay(s *saved) {
	c.kv, c.main, c.blocks, c.pool = map[string]string{}, nil, map[string]*block{}, newPool()
	for _, b := range s.Orphans {
		c.blocks[b.Hash] = b
	}
	for _, b := range s.Main {
		c.blocks[b.Hash] = b
		c.redo(b)
	}
	for _, h := range s.Pool {
		c.enpool(c.txs[h])
	}
}
