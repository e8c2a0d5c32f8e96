package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/cryptopay-go/cryptopay/storage/move"
)

// bar shows how far it is, on one line.
type bar struct {
	w     io.Writer
	now   func() time.Time
	phase string
	since time.Time
	last  time.Time
}

const width = 30

func (b *bar) show(p move.Progress) {
	now := b.now()
	if p.Phase != b.phase {
		b.end()
		b.phase, b.since, b.last = p.Phase, now, time.Time{}
	}
	if now.Sub(b.last) < 100*time.Millisecond && p.Done != p.Total {
		return
	}
	b.last = now
	rate := ""
	if d := now.Sub(b.since); d > 0 {
		rate = fmt.Sprintf("%d/s", p.Done*int64(time.Second)/int64(d))
	}
	if p.Total == 0 { // a stream does not say how long it is
		_, _ = fmt.Fprintf(b.w, "\r%-20s %d  %s   ", p.Phase, p.Done, rate)
		return
	}
	full := int(p.Done * width / p.Total)
	_, _ = fmt.Fprintf(b.w, "\r%-20s [%s%s] %3d %%  %d of %d  %s   ", p.Phase, strings.Repeat("#", full), strings.Repeat("-", width-full),
		p.Done*100/p.Total, p.Done, p.Total, rate)
}

// end leaves the line as it is.
func (b *bar) end() {
	if b.phase != "" {
		_, _ = fmt.Fprintln(b.w)
		b.phase = ""
	}
}

// table prints what was compared.
func table(out io.Writer, r move.Report) {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	differs := map[string]move.Difference{}
	for _, d := range r.Differences {
		differs[d.Source.Name] = d
	}
	held := map[string]move.Sum{}
	for _, s := range r.Target.Sums {
		held[s.Name] = s
	}
	_, _ = fmt.Fprintln(w, "what\tsource\ttarget\tsha-256 sum\t")
	for _, s := range r.Source.Sums {
		target, note := "-", ""
		if t, ok := held[s.Name]; ok {
			target = fmt.Sprint(t.Count)
		}
		if _, ok := differs[s.Name]; ok {
			note = "DIFFERS"
		}
		if s.Count > 0 || note != "" {
			_, _ = fmt.Fprintf(w, "%s\t%d\t%s\t%.16s\t%s\n", s.Name, s.Count, target, s.Hash, note)
		}
	}
	_ = w.Flush()
	for _, d := range r.Rows {
		_, _ = fmt.Fprintln(out, "differs:", d)
	}
}
