package tron

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/internal/clienttest"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/internal/nodes/trontest"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// customer is an account with a key.
func (n *town) customer(t testing.TB, name string) chaintest.Account {
	t.Helper()
	a, err := chaintest.Secp256k1Account(n.client, t.Name()+name)
	require.NoError(t, err)
	return a
}

// fund gives coins, in a block of their own.
func (n *town) fund(t testing.TB, to chain.Address, currency string, amount int64) {
	t.Helper()
	n.pay(t, "", false, chaintest.Payment{To: to, Currency: currency, Amount: decimal.NewFromInt(amount)})
	n.Mine(1)
}

func (n *town) intent(from, to chain.Address, currency string, amount int64) chain.Intent {
	in := n.Intent(from, to, amount*trx)
	in.Currency = currency
	return in
}

// attempt makes the attempt of an order.
func (n *town) attempt(t testing.TB, from chaintest.Account, in chain.Intent) chain.Attempt {
	t.Helper()
	return n.Sign(t, n.Order(t, in), from)
}

// swap puts one text of an answer in the place of another.
func (n *town) swap(path, from, to string) {
	n.Set(func(f *trontest.Fault) {
		f.Tamper = func(p string, body []byte) []byte {
			if p != path {
				return body
			}
			return bytes.ReplaceAll(body, []byte(from), []byte(to))
		}
	})
}

func TestD13_UnknownOutcomeIsNoTransfer(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	to := n.customer(t, "to").Address
	start := n.Head(t)
	for _, code := range []string{"TRX", "USDTTRC20"} {
		n.pay(t, trontest.Strange, false, chaintest.Payment{To: to, Currency: code, Amount: decimal.NewFromInt(7)})
		n.pay(t, trontest.Reverted, false, chaintest.Payment{To: to, Currency: code, Amount: decimal.NewFromInt(7)})
	}
	n.Mine(1)
	s, err := n.client.Scan(t.Context(), []chain.Block{start}, follow.Only{to}, 9)
	require.NoError(t, err)
	require.Len(t, s.Blocks, 1)
	require.Empty(t, s.Blocks[0].Transfers)
}

func TestD13_BlockAndReceiptMustAgree(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/wallet/getblockbylimitnext", "/wallet/gettransactioninfobyblocknum"} {
		n := openTown(t)
		to := n.customer(t, "to").Address
		start := n.Head(t)
		n.fund(t, to, "USDTTRC20", 7)
		n.swap(path, `"SUCCESS"`, `"OUT_OF_TIME"`)
		s, err := n.client.Scan(t.Context(), []chain.Block{start}, follow.Only{to}, 9)
		require.ErrorIs(t, err, chain.ErrNode, path)
		require.Empty(t, s.Blocks)
	}
}

func TestD13_TRC10IsNoCurrency(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	to := n.customer(t, "to").Address
	start := n.Head(t)
	n.pay(t, trontest.Asset, false, chaintest.Payment{To: to, Currency: "TRX", Amount: decimal.NewFromInt(7)})
	n.Mine(1)
	s, err := n.client.Scan(t.Context(), []chain.Block{start}, follow.Only{to}, 9)
	require.NoError(t, err)
	require.Len(t, s.Blocks[0].Transfers, 1)
	x := s.Blocks[0].Transfers[0]
	require.Empty(t, x.Currency)
	require.Equal(t, "TRC10/1000001", x.Contract)
	require.Nil(t, n.registry.ByContract("TRX", x.Contract))
}

func TestD13_BytesThatAreNotTheTransactionsAreAnError(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	to := n.customer(t, "to").Address
	start := n.Head(t)
	n.fund(t, to, "TRX", 7)
	n.swap("/wallet/getblockbylimitnext", "18c09fab03", "18c09fab04") // 7000000 sun
	_, err := n.client.Scan(t.Context(), []chain.Block{start}, follow.Only{to}, 9)
	require.ErrorIs(t, err, chain.ErrNode)
}

// bodies are what nodes and gateways say with HTTP 200 instead of an answer.
var bodies = []string{
	`{"Error":"class org.tron.core.exception.JsonRpcInternalException : x"}`, `{"Success":false,"Error":"The key exceeds the frequency limit(15)"}`,
	`{"error":{"code":429,"message":"slow down"}}`, `{"message":"API rate limit exceeded"}`, `{"code":429,"status":"limited"}`,
	"rate limited", "", "null", "[]", "{}", "0", `"ok"`, "<html></html>", `{"blockID":`, `[{}]`, `{"block":[{}]}`, `{"id":"00"}`,
}

func TestD14_AnythingElseWithHTTP200IsAnError(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	me := n.customer(t, "me")
	n.fund(t, me.Address, "TRX", 900)
	n.fund(t, me.Address, "USDTTRC20", 900)
	in := n.intent(me.Address, n.customer(t, "to").Address, "USDTTRC20", 5)
	a := n.attempt(t, me, in)
	trail := []chain.Block{n.Head(t)}
	require.NoError(t, n.Broadcast(t, a))
	n.Mine(1)
	for path, ask := range map[string]func() error{
		"/wallet/getblock":            func() error { _, err := n.client.Tip(t.Context()); return err },
		"/walletsolidity/getblock":    func() error { _, err := n.client.Tip(t.Context()); return err },
		"/wallet/getblockbylimitnext": func() error { _, err := n.client.Scan(t.Context(), trail, follow.Only{"x"}, 5); return err },
		"/wallet/gettransactioninfobyblocknum": func() error {
			_, err := n.client.Scan(t.Context(), trail, follow.Only{"x"}, 5)
			return err
		},
		"/wallet/gettransactioninfobyid":  func() error { _, err := n.client.Status(t.Context(), a); return err },
		"/wallet/getaccount":              func() error { _, err := n.client.Balance(t.Context(), "TRX", me.Address); return err },
		"/wallet/triggerconstantcontract": func() error { _, err := n.client.Balance(t.Context(), "USDTTRC20", me.Address); return err },
		"/wallet/getchainparameters":      func() error { _, err := n.client.EstimateFee(t.Context(), in); return err },
		"/wallet/broadcasthex":            func() error { return n.Broadcast(t, a) },
	} {
		require.NoError(t, ask(), path)
		for _, body := range bodies {
			n.Set(func(f *trontest.Fault) {
				f.Tamper = func(p string, good []byte) []byte {
					if p == path {
						return []byte(body)
					}
					return good
				}
			})
			err := ask()
			if body == "{}" && (path == "/wallet/getaccount" || path == "/wallet/gettransactioninfobyid") {
				require.NoError(t, err, "the proper way to say that there is none")
				continue
			}
			require.ErrorIs(t, err, chain.ErrNode, "%s: %q", path, body)
			require.NotErrorIs(t, err, chain.ErrRejected)
			if strings.Contains(body, "frequency") {
				require.ErrorContains(t, err, "frequency limit", "what the node said is told")
			}
			n.Set(func(f *trontest.Fault) { f.Tamper = nil })
		}
		n.Set(func(f *trontest.Fault) { f.Tamper = nil })
	}
}

func FuzzD14_Decoders(f *testing.F) {
	for _, b := range bodies {
		f.Add([]byte(b))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		w := newWalk(b)
		x := readBlock(w)
		_, _ = x.checked(w)
		w = newWalk(b)
		readInfo(w)
		_ = w.End()
		_, _, _ = unseal(b)
		if got, err := decodeBody(b); err == nil && got.contracts == 1 && got.canonical(b) {
			require.Equal(t, b, got.encode())
		}
	})
}

func TestW09_DeadOnlyWhenASolidBlockIsPastTheExpiration(t *testing.T) {
	t.Parallel()
	n := openTown(t, func(o *Options) { o.Expiry = time.Minute })
	me := n.customer(t, "me")
	n.fund(t, me.Address, "TRX", 900)
	a := n.attempt(t, me, n.intent(me.Address, n.customer(t, "to").Address, "TRX", 5))
	n.Set(func(f *trontest.Fault) { f.Swallow = true })
	require.NoError(t, n.Broadcast(t, a))
	for range 20 + trontest.Solidify { // 20 blocks until it is over, 18 until that is solid
		require.Equal(t, chain.Unknown, n.Status(t, a).State, "nothing is solid that proves it")
		n.Mine(1)
	}
	n.Mine(1)
	st := n.Status(t, a)
	require.Equal(t, chain.Conflicted, st.State)
	require.True(t, st.Final)
	require.Empty(t, st.By)
	err := n.Broadcast(t, a)
	require.Error(t, err)
	require.NotErrorIs(t, err, chain.ErrRejected)
}

// TestW09_AnIndexThatForgetsProvesNothing: the transaction is in a block, and
// the node's index of receipts does not know it.
func TestW09_AnIndexThatForgetsProvesNothing(t *testing.T) {
	t.Parallel()
	n := openTown(t, func(o *Options) { o.Expiry, o.Group = time.Minute, 1 })
	me := n.customer(t, "me")
	n.fund(t, me.Address, "TRX", 900)
	for wait := range 19 { // any block that can hold it, the last one too
		a := n.attempt(t, me, n.intent(me.Address, n.customer(t, "to").Address, "TRX", int64(5+wait)))
		n.Mine(wait)
		require.NoError(t, n.Broadcast(t, a), wait)
		n.Mine(40)
		require.Equal(t, chain.Included, n.Status(t, a).State)
		n.Set(func(f *trontest.Fault) { f.Forget = a.Tx })
		n.Mine(30)
		require.Equal(t, chain.Unknown, n.Status(t, a).State, "block %d", wait)
		n.Set(func(f *trontest.Fault) { f.Forget = "" })
	}
	late := n.attempt(t, me, n.intent(me.Address, n.customer(t, "to").Address, "TRX", 5))
	n.Mine(19)
	require.Error(t, n.Broadcast(t, late), "that was the last one: the next is past its expiration")
}

// TestW09_TheWindowIsReadWhole: a node that leaves blocks out of the window is
// not believed.
func TestW09_TheWindowIsReadWhole(t *testing.T) {
	t.Parallel()
	n := openTown(t, func(o *Options) { o.Expiry = time.Minute })
	me := n.customer(t, "me")
	n.fund(t, me.Address, "TRX", 900)
	a := n.attempt(t, me, n.intent(me.Address, n.customer(t, "to").Address, "TRX", 5))
	n.Mine(60)
	require.Equal(t, chain.Conflicted, n.Status(t, a).State)
	n.Set(func(f *trontest.Fault) {
		f.Tamper = func(p string, body []byte) []byte {
			if p != "/wallet/getblockbylimitnext" {
				return body
			}
			var v struct {
				Block []json.RawMessage `json:"block"`
			}
			if json.Unmarshal(body, &v) != nil || len(v.Block) < 3 {
				return body
			}
			v.Block = append(v.Block[:1], v.Block[2:]...)
			out, _ := json.Marshal(map[string]any{"block": v.Block[1:]})
			return out
		}
	})
	require.Equal(t, chain.Unknown, n.Status(t, a).State)
}

func TestW09_DuplicateIsSuccess(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	me := n.customer(t, "me")
	n.fund(t, me.Address, "TRX", 900)
	a := n.attempt(t, me, n.intent(me.Address, n.customer(t, "to").Address, "TRX", 5))
	n.Set(func(f *trontest.Fault) { f.Lose = true })
	require.Error(t, n.Broadcast(t, a))
	require.NoError(t, n.Broadcast(t, a), "DUP_TRANSACTION_ERROR")
	n.Mine(100)
	require.NoError(t, n.Broadcast(t, a), "expired, and in a block")
	require.Equal(t, chain.Included, n.Status(t, a).State)
	b := n.attempt(t, me, n.intent(me.Address, n.customer(t, "to").Address, "TRX", 6))
	n.swap("/wallet/broadcasthex", `"SUCCESS"`, `"DUP_TRANSACTION_ERROR"`)
	n.Set(func(f *trontest.Fault) {
		dup := f.Tamper
		f.Swallow, f.Tamper = true, func(p string, body []byte) []byte {
			return bytes.ReplaceAll(dup(p, body), []byte(`"result":true`), []byte(`"result":false`))
		}
	})
	require.NoError(t, n.Broadcast(t, b), "it has these bytes, whatever else it says of them")
}

// TestW09_AReceiptWithoutItsBlockIsNotFinal: the index tells of a block that does
// not hold the transaction.
func TestW09_AReceiptWithoutItsBlockIsNotFinal(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	me := n.customer(t, "me")
	n.fund(t, me.Address, "TRX", 900)
	a := n.attempt(t, me, n.intent(me.Address, n.customer(t, "to").Address, "TRX", 5))
	head := n.Head(t)
	n.Mine(30)
	n.Set(func(f *trontest.Fault) {
		f.Tamper = func(p string, body []byte) []byte {
			if p != "/wallet/gettransactioninfobyid" {
				return body
			}
			return fmt.Appendf(nil, `{"id":%q,"blockNumber":%d,"blockTimeStamp":%d,"receipt":{}}`, a.Tx, head.Height, head.Time.UnixMilli())
		}
	})
	require.Equal(t, chain.Unknown, n.Status(t, a).State)
}

// TestInspect_NothingIsHidden: bytes that mean the same, or more, to a node.
func TestInspect_NothingIsHidden(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	me := n.customer(t, "me")
	n.fund(t, me.Address, "TRX", 900)
	in := n.intent(me.Address, n.customer(t, "to").Address, "TRX", 5)
	u, err := n.client.Build(t.Context(), chain.Order{Intent: in, Attempt: 1})
	require.NoError(t, err)
	_, err = n.client.Inspect(u.Payload)
	require.NoError(t, err)
	for what, more := range map[string][]byte{
		"scripts": {12<<3 | 2, 1, 'x'}, "an authority": {9<<3 | 2, 0}, "the number of a block": {3 << 3, 1},
		"another expiration": {8 << 3, 1}, "a fixed field": {100<<1 | 5, 1, 2, 3, 4, 5}, "an empty memo": {10<<3 | 2, 0},
	} {
		_, err = n.client.Inspect(append(u.Payload[:len(u.Payload):len(u.Payload)], more...))
		require.ErrorIs(t, err, chain.ErrRejected, what)
	}
}

func TestW07_NoWordOfTheNodeIsARejection(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	me := n.customer(t, "me")
	n.fund(t, me.Address, "TRX", 900)
	a := n.attempt(t, me, n.intent(me.Address, n.customer(t, "to").Address, "TRX", 5))
	for _, code := range []string{
		"SIGERROR", "CONTRACT_VALIDATE_ERROR", "CONTRACT_EXE_ERROR", "BANDWIDTH_ERROR", "TAPOS_ERROR", "TOO_BIG_TRANSACTION_ERROR",
		"TRANSACTION_EXPIRATION_ERROR", "SERVER_BUSY", "NO_CONNECTION", "NOT_ENOUGH_EFFECTIVE_CONNECTION", "BLOCK_UNSOLIDIFIED", "OTHER_ERROR", "NEW_ERROR",
	} {
		n.Set(func(f *trontest.Fault) {
			f.Tamper = func(p string, body []byte) []byte {
				if p != "/wallet/broadcasthex" {
					return body
				}
				return fmt.Appendf(nil, `{"result":false,"code":%q,"message":"6e6f","txid":%q}`, code, a.Tx)
			}
			f.Swallow = true
		})
		err := n.Broadcast(t, a)
		require.ErrorContains(t, err, code)
		require.NotErrorIs(t, err, chain.ErrRejected, code)
	}
}

// TestW07_AnAttemptToldWrongHoldsUpNoOther: it is Unknown, which is no failure.
func TestW07_AnAttemptToldWrongHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	me, to := n.customer(t, "me"), n.customer(t, "to").Address
	n.fund(t, me.Address, "TRX", 900)
	bad, good := n.attempt(t, me, n.intent(me.Address, to, "TRX", 5)), n.attempt(t, me, n.intent(me.Address, to, "TRX", 6))
	head := n.Head(t)
	require.NoError(t, n.Broadcast(t, bad))
	require.NoError(t, n.Broadcast(t, good))
	n.Mine(30)
	say := func(tx string, height int64) func() {
		answer := fmt.Appendf(nil, `{"id":%q,"blockNumber":%d,"blockTimeStamp":%d,"receipt":{}}`, tx, height, head.Time.UnixMilli())
		return func() {
			n.Set(func(f *trontest.Fault) {
				f.Tamper = func(p string, body []byte) []byte {
					if p == "/wallet/gettransactioninfobyid" && bytes.Contains(body, []byte(bad.Tx)) {
						return answer
					}
					return body
				}
			})
		}
	}
	n.ToldWrong(t, bad, good, []clienttest.Spoilt{
		clienttest.As("in a block that does not hold it", say(bad.Tx, head.Height)),
		clienttest.As("another", say(strings.Repeat("0", 64), head.Height)),
	}, func() { n.Set(func(f *trontest.Fault) { f.Fail = true }) })
}

func TestW09_OutOfEnergyIsFailedAndItsFeeIsBooked(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	me, to := n.customer(t, "me"), n.customer(t, "to").Address
	n.fund(t, me.Address, "TRX", 900)
	n.fund(t, me.Address, "USDTTRC20", 900)
	n.fund(t, to, "USDTTRC20", 1)
	in := n.intent(me.Address, to, "USDTTRC20", 5)
	a := n.attempt(t, me, in) // energy of one who holds some already …
	before, err := n.client.Balance(t.Context(), "TRX", me.Address)
	require.NoError(t, err)
	n.Drain(n.account(t, to), n.Token) // … and holds none when it lands
	require.NoError(t, n.Broadcast(t, a))
	n.Mine(1)
	st := n.Status(t, a)
	require.Equal(t, chain.Included, st.State)
	require.False(t, st.Executed)
	after, err := n.client.Balance(t.Context(), "TRX", me.Address)
	require.NoError(t, err)
	require.True(t, before.Sub(after).Equal(st.Cost.Decimal(6)), "the fee of a failure is what it took")
	require.Greater(t, st.Cost, ledger.Amount(5*trx))
}

func TestW09_UnknownOutcomeOfASendIsUnknown(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	me, to := n.customer(t, "me"), n.customer(t, "to").Address
	n.fund(t, me.Address, "TRX", 900)
	n.fund(t, me.Address, "USDTTRC20", 900)
	a := n.Landed(t, n.intent(me.Address, to, "USDTTRC20", 5), me)
	require.True(t, n.Status(t, a).Executed)
	n.swap("/wallet/gettransactioninfobyid", `"SUCCESS"`, `"HALF_DONE"`)
	require.Equal(t, chain.Unknown, n.Status(t, a).State, "neither done nor failed: nothing is given back")
	n.Set(func(f *trontest.Fault) { f.Tamper = nil })
	b := n.Landed(t, n.intent(me.Address, to, "TRX", 5), me)
	require.True(t, n.Status(t, b).Executed)
	n.swap("/wallet/gettransactioninfobyid", `"net_fee":`, `"result":"HALF_DONE","net_fee":`)
	require.Equal(t, chain.Unknown, n.Status(t, b).State)
}

func TestW09_EqualPaymentsAreTwoTransactions(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	me, to := n.customer(t, "me"), n.customer(t, "to").Address
	n.fund(t, me.Address, "TRX", 900)
	in := n.intent(me.Address, to, "TRX", 5)
	seen := map[string]bool{}
	for i := range 50 {
		in.ID = fmt.Sprint("order ", i)
		seen[n.attempt(t, me, in).Tx] = true
	}
	require.Len(t, seen, 50, "the network takes the same bytes once")
}

func TestW14_AbsurdPricesAreRefused(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	me, to := n.customer(t, "me"), n.customer(t, "to").Address
	n.fund(t, me.Address, "TRX", 900)
	n.fund(t, me.Address, "USDTTRC20", 900)
	in := n.intent(me.Address, to, "USDTTRC20", 5)
	n.swap("/wallet/getchainparameters", `"value":100}`, `"value":10000}`)
	_, err := n.client.EstimateFee(t.Context(), in)
	require.ErrorIs(t, err, chain.ErrTooDear)
	n.swap("/wallet/getchainparameters", `"value":100}`, `"value":9000000000000000000}`)
	_, err = n.client.EstimateFee(t.Context(), in)
	require.ErrorIs(t, err, chain.ErrNode)
	n.swap("/wallet/getchainparameters", `getEnergyFee`, `getEnergyFree`)
	_, err = n.client.EstimateFee(t.Context(), in)
	require.ErrorIs(t, err, chain.ErrNode)
}

// TestX02_NodesThatAreAskedTooOften: java-tron says so with HTTP 200 and an exception.
func TestX02_NodesThatAreAskedTooOften(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	n.Set(func(f *trontest.Fault) { f.Busy = true })
	_, err := n.client.Tip(t.Context())
	clienttest.Limited(t, err, 0)
}

// TestX02_StrangersWordsAreNoRateLimit: what a contract answers stands in the result of a
// call, and is not read for a limit.
func TestX02_StrangersWordsAreNoRateLimit(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	me := n.customer(t, "me").Address
	for _, words := range []string{"REVERT opcode executed: rate limit", "too many requests, suspended for 3600 s"} {
		n.Set(func(f *trontest.Fault) {
			f.Tamper = func(path string, body []byte) []byte {
				if path == "/wallet/triggerconstantcontract" {
					return fmt.Appendf(nil, `{"result":{"code":"CONTRACT_EXE_ERROR","message":%q},"constant_result":[%q]}`, words, words)
				}
				return body
			}
		})
		_, err := n.client.Balance(t.Context(), "USDTTRC20", me)
		require.ErrorIs(t, err, chain.ErrNode)
		require.ErrorContains(t, err, words)
		require.NotErrorAs(t, err, new(*chain.LimitedError))
	}
}

func TestD18_WrongChainIsRefusedByEveryCall(t *testing.T) {
	t.Parallel()
	openTown(t, func(o *Options) { o.Genesis = Mainnet }).WrongNet(t, "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t")
}

// The Registry is held against the tokens themselves: a decimal more or less would
// credit ten times as much. A token that does not say is let pass.
func TestW18_DecimalsAreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	n.Decimals = 18
	_, err := n.client.Tip(t.Context())
	require.ErrorIs(t, err, chain.ErrUnits)
	require.ErrorContains(t, err, "has 18, the Registry says 6")
	n.Decimals = 6
	_, err = n.client.Tip(t.Context())
	require.NoError(t, err)

	silent := openTown(t)
	silent.Decimals = -1
	_, err = silent.client.Tip(t.Context())
	require.NoError(t, err)
}

// leaky fails as transports do, with the URL in the text.
type leaky struct{}

func (leaky) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, errors.New("cannot reach " + r.URL.String() + " with " + strings.Join(r.Header["Tron-Pro-Api-Key"], ""))
}

func TestS_TheKeyIsInNoError(t *testing.T) {
	t.Parallel()
	c, err := New(Options{
		Registry: registry(t, "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t"), URL: "https://user:hunter22@node.example/secret-path",
		Header: http.Header{"Tron-Pro-Api-Key": {"very-secret-key"}}, HTTP: &http.Client{Transport: leaky{}},
	})
	require.NoError(t, err)
	_, err = c.Tip(t.Context())
	require.ErrorIs(t, err, chain.ErrNode)
	for _, secret := range []string{"hunter22", "secret-path", "very-secret-key", "node.example"} {
		require.NotContains(t, err.Error(), secret)
	}
}

func TestFee_ActivationAndFreeBandwidth(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	me, fresh := n.customer(t, "me"), n.customer(t, "fresh").Address
	n.fund(t, me.Address, "TRX", 900)
	fee, err := n.client.EstimateFee(t.Context(), n.intent(me.Address, fresh, "TRX", 5))
	require.NoError(t, err)
	require.EqualValues(t, trontest.Activation+trontest.NewBytes, fee.Cost, "to somebody new")
	n.fund(t, fresh, "TRX", 1)
	fee, err = n.client.EstimateFee(t.Context(), n.intent(me.Address, fresh, "TRX", 5))
	require.NoError(t, err)
	require.InDelta(t, 268_000, int64(fee.Cost), 8_000, "about 268 bytes, as on the real network")
	n.FreeNet(600)
	free, err := n.client.EstimateFee(t.Context(), n.intent(me.Address, fresh, "TRX", 5))
	require.NoError(t, err)
	require.Zero(t, free.Cost)
	require.Equal(t, fee.Max, free.Max, "it may be used up when this one lands")
	n.FreeNet(0)
	// What All leaves behind pays for the transaction, and no more than that.
	in := n.intent(me.Address, fresh, "TRX", 0)
	in.All, in.Purpose = true, chain.ForSweep
	require.NoError(t, n.Broadcast(t, n.attempt(t, me, in)))
	n.Mine(1)
	left, err := n.client.Balance(t.Context(), "TRX", me.Address)
	require.NoError(t, err)
	require.True(t, left.LessThan(decimal.RequireFromString("0.02")), "%s", left)
}

// TestFN11_SolidifiedAheadOfTheHeadIsTheHead: two nodes behind one address, and the one
// that is asked for the head is behind.
func TestFN11_SolidifiedAheadOfTheHeadIsTheHead(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	old := n.Head(t)
	n.Mine(trontest.Solidify + 3)
	var behind []byte
	n.Set(func(f *trontest.Fault) {
		f.Lag = trontest.Solidify + 3
		f.Tamper = func(path string, body []byte) []byte {
			if path == "/wallet/getblock" {
				behind = body
			}
			return body
		}
	})
	require.Equal(t, old, n.Head(t))
	n.Set(func(f *trontest.Fault) {
		f.Lag = 0
		f.Tamper = func(path string, body []byte) []byte {
			if path == "/wallet/getblock" {
				return behind
			}
			return body
		}
	})
	tip, err := n.client.Tip(t.Context())
	require.NoError(t, err)
	require.Equal(t, []int64{old.Height, old.Height}, []int64{tip.Head.Height, tip.Final})
}
