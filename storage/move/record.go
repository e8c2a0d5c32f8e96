package move

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strconv"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// format is the version of the stream.
const format = 1

// maxLine bounds one line of a stream that is read.
const maxLine = 256 << 20

// The kinds of records.
const (
	kindHead  = "head"
	kindPart  = "part"
	kindRow   = "row"
	kindTx    = "tx"
	kindHeld  = "held"
	kindLevel = "level"
	kindEnd   = "end"
)

// record is one line. Rows, transactions, holds and levels belong to the last
// partition named.
type record struct {
	Kind string `json:"k"`

	Format int     `json:"format,omitempty"` // head
	Tables []shape `json:"tables,omitempty"`

	ID string `json:"id,omitempty"` // of a partition, row or tx; name of a level

	Table   string `json:"t,omitempty"` // row
	Version int64  `json:"v,omitempty"`
	Change  string `json:"c,omitempty"`
	Due     int64  `json:"d,omitempty"` // µs
	Scalars []any  `json:"s,omitempty"`

	Shown ledger.Kind `json:"kind,omitempty"` // tx
	Ref   string      `json:"ref,omitempty"`
	At    int64       `json:"at,omitempty"` // µs
	Legs  []leg       `json:"legs,omitempty"`

	Value int64 `json:"n,omitempty"` // level

	Summary *Summary `json:"summary,omitempty"` // end
}

type leg struct {
	Account ledger.Account `json:"a"`
	Asset   ledger.Asset   `json:"s"`
	Delta   ledger.Amount  `json:"d,omitempty"`
	Held    ledger.Amount  `json:"h,omitempty"`
}

// shape is what a table must be at both ends.
type shape struct {
	Name    string   `json:"name"`
	Columns []string `json:"columns"` // name and kind
}

func shapeOf(t *storage.Table) shape {
	s := shape{Name: t.Name}
	for _, c := range t.Columns {
		s.Columns = append(s.Columns, c.Name+":"+strconv.Itoa(int(c.Kind)))
	}
	return s
}

func rowRecord(r *storage.Row) (record, error) {
	scalars, err := r.Table.Encode(r.Value)
	if err != nil {
		return record{}, err
	}
	for i, s := range scalars {
		if b, ok := s.([]byte); ok {
			scalars[i] = base64.StdEncoding.EncodeToString(b)
		}
	}
	return record{
		Kind: kindRow, Table: r.Table.Name, ID: r.ID, Version: r.Version, Change: r.Change, Due: storage.Micros(r.Due), Scalars: scalars,
	}, nil
}

// maxVersion bounds the version of a row, which is put once for each: once a second
// for 34 years. What says more was not written by a store.
const maxVersion = 1 << 30

// row is the inverse of rowRecord.
func (r *record) row(t *storage.Table) (storage.Row, error) {
	if len(r.Scalars) != len(t.Columns) || r.Version < 1 {
		return storage.Row{}, fmt.Errorf("%w: row %s of %s", ErrStream, r.ID, t.Name)
	}
	if r.Version > maxVersion {
		return storage.Row{}, fmt.Errorf("%w: row %s of %s stands at version %d, past %d, the most that is moved", ErrStream, r.ID, t.Name, r.Version, maxVersion)
	}
	scalars := make([]any, len(r.Scalars))
	for i, s := range r.Scalars {
		var err error
		switch v := s.(type) {
		case json.Number:
			scalars[i], err = strconv.ParseInt(string(v), 10, 64)
		case string:
			scalars[i] = v
			if t.Columns[i].Kind == storage.Bytes {
				scalars[i], err = base64.StdEncoding.DecodeString(v)
			}
		default:
			scalars[i] = v // an int64, where the record was never a line
		}
		if err != nil {
			return storage.Row{}, fmt.Errorf("%w: %s of row %s of %s: %w", ErrStream, t.Columns[i].Name, r.ID, t.Name, err)
		}
	}
	value, err := t.Decode(scalars)
	if err != nil {
		return storage.Row{}, fmt.Errorf("%w: row %s of %s: %w", ErrStream, r.ID, t.Name, err)
	}
	return storage.Row{Table: t, ID: r.ID, Version: r.Version, Change: r.Change, Due: storage.FromMicros(r.Due), Value: value}, nil
}

// text is the record's JSON: what is hashed, and written.
func (r *record) text() ([]byte, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("move: encoding %s %s: %w", r.Kind, r.ID, err)
	}
	return b, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// write writes one line.
func write(w *bufio.Writer, text []byte) error {
	_, _ = fmt.Fprintf(w, "%08x ", crc32.Checksum(text, castagnoli))
	_, _ = w.Write(text)
	return w.WriteByte('\n') // bufio keeps the first error
}

// reader reads lines.
type reader struct {
	in   *bufio.Reader
	line int64
}

// next is the next record with its text; io.EOF at the stream's end.
func (r *reader) next() (record, []byte, error) {
	r.line++
	line, err := r.read()
	if err != nil {
		return record{}, nil, err
	}
	sum, text, ok := bytes.Cut(line, []byte(" "))
	want, bad := strconv.ParseUint(string(sum), 16, 32)
	if !ok || len(sum) != 8 || bad != nil || uint32(want) != crc32.Checksum(text, castagnoli) {
		return record{}, nil, fmt.Errorf("%w: line %d is damaged", ErrStream, r.line)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // a number of JSON is a double to many
	var rec record
	if err := d.Decode(&rec); err != nil {
		return record{}, nil, fmt.Errorf("%w: line %d: %w", ErrStream, r.line, err)
	}
	return rec, text, nil
}

// read reads one whole line, without its end.
func (r *reader) read() ([]byte, error) {
	var long []byte
	for {
		part, err := r.in.ReadSlice('\n')
		switch {
		case err == nil && long == nil:
			return part[:len(part)-1], nil
		case err == nil:
			return append(long, part[:len(part)-1]...), nil
		case errors.Is(err, bufio.ErrBufferFull) && len(long)+len(part) < maxLine:
			long = append(long, part...)
		case errors.Is(err, io.EOF) && len(long)+len(part) == 0:
			return nil, io.EOF
		case errors.Is(err, bufio.ErrBufferFull), errors.Is(err, io.EOF):
			return nil, fmt.Errorf("%w: line %d is too long or cut off", ErrStream, r.line)
		default:
			return nil, err
		}
	}
}

// check says whether the target's tables are those of the stream.
func (r *record) check(tables []*storage.Table) error {
	if r.Kind != kindHead || r.Format != format {
		return fmt.Errorf("%w: it is of version %d, and this library reads %d", ErrStream, r.Format, format)
	}
	for _, s := range r.Tables {
		i := slices.IndexFunc(tables, func(t *storage.Table) bool { return t.Name == s.Name })
		if i < 0 {
			return fmt.Errorf("%w: the stream has rows of table %s, and the target was not given it", ErrIncomplete, s.Name)
		}
		if have := shapeOf(tables[i]); !slices.Equal(have.Columns, s.Columns) {
			return fmt.Errorf("%w: table %s has columns %v here and %v in the stream: move with one version of the library", ErrStream, s.Name, have.Columns, s.Columns)
		}
	}
	return nil
}
