package sqlstore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/verdict"
)

// TableName is the SQL name of a declared table.
func TableName(t *storage.Table) string { return Prefix + t.Name }

// columnType is the SQL type of a column.
func (d *Dialect) columnType(t *storage.Table, c *storage.Column) string {
	if verdict.Indexed(t, c.Name) {
		switch c.Kind {
		case storage.Text:
			return d.KeyText
		case storage.Bytes:
			return d.KeyBytes
		}
	}
	return d.Types[c.Kind]
}

// DDL is the statements that make a declared table.
func (d *Dialect) DDL(t *storage.Table) []string {
	name := TableName(t)
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE TABLE %s (\n", name)
	for _, c := range [][2]string{
		{"part", d.KeyText},
		{"id", d.KeyText},
		{"version", d.Types[storage.Int]},
		{"change_id", d.KeyText},
		{"due", d.Types[storage.Time]},
	} {
		fmt.Fprintf(&b, "  %s %s NOT NULL,\n", d.quote(c[0]), c[1])
	}
	for i := range t.Columns {
		fmt.Fprintf(&b, "  %s %s NOT NULL,\n", d.quote(t.Columns[i].Name), d.columnType(t, &t.Columns[i]))
	}
	fmt.Fprintf(&b, "  PRIMARY KEY (part, id)\n)%s", d.TableSuffix)
	out := []string{b.String()}
	for i, cols := range t.Uniques {
		out = append(out, fmt.Sprintf("CREATE UNIQUE INDEX %s_u%d ON %s (part, %s)", name, i, name, d.quoteAll(cols)))
	}
	for i, cols := range t.Indexes {
		out = append(out, fmt.Sprintf("CREATE INDEX %s_i%d ON %s (part, %s)", name, i, name, d.quoteAll(cols)))
	}
	return append(out, fmt.Sprintf(d.DueIndex, name+"_due", name))
}

// Schema prints the statements for a migration's file.
func (d *Dialect) Schema(tables ...*storage.Table) string {
	var b strings.Builder
	for _, t := range tables {
		for _, s := range d.DDL(t) {
			b.WriteString(s)
			b.WriteString(";\n")
		}
	}
	return b.String()
}

// Shape lists what a table must consist of, one line each: "column NAME TYPE",
// "key COLUMNS", "unique COLUMNS", "index COLUMNS".
func (d *Dialect) Shape(t *storage.Table) []string {
	out := []string{
		"column part " + d.KeyText, "column id " + d.KeyText, "column version " + d.Types[storage.Int],
		"column change_id " + d.KeyText, "column due " + d.Types[storage.Time],
	}
	for i := range t.Columns {
		out = append(out, "column "+t.Columns[i].Name+" "+d.columnType(t, &t.Columns[i]))
	}
	out = append(out, "key part,id", "index due,part,id")
	for _, cols := range t.Uniques {
		out = append(out, "unique part,"+strings.Join(cols, ","))
	}
	for _, cols := range t.Indexes {
		out = append(out, "index part,"+strings.Join(cols, ","))
	}
	return out
}

// missing says what of a declared shape a table lacks, and which of its unique
// keys the declaration does not know.
func missing(want, have []string) []string {
	var out []string
	for _, w := range want {
		if !slices.Contains(have, w) {
			out = append(out, "no "+w)
		}
	}
	for _, h := range have {
		if strings.HasPrefix(h, "unique ") && !slices.Contains(want, h) {
			out = append(out, "unexpected "+h)
		}
	}
	return out
}
