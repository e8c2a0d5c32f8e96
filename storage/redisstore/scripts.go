package redisstore

import (
	"context"
	_ "embed"
	"strings"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed lua/commit.lua
	commitLua string
	//go:embed lua/judge.lua
	judgeLua string
	//go:embed lua/store.lua
	storeLua string
	//go:embed lua/claim.lua
	claimLua string
	//go:embed lua/page.lua
	pageLua string
	//go:embed lua/balances.lua
	balancesLua string
	//go:embed lua/entries.lua
	entriesLua string
	//go:embed lua/time.lua
	timeLua string

	commitScript   = newScript(commitLua, judgeLua, storeLua)
	claimScript    = newScript(claimLua)
	pageScript     = newScript(pageLua)
	balancesScript = newScript(balancesLua)
	entriesScript  = newScript(entriesLua)
	timeScript     = newScript(timeLua)
)

type script struct{ hash, text string }

func newScript(pieces ...string) script {
	text := strings.Join(pieces, "")
	return script{redis.NewScript(text).Hash(), text}
}

// evaluation is one call of a script.
type evaluation struct {
	keys []string
	args []any
}

// run calls a script once per evaluation, all of them in one round trip, and
// once more for those whose server did not know it yet. Each answer has its own
// error.
func (s *Store) run(ctx context.Context, sc script, calls []evaluation) []*redis.Cmd {
	out := make([]*redis.Cmd, len(calls))
	if len(calls) == 1 {
		out[0] = s.client.EvalSha(ctx, sc.hash, calls[0].keys, calls[0].args...)
	} else {
		pipe := s.client.Pipeline()
		for i := range calls {
			out[i] = pipe.EvalSha(ctx, sc.hash, calls[i].keys, calls[i].args...)
		}
		_, _ = pipe.Exec(ctx) // each command has its own
	}
	for i := range out {
		if err := out[i].Err(); err != nil && strings.HasPrefix(err.Error(), "NOSCRIPT") {
			out[i] = s.client.Eval(ctx, sc.text, calls[i].keys, calls[i].args...)
		}
	}
	return out
}
