package move

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

type fuzzed struct {
	Text  string            `db:"text"`
	N     int64             `db:"n"`
	Flag  bool              `db:"flag"`
	At    time.Time         `db:"at"`
	Bytes []byte            `db:"bytes"`
	List  map[string]string `db:"list,json"`
}

var fuzzTable = storage.NewTable[fuzzed]("fuzzed", storage.Unique("text"))

// FuzzRecord: a row goes through a line of the stream and comes back as it was;
// of any line, what can be read as a row is written and read as the same row.
func FuzzRecord(f *testing.F) {
	for i, line := range []string{
		`{"k":"row","t":"fuzzed","id":"r","v":3,"c":"change","d":5,"s":["x",9223372036854775807,1,-1,"AAE=","{\"a\":\"b\"}"]}`,
		`{"k":"row","t":"fuzzed","id":"r","v":1,"s":["x",1.5,1,-1,"AAE=","{}"]}`,
		`{"k":"row","t":"fuzzed","id":"r","v":1,"s":["x",1,1,9223372036854775808,"?","{}"]}`,
		`{"k":"row","t":"fuzzed","id":"r","v":1,"s":[null,true,[],{},1,2]}`, `[]`,
	} {
		f.Add(line, "text \u00fc \"quoted\"", int64(i)<<60, []byte{0, 255, byte(i)})
	}
	f.Fuzz(func(t *testing.T, line, text string, n int64, blob []byte) {
		if storage.ValidText(text) { // else no backend holds it
			v := fuzzed{Text: text, N: n, Flag: n&1 == 1, At: storage.FromMicros(n), Bytes: blob, List: map[string]string{"k": text}}
			if len(blob) == 0 {
				v.Bytes = nil
			}
			row := fuzzTable.Row("id "+text, 1+(n>>1)&0xff, storage.FromMicros(^n), v)
			row.Change = text
			require.Equal(t, row, through(t, row))
		}
		in := reader{in: bufio.NewReader(strings.NewReader(framed(t, line)))}
		rec, raw, err := in.next()
		if err != nil {
			require.ErrorIs(t, err, ErrStream)
			return
		}
		require.Equal(t, line, string(raw))
		row, err := rec.row(fuzzTable.Table)
		if err != nil {
			require.ErrorIs(t, err, ErrStream)
			return
		}
		require.Equal(t, row, through(t, row))
	})
}

// through sends a row over a line.
func through(t *testing.T, row storage.Row) storage.Row {
	rec, err := rowRecord(&row)
	require.NoError(t, err)
	text, err := rec.text()
	require.NoError(t, err)
	in := reader{in: bufio.NewReader(strings.NewReader(framed(t, string(text))))}
	back, raw, err := in.next()
	require.NoError(t, err)
	require.Equal(t, string(text), string(raw))
	_, _, err = in.next()
	require.ErrorIs(t, err, io.EOF)
	got, err := back.row(row.Table)
	require.NoError(t, err)
	return got
}

// framed is a text as a line of the stream, with a right checksum.
func framed(t *testing.T, text string) string {
	var b bytes.Buffer
	w := bufio.NewWriter(&b)
	require.NoError(t, write(w, []byte(strings.ReplaceAll(text, "\n", " "))))
	require.NoError(t, w.Flush())
	return b.String()
}

func fuzzEnd(t testing.TB) End {
	s := memory.New()
	require.NoError(t, s.Open(t.Context(), fuzzTable.Table, Positions.Table))
	return End{Store: s, Tables: []*storage.Table{fuzzTable.Table}, Partitions: func(context.Context, storage.Store) iter.Seq2[storage.Partition, error] {
		return func(yield func(storage.Partition, error) bool) { _ = yield("system", nil) && yield("tenant/a", nil) }
	}}
}

// A row is put as often as it was written: a stream with right checksums that says
// a version which nobody writes in a lifetime is refused before the first put.
func TestImportRefusesEndlessVersions(t *testing.T) {
	t.Parallel()
	from := fuzzEnd(t)
	require.NoError(t, storage.CommitOne(t.Context(), from.Store, storage.Change{
		ID: "c", Partition: "tenant/a", Put: []storage.Row{fuzzTable.Row("one", 0, time.Time{}, fuzzed{Text: "a"})},
	}))
	var stream bytes.Buffer
	_, err := Export(t.Context(), from, &stream, Options{})
	require.NoError(t, err)
	for _, version := range []string{"1073741825", "9223372036854775807"} {
		var lines strings.Builder
		for line := range strings.Lines(stream.String()) {
			lines.WriteString(framed(t, strings.TrimSuffix(strings.Replace(line[9:], `"v":1,`, `"v":`+version+`,`, 1), "\n")))
		}
		require.Contains(t, lines.String(), version)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		_, err = Import(ctx, strings.NewReader(lines.String()), fuzzEnd(t), Options{})
		cancel()
		require.ErrorIs(t, err, ErrStream)
		require.ErrorContains(t, err, version)
	}
}

// FuzzImport: a stream whose checksums are right, whatever it says, is brought
// over whole, so that exporting the target says the same figures, or refused in
// words of this package.
func FuzzImport(f *testing.F) {
	from := fuzzEnd(f)
	wallet, outside := ledger.Wallet("w"), ledger.Chain("net")
	for i, c := range []storage.Change{
		{Put: []storage.Row{fuzzTable.Row("one", 0, time.UnixMicro(5), fuzzed{Text: "a", Bytes: []byte{1}})}},
		{Put: []storage.Row{fuzzTable.Row("one", 1, time.Time{}, fuzzed{Text: "b"})}},
		{Post: []ledger.Tx{{ID: "t", Legs: []ledger.Leg{{Account: wallet, Asset: "COIN", Delta: 7}, {Account: outside, Asset: "COIN", Delta: -7}}}}},
		{Post: []ledger.Tx{{ID: "h", Legs: []ledger.Leg{{Account: wallet, Asset: "COIN", Hold: 5}}}}},
	} {
		c.ID, c.Partition = "c"+string(rune('0'+i)), "tenant/a"
		require.NoError(f, storage.CommitOne(f.Context(), from.Store, c))
	}
	var stream bytes.Buffer
	_, err := Export(f.Context(), from, &stream, Options{})
	require.NoError(f, err)
	var plain strings.Builder
	for line := range strings.Lines(stream.String()) {
		plain.WriteString(line[9:])
	}
	good := plain.String()
	f.Add(good)
	f.Add(strings.ReplaceAll(good, `"d":7`, `"d":8`))
	f.Add(strings.ReplaceAll(good, `"tenant/a"`, `"tenant/b"`))
	f.Add(strings.ReplaceAll(good, `"v":2`, `"v":-1`))
	f.Add(strings.ReplaceAll(good, `"k":"tx"`, `"k":"held"`))
	f.Add(good[strings.Index(good, "\n")+1:])
	f.Fuzz(func(t *testing.T, plain string) {
		var lines strings.Builder
		for line := range strings.Lines(plain) {
			text := strings.TrimSuffix(line, "\n")
			var rec record
			if json.Unmarshal([]byte(text), &rec) == nil && rec.Version > 100 {
				return // is written as often, and takes its time
			}
			lines.WriteString(framed(t, text))
		}
		to := fuzzEnd(t)
		report, err := Import(t.Context(), strings.NewReader(lines.String()), to, Options{})
		if err != nil {
			named := false
			for _, known := range []error{ErrStream, ErrDifferent, ErrNotEmpty, ErrBooks, ErrIncomplete} {
				named = named || errors.Is(err, known)
			}
			require.True(t, named, "%v", err)
			return
		}
		require.Empty(t, report.Findings)
		var again bytes.Buffer
		sent, err := Export(t.Context(), to, &again, Options{})
		require.NoError(t, err)
		require.Equal(t, report.Source, sent)
	})
}
