package httpapi

import (
	"bufio"
	"encoding/json"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/cryptopay-go/cryptopay/report"
)

// writeJSON writes transactions as one array of the list's items, a line each.
func writeJSON(w *bufio.Writer, list iter.Seq2[report.Transaction, error]) error {
	e := json.NewEncoder(w) // ends each value with a line break
	e.SetEscapeHTML(false)
	before := "[\n"
	for t, err := range list {
		if err != nil {
			return err
		}
		if _, err := w.WriteString(before); err != nil {
			return err
		}
		if err := e.Encode(viewTransaction(&t)); err != nil {
			return err
		}
		before = ","
	}
	if before != "," {
		before = "[\n]\n"
	} else {
		before = "]\n"
	}
	_, err := w.WriteString(before)
	return err
}

// exportColumns are the names of a CSV export: those of the list's items.
var exportColumns = []string{
	"id", "type", "transaction_id", "withdrawal_id", "amount", "currency", "status", "created_at", "updated_at", "reference",
	"blockchain_address", "transaction_hash", "fee_amount", "net_amount", "metadata",
}

// writeCSV writes transactions as RFC 4180 says: a line of names, CRLF after
// every line. metadata is a JSON text.
func writeCSV(w *bufio.Writer, list iter.Seq2[report.Transaction, error]) error {
	if err := writeLine(w, exportColumns); err != nil {
		return err
	}
	cells := make([]string, 0, len(exportColumns))
	for t, err := range list {
		if err != nil {
			return err
		}
		v := viewTransaction(&t)
		cells = append(cells[:0], v.ID, v.Type, v.TransactionID, v.WithdrawalID, v.Amount, v.Currency, v.Status, v.CreatedAt, v.UpdatedAt,
			t.Reference, v.Address, t.TxHash, v.Fee, v.Net, string(v.Metadata))
		if err := writeLine(w, cells); err != nil {
			return err
		}
	}
	return nil
}

func writeLine(w *bufio.Writer, cells []string) error {
	for i, c := range cells {
		if i > 0 {
			_ = w.WriteByte(',') // a Writer keeps its first error for the last call
		}
		c = harmless(c)
		if strings.ContainsAny(c, "\",\r\n") {
			c = `"` + strings.ReplaceAll(c, `"`, `""`) + `"`
		}
		_, _ = w.WriteString(c)
	}
	_, err := w.WriteString("\r\n")
	return err
}

// harmless keeps a spreadsheet from taking a merchant's or customer's text for a
// formula: an apostrophe in front makes it text. A plain number is no formula and
// stays one. The wide forms of the signs count too: spreadsheets of some
// languages read them alike.
func harmless(cell string) string {
	first, _ := utf8.DecodeRuneInString(cell)
	if !strings.ContainsRune("=+-@\t\r\n＝＋－＠", first) || cell == "" || plainNumber(cell) {
		return cell
	}
	return "'" + cell
}

// plainNumber says whether a cell is digits with at most one point and a sign.
func plainNumber(s string) bool {
	whole, fraction, point := strings.Cut(strings.TrimLeft(s[:1], "+-")+s[1:], ".")
	return digits(whole) && (!point || digits(fraction))
}

func digits(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}
