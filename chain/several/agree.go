package several

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/cryptopay-go/cryptopay/chain"
)

// agree asks the nodes whose clients have ability A until Agree of them have told the same.
func agree[A, T any](ctx context.Context, c *client, what string, ask func(A) (T, error), same func(a, b T) bool) (T, error) {
	var none T
	var answers []T
	var names []string
	var last error
	var lacking []error
	for _, n := range c.usable() {
		v, err := askAble(n, ask)
		if errors.Is(err, errors.ErrUnsupported) {
			lacking = append(lacking, named(n, err))
			continue
		}
		if told := c.heed(ctx, n, err); err != nil {
			if told {
				return none, err
			}
			last = named(n, err)
			continue
		}
		answers, names = append(answers, v), append(names, n.Name)
		votes := 0
		for _, o := range answers {
			if same(v, o) {
				votes++
			}
		}
		if votes >= c.cfg.Agree {
			if votes < len(answers) {
				c.shout(what, names)
			}
			return v, nil
		}
	}
	if len(answers) < c.cfg.Agree {
		return none, c.unanswered(len(answers), lacking, last)
	}
	return none, c.disagree(what, names)
}

func (c *client) disagree(what string, names []string) error {
	c.shout(what, names)
	return fmt.Errorf("%w: %w on %s: %s", chain.ErrNode, ErrDisagree, what, strings.Join(names, ", "))
}

func (c *client) shout(what string, names []string) {
	c.cfg.Log.Error("nodes_disagree", slog.String("on", what), slog.Any("nodes", names))
}

// Tip is the highest head that Agree nodes have come to, and the highest final and
// safe heights that as many of them tell. All nodes are asked: it is also how
// they are known to lag.
func (c *client) Tip(ctx context.Context) (chain.Tip, error) {
	var tips []chain.Tip
	var from []*node
	var last error
	for _, n := range c.usable() {
		t, err := n.Client.Tip(ctx)
		if told := c.note(ctx, n, err); err != nil {
			if told {
				return chain.Tip{}, err
			}
			last = named(n, err)
			continue
		}
		tips, from = append(tips, t), append(from, n)
	}
	if len(tips) < c.cfg.Agree {
		return chain.Tip{}, c.tooFew(len(tips), last)
	}
	ranked := slices.Clone(tips)
	slices.SortStableFunc(ranked, func(a, b chain.Tip) int { return int(b.Head.Height - a.Head.Height) })
	agreed := ranked[c.cfg.Agree-1]
	out := chain.Tip{
		Head:  agreed.Head,
		Safe:  c.common(tips, func(t chain.Tip) int64 { return t.Safe }),
		Final: c.common(tips, func(t chain.Tip) int64 { return t.Final }),
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, n := range from {
		n.behind = max(0, out.Head.Height-tips[i].Head.Height)
	}
	return out, nil
}

// common is the highest value that Agree nodes reach.
func (c *client) common(tips []chain.Tip, of func(chain.Tip) int64) int64 {
	all := make([]int64, len(tips))
	for i, t := range tips {
		all[i] = of(t)
	}
	slices.Sort(all)
	return all[len(all)-c.cfg.Agree]
}

// Scan tells the blocks that Agree nodes tell alike, transfers and all, as far as
// they do. An empty trail starts at the head that Tip agrees on.
func (c *client) Scan(ctx context.Context, trail []chain.Block, w chain.Watch, limit int) (chain.Scan, error) {
	if len(trail) == 0 {
		t, err := c.Tip(ctx)
		return chain.Scan{Blocks: []chain.ScannedBlock{{Block: t.Head}}}, err
	}
	var v votes
	var last error
	deep := 0
	for _, n := range c.usable() {
		// Nodes with several heads name several blocks, of which none may be the same: they
		// read whole blocks (chain.FewWatch is hidden).
		s, err := n.Client.Scan(ctx, trail, struct{ chain.Watch }{w}, limit)
		if told := c.note(ctx, n, err); err != nil {
			if errors.Is(err, chain.ErrDeepFork) {
				if deep++; deep == c.cfg.Agree {
					return chain.Scan{}, err
				}
			} else if told {
				return chain.Scan{}, err
			}
			last = named(n, err)
			continue
		}
		v.add(n.Name, s)
		if c.cfg.Above != nil && len(v.scans) == 1 && s.Rewound == 0 && !slices.ContainsFunc(s.Blocks, c.weighs) {
			return s, nil
		}
		if best := v.best(c.cfg.Agree); best != nil && len(best.Blocks) == v.longest() {
			return c.told(v, *best), nil
		}
	}
	if len(v.scans) < c.cfg.Agree {
		return chain.Scan{}, c.tooFew(len(v.scans), last)
	}
	best := v.best(c.cfg.Agree)
	if best == nil || len(best.Blocks) == 0 && v.longest() > 0 && v.torn {
		return chain.Scan{}, c.disagree(fmt.Sprintf("what follows block %d", trail[len(trail)-1].Height), v.names)
	}
	return c.told(v, *best), nil
}

func (c *client) told(v votes, s chain.Scan) chain.Scan {
	if v.torn {
		c.shout("blocks", v.names)
	}
	return s
}

// weighs: a block has a transfer that must be agreed on.
func (c *client) weighs(b chain.ScannedBlock) bool {
	return slices.ContainsFunc(b.Transfers, c.cfg.Above)
}

// votes are the answers to one Scan.
type votes struct {
	names []string
	scans []chain.Scan
	torn  bool // two of them contradict each other
}

func (v *votes) add(name string, s chain.Scan) {
	for _, o := range v.scans {
		n := alike(s, o)
		v.torn = v.torn || s.Rewound != o.Rewound || n < min(len(s.Blocks), len(o.Blocks))
	}
	v.names, v.scans = append(v.names, name), append(v.scans, s)
}

// longest is the most blocks that anybody told.
func (v *votes) longest() int {
	n := 0
	for _, s := range v.scans {
		n = max(n, len(s.Blocks))
	}
	return n
}

// best is the longest answer that enough nodes share; nil where there is none.
func (v *votes) best(enough int) *chain.Scan {
	var out *chain.Scan
	for _, s := range v.scans {
		var reach []int // how far each goes along
		for _, o := range v.scans {
			if s.Rewound == o.Rewound {
				reach = append(reach, alike(s, o))
			}
		}
		if len(reach) < enough {
			continue
		}
		slices.Sort(reach)
		n := reach[len(reach)-enough]
		if n == 0 && s.Rewound > 0 {
			continue // that a branch is gone is nothing without what came in its place
		}
		if out == nil || n > len(out.Blocks) {
			out = &chain.Scan{Rewound: s.Rewound, Blocks: s.Blocks[:n]}
		}
	}
	return out
}

// alike counts the blocks at the beginning of two answers that are the same.
func alike(a, b chain.Scan) int {
	n := 0
	for n < min(len(a.Blocks), len(b.Blocks)) && a.Blocks[n].Hash == b.Blocks[n].Hash && sameTransfers(a.Blocks[n].Transfers, b.Blocks[n].Transfers) {
		n++
	}
	return n
}
