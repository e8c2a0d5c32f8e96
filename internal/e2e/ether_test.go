package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/evm"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
)

// pruned is an anvil that keeps the state of its last 128 blocks, as a pruned node does.
func pruned(t testing.TB) *node {
	t.Helper()
	return openAnvil(t, usual, "--prune-history", "128", "--gas-limit", "100000000")
}

// scatterAll pays many addresses from within the contract, in transactions of 250.
func (n *node) scatterAll(each decimal.Decimal, to []string) {
	n.t.Helper()
	for part := range slices.Chunk(to, 250) {
		n.scatter(each.Mul(decimal.NewFromInt(int64(len(part)))), 14_000_000, part...)
	}
}

// deposits are all of the tenant's, by address.
func (h *host) deposits() map[string][]payment.Deposit {
	h.t.Helper()
	out := map[string][]payment.Deposit{}
	for offset := 0; ; offset += 1000 {
		rows, err := h.store.Find(h.t.Context(), storage.Query{
			Table: payment.Deposits.Table, Partition: storage.Tenant(h.tenant), Limit: 1000, Offset: offset,
		})
		require.NoError(h.t, err)
		for _, r := range rows {
			d := payment.Deposits.Value(r)
			out[d.Address] = append(out[d.Address], d)
		}
		if len(rows) < 1000 {
			return out
		}
	}
}

// away mines while the App is down.
func (h *host) away(blocks int) {
	h.t.Helper()
	h.node.ask(nil, "anvil_mine", blocks)
	h.clock.Advance(time.Duration(blocks) * time.Second)
}

// A contract pays 3,000 payments: half of them late, half of them while the App is down
// for longer than its node keeps state.
func TestFN05_EveryPaymentThatAContractPaysIsFound(t *testing.T) {
	t.Parallel()
	n := pruned(t)
	h := newHost(t, n, func(s *setup) { s.signer = func(chain.Signer) chain.Signer { return nil } }) // nothing is forwarded
	const half = 1500
	var all []string
	var due decimal.Decimal
	more := func() {
		for range half {
			p := h.order("300", "ETH")
			all, due = append(all, p.Address), h.due(p)
		}
	}
	more()
	h.later(61 * time.Minute)
	h.mine(1)
	more()
	h.mine(1)

	var down, up []string // who is paid when: of the expired and of the open half of each
	for i, a := range all {
		if i%2 == 0 {
			down = append(down, a)
		} else {
			up = append(up, a)
		}
	}
	n.scatterAll(due, down)
	h.away(200)
	var state json.RawMessage
	require.Error(t, n.rpc.CallContext(t.Context(), &state, "eth_getBalance", all[0], "0x1"), "the node has thrown old state away")
	h.restart()
	h.step()
	n.scatterAll(due, up)
	h.mine(finalDepth)
	h.clock.Advance(5 * time.Minute)
	h.mine(finalDepth)

	found := h.deposits()
	credited, suspended := 0, 0
	for i, a := range all {
		require.Len(t, found[a], 1, "payment %d, expired: %v, down: %v", i, i < half, i%2 == 0)
		d := found[a][0]
		require.True(t, d.Exact.Equal(due), "payment %d: %s", i, d.Exact)
		switch d.Booking {
		case payment.InWallet:
			credited++
			require.True(t, i >= half && i%2 == 1)
		case payment.InSuspense:
			suspended++
			require.Equal(t, i%2 == 0, d.Role == payment.RoleUnproven, "only what nobody could see is unproven")
		default:
			t.Fatalf("payment %d: booked %q, %s, %s", i, d.Booking, d.Role, d.State)
		}
	}
	require.Equal(t, half/2, credited)
	require.Equal(t, 3*half/2, suspended)
	require.Equal(t, due.Mul(decimal.NewFromInt(half/2)).String(), h.available("ETH"))
	h.sound("deposit_received")
}

// forgetful passes calls on to a node that keeps all state, but answers as a pruned
// go-ethereum does what is asked of the state of blocks that it was told to forget.
func forgetful(t testing.TB, n *node) (at string, forget func(below int64)) {
	t.Helper()
	u, err := url.Parse(n.url)
	require.NoError(t, err)
	var mu sync.Mutex
	var gone map[string]bool // hashes and heights
	proxy := httputil.NewSingleHostReverseProxy(u)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		type call struct {
			ID     int               `json:"id"`
			Method string            `json:"method"`
			Params []json.RawMessage `json:"params"`
		}
		var calls []call
		mu.Lock()
		defer mu.Unlock()
		if json.Unmarshal(body, &calls) == nil && len(gone) > 0 {
			var out []any
			for _, k := range calls {
				var refused any
				if state := k.Method == "eth_getBalance" || k.Method == "eth_call" || k.Method == "eth_getTransactionCount"; state && len(k.Params) == 2 {
					var b struct{ BlockHash string }
					var tag string
					_ = json.Unmarshal(k.Params[1], &b)
					_ = json.Unmarshal(k.Params[1], &tag)
					if gone[b.BlockHash] || gone[tag] {
						refused = map[string]any{"code": -32000, "message": "missing trie node 0d1a (path ) state 0x0d1a is not available"}
					}
				}
				if refused != nil {
					out = append(out, map[string]any{"jsonrpc": "2.0", "id": k.ID, "error": refused})
					continue
				}
				params := make([]any, len(k.Params))
				for i, p := range k.Params {
					params[i] = p
				}
				var result json.RawMessage
				err := n.rpc.CallContext(r.Context(), &result, k.Method, params...)
				var answered rpc.Error
				switch {
				case errors.As(err, &answered):
					out = append(out, map[string]any{"jsonrpc": "2.0", "id": k.ID, "error": map[string]any{"code": answered.ErrorCode(), "message": answered.Error()}})
				case len(result) == 0:
					out = append(out, map[string]any{"jsonrpc": "2.0", "id": k.ID, "result": nil})
				default:
					out = append(out, map[string]any{"jsonrpc": "2.0", "id": k.ID, "result": result})
				}
			}
			_ = json.NewEncoder(w).Encode(out)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, func(below int64) {
		mu.Lock()
		defer mu.Unlock()
		gone = map[string]bool{}
		for h := range below {
			gone[n.block(h).Hash.Hex()], gone[hexutil.EncodeUint64(uint64(h))] = true, true
		}
	}
}

// What was booked by balances alone is not booked again by whoever can name its
// transaction later: a node that keeps all state, asked by hand.
func TestFN05_WhatBalancesShowedIsNotCreditedAgainByItsTrace(t *testing.T) {
	t.Parallel()
	n := openAnvil(t, usual)
	u, forget := forgetful(t, n)
	h := newHost(t, n, func(s *setup) { s.client = newClient(t, n.registry, u, n.id.Int64()) })
	p := h.order("300", "ETH")
	n.scatter(h.due(p), 200_000, p.Address)
	h.away(200)
	forget(n.height() - 128)
	h.restart()
	h.mine(finalDepth)
	list := h.deposits()[p.Address]
	require.Len(t, list, 1)
	require.Equal(t, payment.RoleUnproven, list[0].Role)
	require.Equal(t, payment.InSuspense, list[0].Booking)

	forget(0)
	_, _, err := h.app.Operate.RecoverDeposits(t.Context(), "ETH", chain.Address(p.Address), 0, 0, cryptopay.Call{By: "ops", Reason: "asked"})
	require.NoError(t, err)
	h.mine(finalDepth)
	require.Len(t, h.deposits()[p.Address], 1)
	require.Equal(t, "0", h.available("ETH"))
	d, err := h.app.Payments.Resolve(t.Context(), h.tenant, list[0].ID, "")
	require.NoError(t, err)
	require.Equal(t, payment.Resolved, d.Booking)
	require.Equal(t, "0.15", h.available("ETH"), "credited by a person, in full")
	h.sound()
}

// TestFN05_WhatComesBetweenTwoRoundsIsCredited: on a fast chain 300 blocks pass between two rounds.
// What a contract pays in the first of them to an address that is not compared at each block is
// credited where the node keeps all state, whether the App ran or not.
func TestFN05_WhatComesBetweenTwoRoundsIsCredited(t *testing.T) {
	t.Parallel()
	for name, pause := range map[string]func(*host){
		"it runs":     func(h *host) { h.step() },
		"it was down": func(h *host) { h.restart(); h.step() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := openAnvil(t, usual)
			h := newHost(t, n, func(s *setup) { s.signer = func(chain.Signer) chain.Signer { return nil } }) // nothing is forwarded
			require.NoError(t, h.app.Upgraded(t.Context()))
			idle, made, err := h.app.Payments.PermanentAddress(t.Context(), h.tenant, payment.AddressInput{Currency: "ETH", ExternalID: "one"})
			require.NoError(t, err)
			require.True(t, made)
			late := h.order("300", "ETH")
			h.later(61 * time.Minute)
			h.mine(finalDepth)
			h.clock.Advance(5 * time.Minute)
			h.mine(1) // a round
			n.scatter(dec("0.3"), 200_000, idle.Address, late.Address)
			n.commit()
			h.away(299)
			pause(h)
			h.mine(finalDepth)
			for _, a := range []string{idle.Address, late.Address} {
				list := h.deposits()[a]
				require.Len(t, list, 1)
				require.NotEqual(t, payment.RoleUnproven, list[0].Role)
				require.True(t, dec("0.15").Equal(list[0].Exact))
			}
			require.Equal(t, payment.InWallet, h.deposits()[idle.Address][0].Booking)
			require.Equal(t, "0.15", h.available("ETH"))
			h.sound()
		})
	}
}

// callCounter counts the calls of JSON-RPC that pass it: each entry of a batch is one.
type callCounter struct {
	mu    sync.Mutex
	calls map[string]int
}

// counted is a node behind a callCounter.
func counted(t testing.TB, target string) (string, *callCounter) {
	t.Helper()
	u, err := url.Parse(target)
	require.NoError(t, err)
	c, proxy := &callCounter{calls: map[string]int{}}, httputil.NewSingleHostReverseProxy(u)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		type call struct{ Method string }
		var all []call
		if json.Unmarshal(body, &all) != nil {
			all = make([]call, 1)
			_ = json.Unmarshal(body, &all[0])
		}
		c.mu.Lock()
		for _, k := range all {
			c.calls[k.Method]++
		}
		c.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, c
}

// take is how many calls there were since the last take.
func (c *callCounter) take() (n int, by map[string]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	by = c.calls
	for _, k := range by {
		n += k
	}
	c.calls = map[string]int{}
	return n, by
}

func TestFP07_AnEmptyBlockCostsThreeCallsWhileAThousandPaymentsWait(t *testing.T) {
	t.Parallel()
	n := openAnvil(t, usual)
	u, c := counted(t, n.url)
	h := newHost(t, n, func(s *setup) {
		s.client = newClient(t, n.registry, u, n.id.Int64(), func(o *evm.Options) { o.FinalityTags = true })
	})
	for range 1000 {
		h.order("300", "ETH")
	}
	h.mine(2 * finalDepth)
	c.take()
	h.step()
	idle, _ := c.take() // what a poll of a chain without news costs
	for range 5 {
		n.commit()
		h.clock.Advance(time.Second) // no round is due, and nothing waits for a time
		h.step()
		calls, by := c.take()
		require.LessOrEqual(t, calls-2*idle, 3, "%v", by) // one poll finds the block, and the next nothing
		require.Equal(t, 1, by["eth_call"], "the balances were read")
	}
}

// kills is the code of a contract that destroys itself in favour of the address in its
// calldata.
const kills = "600035ff"

// The rest of the ways in which ether comes otherwise than as a transaction's value.
func TestFN05_EtherOfContractsIsFoundInEveryCase(t *testing.T) {
	t.Parallel()
	n := pruned(t)
	h := newHost(t, n)
	round := func() {
		t.Helper()
		h.mine(finalDepth)
		h.clock.Advance(5 * time.Minute)
		h.mine(finalDepth)
	}
	of := func(p *payment.Payment) (sum decimal.Decimal, all []payment.Deposit) {
		t.Helper()
		all = h.deposits()[p.Address]
		for _, d := range all {
			sum = sum.Add(d.Exact)
		}
		return sum, all
	}
	one := dec("0.15")

	t.Log("a second time, to a payment that is completed and swept")
	again := h.earn("300", "ETH")
	n.scatter(one, 200_000, again.Address)
	round()
	sum, all := of(again)
	require.Len(t, all, 2)
	require.True(t, dec("0.3").Equal(sum), "%s", sum)

	t.Log("at the hot address")
	before := h.holding(h.hot)
	tx := n.scatter(dec("3"), 200_000, h.hot)
	round()
	require.Len(t, h.sightings(tx), 1, "the operator's coins")
	require.True(t, dec("2.9").LessThan(h.holding(h.hot).Sub(before)))

	t.Log("of a contract that destroys itself")
	dead := h.order("300", "ETH")
	h.later(61 * time.Minute)
	h.mine(1)
	killer := n.send(n.payer(), nil, new(big.Int), common.FromHex(deployer(kills)), 200_000)
	h.mine(1)
	at := *n.succeeded(killer).ContractAddress
	n.succeeded(func() string {
		tx := n.send(n.payer(), &at, one.Shift(18).BigInt(), common.LeftPadBytes(common.HexToAddress(dead.Address).Bytes(), 32), 200_000)
		h.mine(1)
		return tx
	}())
	round()
	sum, all = of(dead)
	require.Len(t, all, 1)
	require.True(t, one.Equal(sum))
	require.Equal(t, payment.InSuspense, all[0].Booking)

	t.Log("with a transaction of its own in the same block, late")
	both := h.order("300", "ETH")
	h.later(61 * time.Minute)
	h.mine(1)
	n.pay(both.Address, "ETH", dec("0.05"))
	n.scatter(one, 200_000, both.Address)
	round()
	sum, all = of(both)
	require.Len(t, all, 2)
	require.True(t, dec("0.2").Equal(sum))

	t.Log("in the same block as our sweep of it")
	swept := h.order("300", "ETH")
	n.pay(swept.Address, "ETH", one)
	for range 40 { // the sweep waits in the pool: it and the payment are mined together
		h.clock.Advance(blockTime)
		h.step()
		var pool struct {
			Pending map[string]any
		}
		n.ask(&pool, "txpool_content")
		if _, ok := pool.Pending[swept.Address]; ok {
			break
		}
		n.commit()
	}
	n.scatter(one, 200_000, swept.Address)
	round()
	sum, all = of(swept)
	require.Len(t, all, 2)
	require.True(t, dec("0.3").Equal(sum), "%s", sum)

	t.Log("in a block that is reorganised away")
	late := h.order("300", "ETH")
	h.later(61 * time.Minute)
	h.mine(1)
	n.scatter(one, 200_000, late.Address)
	h.mine(1)
	h.clock.Advance(5 * time.Minute)
	h.mine(1) // found, and not final
	_, all = of(late)
	require.Len(t, all, 1)
	n.reorg(2)
	round()
	sum, all = of(late)
	require.Len(t, all, 1, "once, wherever it is mined")
	require.True(t, one.Equal(sum))
	require.Equal(t, payment.InSuspense, all[0].Booking)

	t.Log("at the hot address and to a late payment, while nobody looked")
	missed := h.order("300", "ETH")
	h.later(61 * time.Minute)
	round()
	n.scatter(dec("2"), 200_000, missed.Address, h.hot)
	h.away(300)
	h.restart()
	round()
	sum, all = of(missed)
	require.Len(t, all, 1)
	require.True(t, dec("1").Equal(sum))
	require.Equal(t, payment.RoleUnproven, all[0].Role)
	unproven := 0
	for _, s := range h.at(h.hot) {
		if s.Unproven {
			unproven++
			require.True(t, dec("1").Equal(s.Exact), "%s", s.Exact)
		}
	}
	require.Equal(t, 1, unproven, "the operator's coins")
	h.sound()

	t.Log("and none of it twice, after another start")
	counts := len(h.at(h.hot))
	was := h.deposits()
	h.restart()
	round()
	require.Len(t, h.deposits(), len(was))
	for a, list := range h.deposits() {
		require.Len(t, list, len(was[a]))
	}
	require.Len(t, h.at(h.hot), counts)
	h.sound()
}

// later lets time pass, for the App and for the chain.
func (h *host) later(d time.Duration) {
	h.t.Helper()
	h.clock.Advance(d)
	h.node.ask(nil, "evm_setNextBlockTimestamp", h.clock.Now().Unix())
}

// holding is what an address holds at the head.
func (h *host) holding(a string) decimal.Decimal { return h.node.holds(a, "ETH") }

// at are the sightings of an address.
func (h *host) at(a string) (out []incoming.Sighting) {
	h.t.Helper()
	rows, err := h.store.Find(h.t.Context(), storage.Query{
		Table: incoming.Sightings.Table, Partition: storage.Network("ETH"), Limit: 1000,
		Where: []storage.Cond{{Column: "address", Op: storage.Eq, Value: a}},
	})
	require.NoError(h.t, err)
	for _, r := range rows {
		out = append(out, incoming.Sightings.Value(r))
	}
	return out
}
