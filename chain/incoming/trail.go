package incoming

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
)

// Trail is a list of blocks, oldest first, each the parent of the next. It is
// stored as one short text, as every step of every worker reads it: the first
// block's parent, then height, hash and time of each block.
type Trail []chain.Block

var errTrail = errors.New("incoming: not a stored trail")

// MarshalJSON writes the trail as a JSON string.
func (t Trail) MarshalJSON() ([]byte, error) {
	if len(t) == 0 {
		return []byte(`""`), nil
	}
	b := make([]byte, 0, 96*len(t))
	b = append(b, t[0].Parent...)
	for i := range t {
		if strings.ContainsAny(t[i].Hash, " ;") || i > 0 && t[i].Parent != t[i-1].Hash {
			return nil, errTrail
		}
		b = append(b, ';')
		b = strconv.AppendInt(b, t[i].Height, 10)
		b = append(b, ' ')
		b = append(b, t[i].Hash...)
		b = append(b, ' ')
		if !t[i].Time.IsZero() {
			b = strconv.AppendInt(b, t[i].Time.UnixMicro(), 10)
		}
	}
	return json.Marshal(string(b))
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (t *Trail) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	*t = nil
	if s == "" {
		return nil
	}
	parent, rest, _ := strings.Cut(s, ";")
	*t = make(Trail, 0, strings.Count(rest, ";")+1)
	for rest != "" {
		var entry string
		entry, rest, _ = strings.Cut(rest, ";")
		height, entry, ok := strings.Cut(entry, " ")
		hash, micros, ok2 := strings.Cut(entry, " ")
		h, err := strconv.ParseInt(height, 10, 64)
		if !ok || !ok2 || err != nil {
			return errTrail
		}
		b := chain.Block{Height: h, Hash: hash, Parent: parent}
		if micros != "" {
			us, err := strconv.ParseInt(micros, 10, 64)
			if err != nil {
				return errTrail
			}
			b.Time = time.UnixMicro(us).UTC()
		}
		*t, parent = append(*t, b), hash
	}
	return nil
}
