package operator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/cryptopay-go/cryptopay/ledger"
)

// field is a name and a value: a string, a number, a bool, a time (zero = none), a list of
// strings, or records that belong to the one that it is in.
type field struct {
	name  string
	value any
}

// record is one object of an answer: a JSON object, or a row of a table.
type record []field

// records is a list of those, all with the same fields.
type records []record

// MarshalJSON keeps the order of the fields.
func (r record) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, f := range r {
		if i > 0 {
			b.WriteByte(',')
		}
		value, err := json.Marshal(plain(f.value))
		if err != nil {
			return nil, err
		}
		_, _ = fmt.Fprintf(&b, "%q:%s", f.name, value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// MarshalJSON writes no records as an empty list.
func (r records) MarshalJSON() ([]byte, error) {
	if len(r) == 0 {
		return []byte("[]"), nil
	}
	return json.Marshal([]record(r))
}

// plain is a value as JSON shows it.
func plain(v any) any {
	switch v := v.(type) {
	case time.Time:
		if v.IsZero() {
			return nil
		}
		return v.UTC()
	case []string:
		if v == nil {
			return []string{}
		}
	case fmt.Stringer:
		return v.String()
	}
	return v
}

// list prints records.
func (s *session) list(r records) error {
	if s.cmd.Bool("json") {
		return s.printJSON(r)
	}
	return s.print(func(w io.Writer) { table(w, r) })
}

// one prints a record, its fields one below the other.
func (s *session) one(r record) error {
	if s.cmd.Bool("json") {
		return s.printJSON(r)
	}
	return s.print(func(w io.Writer) {
		for _, f := range r {
			if _, nested := f.value.(records); !nested {
				_, _ = fmt.Fprintf(w, "%s\t%s\n", f.name, cell(f.value))
			}
		}
		nested(w, records{r})
	})
}

func (s *session) printJSON(v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = s.cmd.Root().Writer.Write(append(b, '\n'))
	return err
}

func (s *session) print(write func(io.Writer)) error {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 4, 2, ' ', 0)
	write(w)
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := s.cmd.Root().Writer.Write(b.Bytes())
	return err
}

// note tells the person at the terminal how far it is.
func (s *session) note(format string, args ...any) {
	_, _ = fmt.Fprintf(s.cmd.Root().ErrWriter, format+"\n", args...)
}

func table(w io.Writer, list records) {
	if len(list) == 0 {
		_, _ = fmt.Fprintln(w, "none")
		return
	}
	for i, r := range append(records{list[0]}, list...) {
		var cells []string
		for _, f := range r {
			switch _, nested := f.value.(records); {
			case nested:
			case i == 0:
				cells = append(cells, strings.ToUpper(f.name))
			default:
				cells = append(cells, cell(f.value))
			}
		}
		_, _ = fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	nested(w, list)
}

// nested prints what belongs to records in a table for each name, with the first field of
// the record that it is of.
func nested(w io.Writer, list records) {
	for i, f := range list[0] {
		if _, ok := f.value.(records); !ok {
			continue
		}
		var all records
		for _, r := range list {
			for _, child := range r[i].value.(records) { //nolint:errcheck,forcetypeassert // records have the same fields
				all = append(all, append(record{r[0]}, child...))
			}
		}
		if len(all) > 0 {
			_, _ = fmt.Fprintf(w, "\n%s:\n", f.name)
			table(w, all)
		}
	}
}

// cell is a value in a table. What others have written cannot move the cursor or begin a row
// of its own.
func cell(v any) string {
	text := ""
	switch v := plain(v).(type) {
	case nil:
	case time.Time:
		text = v.Format("2006-01-02T15:04:05Z")
	case []string:
		text = strings.Join(v, ", ")
	default:
		text = fmt.Sprint(v)
	}
	if text == "" {
		return "-"
	}
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			_, _ = fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	return b.String()
}

// coins is an amount of a currency in whole coins.
func (s *session) coins(currency string, a ledger.Amount) (string, error) {
	scale, err := s.App.Scale(currency)
	if err != nil {
		return "", err
	}
	return ledger.PlainString(a.Decimal(scale)), nil
}
