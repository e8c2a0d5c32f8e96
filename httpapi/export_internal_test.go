package httpapi

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"iter"
	"math/big"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/report"
	"github.com/cryptopay-go/cryptopay/storage"
)

// some yields n times the same transaction.
func some(t report.Transaction, n int) iter.Seq2[report.Transaction, error] {
	return func(yield func(report.Transaction, error) bool) {
		for range n {
			if !yield(t, nil) {
				return
			}
		}
	}
}

var signedNumber = regexp.MustCompile(`^[+-]?[0-9]+(\.[0-9]+)?$`)

// FuzzExport: what is exported is read back by the standard readers of CSV and
// JSON as it was, amounts to the unit, and no cell is a formula.
func FuzzExport(f *testing.F) {
	f.Add("id", "=HYPERLINK(\"x\")", "T\r\n\"a\",b", "0xhash", int64(-5), int64(1<<62), uint8(8), uint8(2))
	f.Add("+1", "-1.5.2", "\uff1dcmd", "@", int64(0), int64(-1), uint8(0), uint8(0))
	f.Add("", "'", "\xff\x00", "\t1", int64(-1<<63), int64(1<<63-1), uint8(2), uint8(1))
	f.Fuzz(func(t *testing.T, id, reference, address, hash string, amount, fee int64, scale, n uint8) {
		scale %= 9
		one := report.Transaction{ID: id, Scale: scale, Activity: storage.Activity{
			Kind: storage.ActivityPayment, Reference: reference, Address: address, TxHash: hash, Currency: "BTC", Status: "completed",
			Amount: ledger.Amount(amount), Fee: ledger.Amount(fee), CreatedAt: time.UnixMicro(amount >> 12).UTC(),
		}}
		var buf bytes.Buffer
		w := bufio.NewWriter(&buf)
		require.NoError(t, writeCSV(w, some(one, int(n%4))))
		require.NoError(t, w.Flush())
		rows, err := csv.NewReader(&buf).ReadAll()
		require.NoError(t, err)
		require.Len(t, rows, int(n%4)+1)
		require.Equal(t, exportColumns, rows[0])
		for _, row := range rows[1:] {
			for name, want := range map[string]string{"id": id, "transaction_id": id, "reference": reference, "blockchain_address": address, "transaction_hash": hash} {
				want = strings.ReplaceAll(want, "\r\n", "\n") // as the reader has it
				got := row[column(name)]
				require.True(t, got == want || got == "'"+want, "%q became %q", want, got)
			}
			for i, cell := range row {
				first, _ := utf8.DecodeRuneInString(cell)
				if strings.ContainsRune("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20", first) && cell != "" {
					require.Regexp(t, signedNumber, cell, "%s may be a formula", exportColumns[i])
				}
			}
			require.Zero(t, units(row[column("amount")], scale).Cmp(big.NewInt(amount)))
			require.Zero(t, units(row[column("fee_amount")], scale).Cmp(big.NewInt(fee)))
		}
		buf.Reset()
		require.NoError(t, writeJSON(w, some(one, int(n%4))))
		require.NoError(t, w.Flush())
		var list []map[string]any
		require.NoError(t, json.Unmarshal(buf.Bytes(), &list))
		require.Len(t, list, int(n%4))
		for _, item := range list {
			require.Equal(t, readable(id), item["id"])
			require.Equal(t, readable(address), item["blockchain_address"])
			require.Zero(t, units(item["amount"].(string), scale).Cmp(big.NewInt(amount)))
		}
	})
}

func column(name string) int {
	for i, c := range exportColumns {
		if c == name {
			return i
		}
	}
	return -1
}

// units reads an amount in whole coins exactly.
func units(s string, scale uint8) *big.Int {
	x, ok := new(big.Rat).SetString(s)
	if !ok {
		return big.NewInt(0).SetUint64(1<<64 - 1) // of no amount
	}
	x.Mul(x, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)))
	if !x.IsInt() {
		return big.NewInt(0).SetUint64(1<<64 - 1)
	}
	return x.Num()
}

// readable is a text as JSON carries it.
func readable(s string) string {
	var back string
	b, _ := json.Marshal(s)
	_ = json.Unmarshal(b, &back)
	return back
}
