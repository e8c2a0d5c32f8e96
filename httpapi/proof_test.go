package httpapi_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
	"github.com/cryptopay-go/cryptopay/wallet"
)

// published is what an operator gives a merchant on another way: the newest seal.
type published struct {
	partition, number, root string
}

func (w *world) publish() published {
	w.t.Helper()
	s, ok, err := w.app.Seal(w.t.Context(), w.tenant, 0)
	require.NoError(w.t, err)
	require.True(w.t, ok)
	return published{"tenant/" + w.tenant, strconv.FormatInt(s.Number, 10), hex.EncodeToString(s.Hash)}
}

// sealed lets the time of a seal come.
func (w *world) sealed() published {
	w.t.Helper()
	w.clock.Advance(time.Hour)
	w.step()
	w.token = w.newToken(w.admin, "")
	return w.publish()
}

// checker is the program of the reference, as a merchant copies it.
func checker(t *testing.T) string {
	t.Helper()
	doc, err := os.ReadFile("../docs/api.md")
	require.NoError(t, err)
	_, program, found := strings.Cut(string(doc), "```python\n")
	require.True(t, found)
	program, _, found = strings.Cut(program, "```\n")
	require.True(t, found)
	file := filepath.Join(t.TempDir(), "check.py")
	require.NoError(t, os.WriteFile(file, []byte(program), 0o600))
	return file
}

// check runs it: what it prints, and whether it says that the balance is proved.
func check(t *testing.T, program string, p published, wallet, currency string, proof any) (said string, proved bool) {
	t.Helper()
	body, err := json.Marshal(proof)
	require.NoError(t, err)
	var out bytes.Buffer
	c := exec.CommandContext(t.Context(), "python3", program, p.partition, p.number, p.root, wallet, currency)
	c.Stdin, c.Stdout, c.Stderr = bytes.NewReader(body), &out, &out
	err = c.Run()
	return strings.TrimSpace(out.String()), err == nil
}

// A merchant who knows a root from elsewhere computes it from the answer, by the program of the
// reference, and learns what balance stands in it. Whatever is changed in the answer, nothing
// is proved.
func TestProof_MerchantChecksHisBalanceAgainstAPublishedRoot(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3 here")
	}
	w := newWorld(t)
	program := checker(t)
	first, second := w.newWallet("a"), w.newWallet("b")
	w.earn("USDTERC20", "25", first)
	w.earn("USDTERC20", "40", second)
	w.hold(first, "USDTERC20", "4")
	w.sealed()
	w.earn("USDTERC20", "10.5", first)
	w.earn("ETH", "20", "")
	root := w.sealed()
	path := "/wallets/" + first + "/proof/?currency=USDTERC20"
	a := w.ok(http.StatusOK, "GET", path, nil)
	require.Equal(t, root.root, a.Body["root"])
	require.Equal(t, root.number, fmt.Sprint(a.Body["seal_number"]))
	require.Equal(t, inside(t, w.ok(http.StatusOK, "GET", "/wallets/"+first+"/", nil).Raw, "balances", "0", "amount"), fmt.Sprintf("%q", a.Body["balance"]))
	said, proved := check(t, program, root, first, "USDTERC20", a.Body)
	require.True(t, proved, said)
	require.Equal(t, "35.500000", said)
	require.Equal(t, a.Body, w.ok(http.StatusOK, "GET", "/wallets/1/proof?currency=USDTERC20", nil).Body)

	// Without any program: what the table of the reference says, by hand.
	step := a.Body["path"].([]any)[0].(map[string]any)
	leaf := unhex(t, a.Body["leaf"])
	h := sha256.Sum256(leaf)
	h = sha256.Sum256(bytes.Join([][]byte{unhex(t, step["before"]), h[:], unhex(t, step["after"])}, nil))
	require.Equal(t, root.root, hex.EncodeToString(h[:]))

	// Some digits of the leaf and of the path, changed by one.
	for _, at := range []struct {
		of   map[string]any
		name string
		step int
	}{{a.Body, "leaf", 199}, {step, "before", 511}, {step, "after", 1011}} {
		old := at.of[at.name].(string)
		for i := 0; i < len(old); i += at.step {
			digit := "0"
			if old[i] == '0' {
				digit = "1"
			}
			at.of[at.name] = old[:i] + digit + old[i+1:]
			said, proved = check(t, program, root, first, "USDTERC20", a.Body)
			require.False(t, proved, "%s %d: %s", at.name, i, said)
		}
		at.of[at.name] = old
	}
	// Nor is it anybody else's, of another currency, or of another seal.
	for _, c := range [][2]string{{second, "USDTERC20"}, {first, "ETH"}, {first, "USDTERC2"}} {
		said, proved = check(t, program, root, c[0], c[1], a.Body)
		require.False(t, proved, said)
	}
	for _, other := range []published{
		{"tenant/" + w.newTenant("other"), root.number, root.root},
		{root.partition, "1", root.root},
		{root.partition, root.number, strings.Repeat("0", 64)},
	} {
		said, proved = check(t, program, other, first, "USDTERC20", a.Body)
		require.False(t, proved, said)
	}

	// A wallet that has not moved since is in the seal that it was in.
	before := w.ok(http.StatusOK, "GET", "/wallets/"+second+"/proof/?currency=USDTERC20", nil)
	require.Equal(t, "1", fmt.Sprint(before.Body["seal_number"]))
	was, ok, err := w.app.Seal(t.Context(), w.tenant, 1)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, hex.EncodeToString(was.Hash), before.Body["root"])
	said, proved = check(t, program, published{root.partition, "1", hex.EncodeToString(was.Hash)}, second, "USDTERC20", before.Body)
	require.True(t, proved, said)
	require.Equal(t, "40.000000", said)

	// The master account is proved in Go.
	master, ok, err := w.app.ProveBalance(t.Context(), w.tenant, wallet.Master, "ETH")
	require.NoError(t, err)
	require.True(t, ok)
	said, proved = check(t, program, root, wallet.Master, "ETH", map[string]any{
		"leaf": hex.EncodeToString(master.Leaf), "scale": 0,
		"path": []any{map[string]any{"before": hex.EncodeToString(master.Before), "after": hex.EncodeToString(master.After)}},
	})
	require.True(t, proved, said)
	require.Equal(t, strconv.FormatInt(int64(master.Entry.After), 10), said)
}

func unhex(t *testing.T, s any) []byte {
	t.Helper()
	b, err := hex.DecodeString(s.(string))
	require.NoError(t, err)
	return b
}

// A forged seal that has the hash of a made-up leaf where no movement's hash stands proves
// nothing, even where the operator has published its root.
func TestProof_LeafCountsOnlyWhereAMovementStands(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3 here")
	}
	program := checker(t)
	num := func(n int64) string {
		return string(bytes.Join([][]byte{{0, 0, 0, 0}, {byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}}, nil))
	}
	text := func(s string) string { return num(int64(len(s))) + s }
	leaf := text("wallet/w") + text("ETH") + text("t") + text("deposit") + text("r") + num(2) + num(5) + num(7) + num(9)
	h := sha256.Sum256([]byte(leaf))
	head := text("cryptopay seal 1") + text("tenant/x") + text("") + num(3) + num(4)
	zero := strings.Repeat("\x00", 32)
	for name, c := range map[string]struct {
		before, after string
		proved        bool
	}{
		"as it belongs":                {head + text("wallet/w") + text("ETH") + num(1) + num(2) + zero, "", true},
		"behind an audit log":          {head + text("audit") + num(7) + text(zero) + text("wallet/w") + text("ETH") + num(2) + num(2), text("wallet/z") + text("ETH") + num(1) + num(1) + zero, true},
		"in the name of an account":    {head + num(32), text("ETH") + num(1) + num(1) + zero, false},
		"in the hash of the audit log": {head + text("audit") + num(7) + num(32), text("wallet/w") + text("ETH") + num(2) + num(2) + zero, false},
		"in another place":             {head + text("wallet/w") + text("ETH") + num(1) + num(1), "", false},
		"not the last":                 {head + text("wallet/w") + text("ETH") + num(2) + num(3), zero, false},
		"of another account":           {head + text("wallet/v") + text("ETH") + num(2) + num(2), "", false},
		"of another currency":          {head + text("wallet/w") + text("BTC") + num(2) + num(2), "", false},
		"cut off":                      {head + text("wallet/w") + text("ETH") + num(2) + num(9), "", false},
		"with more behind":             {head + text("wallet/w") + text("ETH") + num(2) + num(2), "x", false},
	} {
		root := sha256.Sum256([]byte(c.before + string(h[:]) + c.after))
		said, proved := check(t, program, published{"tenant/x", "3", hex.EncodeToString(root[:])}, "w", "ETH", map[string]any{
			"leaf": hex.EncodeToString([]byte(leaf)), "scale": 1,
			"path": []any{map[string]any{"before": hex.EncodeToString([]byte(c.before)), "after": hex.EncodeToString([]byte(c.after))}},
		})
		require.Equal(t, c.proved, proved, "%s: %s", name, said)
		require.Equal(t, c.proved, said == "0.7", "%s: %s", name, said)
		require.NotContains(t, said, "Traceback", name)
	}
}

// What cannot be proved is said plainly, and tells nothing of others.
func TestProof_Refusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.newWallet("a")
	path := "/wallets/" + id + "/proof/?currency="
	missing := w.ok(http.StatusNotFound, "GET", path+"ETH", nil)
	require.Equal(t, "not_found", missing.code())
	require.Contains(t, missing.Raw, "No seal has a balance of this wallet in this currency yet")
	w.earn("ETH", "20", id)
	require.Equal(t, missing.Raw, w.ok(http.StatusNotFound, "GET", path+"ETH", nil).Raw, "the seal comes in an hour")
	w.sealed()
	w.ok(http.StatusOK, "GET", path+"ETH", nil)
	w.ok(http.StatusNotFound, "GET", path+"BTC", nil)
	for _, currency := range []string{"", "NOPE", "eth", "ETH%20", strings.Repeat("E", 5000)} {
		a := w.ok(http.StatusBadRequest, "GET", path+currency, nil)
		require.Equal(t, "invalid_request", a.code())
		require.Equal(t, []string{"currency"}, a.blamed())
	}
	other := w.anotherTenant()
	for _, ref := range []string{id, "1", "0", "master", "9", "00000000-0000-7000-8000-000000000000"} {
		a := w.ok(http.StatusNotFound, "GET", "/wallets/"+ref+"/proof/?currency=ETH", nil, other)
		require.Contains(t, a.Raw, "The wallet does not exist.")
	}
	for _, ref := range []string{"0", "master", "a", "9"} {
		w.ok(http.StatusNotFound, "GET", "/wallets/"+ref+"/proof/?currency=ETH", nil)
	}
}

// Where somebody has edited the database there is no proof, of this wallet or any that the seal
// covers, and no answer that looks like one.
func TestProof_AlteredJournalProvesNothing(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "x.db")
	require.NoError(t, sqlite.Migrate(t.Context(), file))
	store, err := sqlite.Open(file, sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close() })
	w := newWorld(t, func(s *setup) { s.store = store })
	first, second := w.newWallet("a"), w.newWallet("b")
	for _, id := range []string{first, second} {
		require.NoError(t, storage.CommitOne(t.Context(), store, storage.Change{ID: id, Partition: storage.Tenant(w.tenant), Post: []ledger.Tx{{
			ID: id, Kind: ledger.KindDeposit, At: w.clock.Now(), Legs: []ledger.Leg{
				{Account: ledger.Chain("ETH"), Asset: "ETH", Delta: -100}, {Account: ledger.Wallet(id), Asset: "ETH", Delta: 100},
			},
		}}}))
	}
	w.sealed()
	db := sqlx.MustOpen("sqlite", "file:"+file+"?_pragma=busy_timeout(5000)")
	defer db.Close() //nolint:errcheck // a test's end
	path := "/wallets/" + first + "/proof/?currency=ETH"
	good := w.ok(http.StatusOK, "GET", path, nil)
	account := " WHERE account = 'wallet/" + first + "'"
	for name, edit := range map[string][2]string{
		"balance":               {"UPDATE cryptopay_entries SET balance_after = balance_after + 1" + account, "UPDATE cryptopay_entries SET balance_after = balance_after - 1" + account},
		"somebody else's":       {"UPDATE cryptopay_entries SET delta = delta + 1 WHERE account = 'wallet/" + second + "'", "UPDATE cryptopay_entries SET delta = delta - 1 WHERE account = 'wallet/" + second + "'"},
		"height":                {"UPDATE cryptopay_seal_heights SET seq = seq + 1" + account, "UPDATE cryptopay_seal_heights SET seq = seq - 1" + account},
		"seal of a height":      {"UPDATE cryptopay_seal_heights SET change_id = 'x' || change_id" + account, "UPDATE cryptopay_seal_heights SET change_id = substr(change_id, 2)" + account},
		"number":                {"UPDATE cryptopay_seals SET number = 7", "UPDATE cryptopay_seals SET number = 1"},
		"id":                    {"UPDATE cryptopay_seals SET id = '0000000000000007'", "UPDATE cryptopay_seals SET id = '0000000000000001'"},
		"pieces without an end": {"UPDATE cryptopay_seals SET ranges = replace(ranges, '\"to\":1', '\"to\":1000000000000')", "UPDATE cryptopay_seals SET ranges = replace(ranges, '\"to\":1000000000000', '\"to\":1')"},
	} {
		_, err := db.Exec(edit[0])
		require.NoError(t, err, name)
		a := w.do("GET", path, nil)
		require.Equal(t, http.StatusInternalServerError, a.Status, name)
		require.Equal(t, "server_error", a.code(), name)
		require.NotContains(t, a.Raw, "seal", name)
		_, err = db.Exec(edit[1])
		require.NoError(t, err, name)
		require.Equal(t, good.Raw, w.do("GET", path, nil).Raw, name)
	}
	_, err = db.Exec("UPDATE cryptopay_seals SET mac = x'00'")
	require.NoError(t, err)
	require.Equal(t, http.StatusInternalServerError, w.do("GET", path, nil).Status, "who signed it is not known")
}
