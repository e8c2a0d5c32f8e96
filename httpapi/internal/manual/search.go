package manual

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// entry is something that can be found.
type entry struct {
	result
	text string // what is searched, in small letters
}

// result is a line of a search's answer.
type result struct {
	Kind, Title, About string
	Page               string // with its fragment
	More               []string
}

const (
	maxQuery   = 100 // characters that are looked at
	maxResults = 60
	maxPlaces  = 12 // operations that are named for one field
)

// clip is what is searched for: without what is not printed, and of a bounded length.
func clip(query string) string {
	query = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, query)
	if runes := []rune(query); len(runes) > maxQuery {
		query = string(runes[:maxQuery])
	}
	return strings.TrimSpace(query)
}

// entries are all that can be found: operations, events, guides, error codes and fields.
func (m *Manual) entries() []entry {
	var out []entry
	add := func(kind, title, about, page, text string) {
		out = append(out, entry{result{Kind: kind, Title: title, About: about, Page: page}, strings.ToLower(title + " " + about + " " + text)})
	}
	for _, g := range Guides {
		add("Guide", g.Title, g.About, g.Name+"/", "")
	}
	for _, g := range m.of.Groups {
		for _, op := range g.Operations {
			add("Operation", op.Method+" "+op.Path, op.About, op.Name+"/", op.Name+" "+g.Name)
		}
	}
	for _, e := range m.of.Events {
		add("Event", e.Name, e.About, e.Name+"/", "webhook")
	}
	for _, c := range m.codes() {
		add("Error code", c.Code, c.Means, "errors/#code-"+c.Code, c.Do)
	}
	return append(out, m.fields()...)
}

// fields are the members of requests and answers, each name once with the places where it
// stands.
func (m *Manual) fields() []entry {
	byName := map[string]*entry{}
	place := func(at, page string, fields []Field) {
		for _, f := range fields {
			e := byName[f.Name]
			if e == nil {
				e = &entry{result: result{Kind: "Field", Title: f.Name, About: f.About, Page: page}, text: strings.ToLower(f.Name)}
				byName[f.Name] = e
			}
			e.About = cmp.Or(e.About, f.About)
			e.text += " " + strings.ToLower(f.About)
			if !slices.Contains(e.More, at) {
				e.More = append(e.More, at)
			}
		}
	}
	for _, g := range m.of.Groups {
		for _, op := range g.Operations {
			for _, fields := range [][]Field{op.PathFields, op.Query, op.Body, op.Fields} {
				place(op.Name, op.Name+"/", fields)
			}
			for _, o := range op.Objects {
				place(op.Name, op.Name+"/", o.Fields)
			}
		}
	}
	for _, ev := range m.of.Events {
		place(ev.Name, ev.Name+"/", ev.Fields)
	}
	var out []entry
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		e := *byName[name]
		if len(e.More) > maxPlaces {
			e.More = append(e.More[:maxPlaces:maxPlaces], "…")
		}
		out = append(out, e)
	}
	return out
}

// search finds what has every word of a query, the best first, and how many there are.
func (m *Manual) search(query string) ([]result, int) {
	words := strings.Fields(strings.ToLower(query))
	if len(words) == 0 {
		return nil, 0
	}
	type hit struct {
		entry
		rank int
	}
	var hits []hit
	for _, e := range m.index {
		missing := slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(e.text, w) })
		if missing {
			continue
		}
		title, rank := strings.ToLower(e.Title), 2
		switch {
		case title == strings.Join(words, " "):
			rank = 0
		case strings.Contains(title, words[0]):
			rank = 1
		}
		hits = append(hits, hit{e, rank})
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(a.rank, b.rank) })
	found := len(hits)
	var out []result
	for _, h := range hits[:min(found, maxResults)] {
		out = append(out, h.result)
	}
	return out, found
}
