package httpapi

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// table fills the list of an input from a CSV (RFC 4180): its first line has the names of an
// entry's fields, every other one is an entry. An empty cell counts as not given. What is wrong
// names the entry as in JSON, and the line.
func (b *binder) table(p *plan, v reflect.Value) {
	f := &p.json[0]
	body := bytes.TrimPrefix(b.body, []byte("\ufeff")) // spreadsheets write it
	if !utf8.Valid(body) || bytes.IndexByte(body, 0) >= 0 {
		b.refuseTable("must be a CSV in UTF-8")
		return
	}
	r := csv.NewReader(bytes.NewReader(body))
	r.ReuseRecord = true
	head, err := r.Read()
	if err != nil {
		b.refuseTable("must be a CSV with the names of its columns in the first line" + lineOf(err))
		return
	}
	columns := b.columns(f.Items, head)
	if len(b.bad) > 0 {
		b.broken = true
		return
	}
	list := reflect.MakeSlice(v.FieldByIndex(f.Index).Type(), 0, 0)
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			b.refuseTable(wrongLine(err, len(head)))
			return
		}
		if list.Len() == f.Rules.Max {
			b.tooMany(f)
			return
		}
		line, _ := r.FieldPos(0)
		made, one := reflect.New(list.Type().Elem()).Elem(), &binder{}
		one.record(f.Items, columns, record, made)
		b.entry(f, list.Len(), one.bad, atLine(line))
		list, b.lines = reflect.Append(list, made), append(b.lines, line)
	}
	b.entries(f, v.FieldByIndex(f.Index), list)
}

// refuseTable notes what is wrong with a table as a whole.
func (b *binder) refuseTable(message string) {
	b.broken = true
	b.bad = fields{"body": {message}}
}

// columns finds the fields that the first line names.
func (b *binder) columns(p *plan, head []string) []int {
	var out []int
	for _, name := range head {
		i, known := p.names[name]
		switch {
		case !known && p.fold[strings.ToLower(name)] != "":
			b.bad.add("body", fmt.Sprintf("%q is not a column%s; %s is", clipped(name), atLine(1), p.fold[strings.ToLower(name)]))
		case !known:
			b.bad.add("body", fmt.Sprintf("%q is not a column%s; columns are %s", clipped(name), atLine(1), strings.Join(p.columnNames(), ", ")))
		case slices.Contains(out, i):
			b.bad.add("body", name+" is a column twice"+atLine(1))
		}
		out = append(out, i)
	}
	return out
}

// columnNames are the names that a table of such entries may have.
func (p *plan) columnNames() []string {
	out := make([]string, len(p.json))
	for i := range p.json {
		out[i] = p.json[i].Name
	}
	return out
}

// clipped is a text of a caller's as it may be repeated.
func clipped(s string) string {
	const most = 40
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most]) + "…"
}

// record fills an entry from a line.
func (b *binder) record(p *plan, columns []int, record []string, v reflect.Value) {
	var seen uint64
	for at, s := range record {
		if s == "" {
			continue
		}
		f := &p.json[columns[at]]
		seen |= 1 << columns[at]
		b.text(f, v.FieldByIndex(f.Index), s)
	}
	b.missing(p, v, seen)
}

// atLine is the end of a message that says in which line something stands.
func atLine(line int) string { return " (line " + strconv.Itoa(line) + ")" }

// lineOf is atLine of an error of the reader's, "" where it is of no line.
func lineOf(err error) string {
	var at *csv.ParseError
	if !errors.As(err, &at) {
		return ""
	}
	return atLine(at.Line)
}

// wrongLine says what is wrong with a line that cannot be read.
func wrongLine(err error, columns int) string {
	if errors.Is(err, csv.ErrFieldCount) {
		return fmt.Sprintf("must have as many cells in each line as there are columns, %d%s", columns, lineOf(err))
	}
	return "must be a CSV: a quote is wrong" + lineOf(err)
}
