package sqlstore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/verdict"
)

// TableName is the SQL name of a declared table, where a dialect says no prefix.
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

// leaseColumns declares what a claim writes: see the package's layout.
func (d *Dialect) leaseColumns() []string {
	return []string{
		d.quote("lease") + " " + d.Types[storage.Time] + " NOT NULL DEFAULT 0",
		d.quote("claims") + " " + d.Types[storage.Int] + " NOT NULL DEFAULT 0",
	}
}

// DDL is the statements that make a declared table in the connection's own schema.
func (d *Dialect) DDL(t *storage.Table) []string {
	name := d.local(t.Name)
	var lines, after []string
	for _, c := range [][2]string{
		{"part", d.KeyText},
		{"id", d.KeyText},
		{"version", d.Types[storage.Int]},
		{"change_id", d.KeyText},
		{"due", d.Types[storage.Time]},
	} {
		lines = append(lines, fmt.Sprintf("%s %s NOT NULL", d.quote(c[0]), c[1]))
	}
	lines = append(lines, d.leaseColumns()...)
	for i := range t.Columns {
		lines = append(lines, fmt.Sprintf("%s %s NOT NULL", d.quote(t.Columns[i].Name), d.columnType(t, &t.Columns[i])))
	}
	lines = append(lines, "PRIMARY KEY (part, id)")
	index := func(kind, suffix, columns string) {
		if d.InTable {
			lines = append(lines, fmt.Sprintf("%s %s_%s (%s)", kind, name, suffix, columns))
			return
		}
		after = append(after, fmt.Sprintf("CREATE %s %s_%s ON %s (%s)", kind, name, suffix, name, columns))
	}
	for i, cols := range t.Uniques {
		index("UNIQUE INDEX", fmt.Sprint("u", i), "part, "+d.quoteAll(cols))
	}
	for i, cols := range t.Indexes {
		index("INDEX", fmt.Sprint("i", i), "part, "+d.quoteAll(cols))
	}
	for i, cols := range t.Across {
		index("INDEX", fmt.Sprint("a", i), d.quoteAll(cols))
	}
	if d.InTable {
		lines = append(lines, fmt.Sprintf(d.DueIndex, name+"_due"))
	} else {
		after = append(after, fmt.Sprintf(d.DueIndex, name+"_due", name))
	}
	create := fmt.Sprintf("CREATE TABLE %s (\n  %s\n)%s", name, strings.Join(lines, ",\n  "), d.TableSuffix)
	if d.AfterTable != "" {
		after = append(after, fmt.Sprintf(d.AfterTable, name))
	}
	return append([]string{create}, after...)
}

// Declared prints the statements that make these tables, for a migration's file.
func (d *Dialect) Declared(tables ...*storage.Table) string {
	var b strings.Builder
	for _, t := range tables {
		for _, s := range d.DDL(t) {
			b.WriteString(s)
			b.WriteString(";\n")
		}
	}
	return b.String()
}

// Script prints all that Migrate does on an empty database.
func (d *Dialect) Script(tables ...*storage.Table) (string, error) {
	all, err := d.migrations()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	line := func(q string) { b.WriteString(q + ";\n") }
	if d.Schema != "" {
		line(fmt.Sprintf(d.MakeSchema, d.Schema))
		line(strings.Replace(fmt.Sprintf(d.MigrateIn, d.Schema), "SET LOCAL", "SET", 1))
	}
	line(d.migrationsDDL())
	made := map[string]bool{}
	for _, m := range all {
		fmt.Fprintf(&b, "\n-- %s\n", m.name)
		for _, q := range m.statements {
			line(q)
			if words := strings.Fields(strings.ReplaceAll(q, "IF NOT EXISTS ", "")); len(words) > 2 && words[1] == "TABLE" {
				made[words[2]] = true
			}
		}
		line(fmt.Sprintf("INSERT INTO %s (version, name) VALUES (%d, '%s')", d.local("migrations"), m.version, m.name))
	}
	for _, t := range tables {
		if !made[d.local(t.Name)] {
			b.WriteString("\n" + d.Declared(t))
		}
	}
	return b.String(), nil
}

// Shape lists what a table must consist of, one line each: "column NAME TYPE",
// "key COLUMNS", "unique COLUMNS", "index COLUMNS".
func (d *Dialect) Shape(t *storage.Table) []string {
	out := []string{
		"column part " + d.KeyText, "column id " + d.KeyText, "column version " + d.Types[storage.Int],
		"column change_id " + d.KeyText, "column due " + d.Types[storage.Time], "column lease " + d.Types[storage.Time], "column claims " + d.Types[storage.Int],
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
	for _, cols := range t.Across {
		out = append(out, "index "+strings.Join(cols, ","))
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
