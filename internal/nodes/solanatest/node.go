// Package solanatest plays the customers and the miners of a Solana chain for tests:
// the real runtime (LiteSVM), started by internal/testenv, whose blocks are made when
// a test says so. Programs, signatures, rent and fees are real; slots, blocks, forks,
// commitment and the window of blockhashes are modelled on what validators document.
package solanatest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	sdk "github.com/gagliardetto/solana-go"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/testenv"
)

// Finality is how many blocks the finalized one is behind the head.
const Finality = 31

// Window is for how many blocks a blockhash can be used.
const Window = 150

// The programs that tests name.
var (
	Token     = sdk.TokenProgramID
	Token2022 = sdk.MustPublicKeyFromBase58("TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb")
	Memo      = sdk.MustPublicKeyFromBase58("MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr")
)

// Node is one chain of the server.
type Node struct {
	URL string
	// Payer is an outside customer who never runs dry.
	Payer sdk.PrivateKey

	t    testing.TB
	http *http.Client
	salt uint32
}

// Open makes a chain of its own, named by the test.
func Open(t testing.TB, server *testenv.Process) *Node {
	t.Helper()
	n := &Node{URL: server.URL() + "/" + url.PathEscape(t.Name()), t: t, http: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(n.http.CloseIdleConnections)
	n.Payer = Key("payer")
	n.Set(n.Payer.PublicKey(), sdk.SystemProgramID, 1<<58, nil)
	return n
}

// Key makes a key of a seed text: for tests alone.
func Key(seed string) sdk.PrivateKey {
	sum := sha256.Sum256([]byte(seed))
	return sdk.PrivateKey(ed25519.NewKeyFromSeed(sum[:]))
}

// Call asks the node itself, past the library.
func (n *Node) Call(out any, method string, params ...any) {
	n.t.Helper()
	if params == nil {
		params = []any{}
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	require.NoError(n.t, err)
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, n.URL, bytes.NewReader(body))
	require.NoError(n.t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := n.http.Do(req)
	require.NoError(n.t, err)
	defer func() { _ = resp.Body.Close() }()
	var answer struct {
		Result json.RawMessage
		Error  json.RawMessage
	}
	require.NoError(n.t, json.NewDecoder(resp.Body).Decode(&answer))
	require.Empty(n.t, string(answer.Error), method)
	if out != nil {
		require.NoError(n.t, json.Unmarshal(answer.Result, out))
	}
}

// Genesis is the hash that names the chain.
func (n *Node) Genesis() (hash string) { n.Call(&hash, "getGenesisHash"); return hash }

// Mine adds blocks with what waits.
func (n *Node) Mine(count int) { n.t.Helper(); n.Call(nil, "test_mine", count) }

// Reorg replaces the last blocks by as many empty ones and one more; their
// transactions wait again, but for the dropped ones.
func (n *Node) Reorg(depth int, drop ...string) {
	n.t.Helper()
	n.Call(nil, "test_reorg", depth, append([]string{}, drop...))
}

// Fault sets what the node does wrong, or has no more:
//
//   - lag (blocks): it is behind;
//   - processed (blocks): so many of the newest are not confirmed yet;
//   - partial, fail, lose, swallow (true);
//   - forget (a signature), prices (list), skip (slots);
//   - gap ([from, to], heights): blocks that it jumped over;
//   - late (heights): blocks that are not told of yet, each for itself, as behind a
//     balancer; untold (height): that one and all after it, as one validator does;
//   - unstored (heights): confirmed, and not whole in its store yet: null;
//   - first (height): the first block that was not cleaned up; archive (true): the older
//     ones come from a long-term storage;
//   - nohistory (true): it keeps no transactions of addresses; unlisted (true): no lists of the
//     token accounts of an owner;
//   - unhealthy (slots): it says itself that it is behind;
//   - noaccounts (true): it does not know transactionDetails "accounts", as older ones and
//     some gates do not;
//   - limited (seconds): HTTP status 429, with so long to wait.
func (n *Node) Fault(name string, value any) {
	n.t.Helper()
	n.Call(nil, "test_fault", map[string]any{name: value})
}

// Set writes an account as no transaction could.
func (n *Node) Set(k, owner sdk.PublicKey, lamports uint64, data []byte) {
	n.t.Helper()
	n.Call(nil, "test_set", k.String(), map[string]any{"lamports": lamports, "owner": owner.String(), "data": base64.StdEncoding.EncodeToString(data)})
}

// Blockhash is the newest one that no fork takes away.
func (n *Node) Blockhash() sdk.Hash {
	n.t.Helper()
	var answer struct {
		Value struct{ Blockhash string }
	}
	n.Call(&answer, "getLatestBlockhash", map[string]any{"commitment": "finalized"})
	return sdk.MustHashFromBase58(answer.Value.Blockhash)
}

// Send puts a transaction of the payer, and of others who sign, among those that wait.
// No two are the same.
func (n *Node) Send(signers []sdk.PrivateKey, instructions ...sdk.Instruction) string {
	n.t.Helper()
	return n.SendWith(nil, signers, instructions...)
}

// SendWith is Send with addresses out of lookup tables.
func (n *Node) SendWith(tables map[sdk.PublicKey]sdk.PublicKeySlice, signers []sdk.PrivateKey, instructions ...sdk.Instruction) string {
	n.t.Helper()
	n.salt++
	budget := sdk.NewInstruction(sdk.ComputeBudget, nil, binary.LittleEndian.AppendUint32([]byte{2}, 600_000+n.salt))
	options := []sdk.TransactionOption{sdk.TransactionPayer(n.Payer.PublicKey())}
	if tables != nil {
		options = append(options, sdk.TransactionAddressTables(tables))
	}
	tx, err := sdk.NewTransaction(append([]sdk.Instruction{budget}, instructions...), n.Blockhash(), options...)
	require.NoError(n.t, err)
	all := append([]sdk.PrivateKey{n.Payer}, signers...)
	_, err = tx.Sign(func(k sdk.PublicKey) *sdk.PrivateKey {
		for i := range all {
			if all[i].PublicKey() == k {
				return &all[i]
			}
		}
		return nil
	})
	require.NoError(n.t, err)
	raw, err := tx.MarshalBinary()
	require.NoError(n.t, err)
	var id string
	n.Call(&id, "test_put", base64.StdEncoding.EncodeToString(raw))
	require.Equal(n.t, tx.Signatures[0].String(), id)
	return id
}
