package transport_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// Texts on both sides of what JSON is.
var texts = []string{
	`{"a":[1,-2.5e3,"x\"\\",null,true,{}],"b":{"c":[]}}`, ` [ ] `, `"\\"`, `"\`, `"a\\\"`, `{"a":1,}`, `[1,]`, `[1 2]`, `{"a" 1}`, `{a:1}`, `nul`, `nulll`,
	`{}{}`, `[]]`, `[[`, `{"a":{"a":1},"a":2}`, `1`, `-`, `+1`, `01`, "\"\x01\"", `"\u00e9\x"`, "", ` `, `[null]`, "\xff", `{"":[[[]]]}`, `.5`, `E5`, `[,1]`, `{,}`, "[1\f]",
}

// tree reads a value as encoding/json would, by Walk's methods.
func tree(w *transport.Walk, depth int) any {
	switch c := w.Peek(); {
	case w.Bad || depth > 10_000:
		w.Fail()
		return nil
	case c == '{':
		m := map[string]any{}
		w.Object(func(k []byte) { m[plain(k)] = tree(w, depth+1) })
		return m
	case c == '[':
		l := []any{}
		w.Array(func() { l = append(l, tree(w, depth+1)) })
		return l
	case c == '"':
		return plain(w.Text())
	default:
		switch s := string(w.Literal()); s {
		case "null":
			return nil
		case "true", "false":
			return s == "true"
		default:
			return json.Number(s)
		}
	}
}

// plain undoes the escapes of a text as it stands between quotes.
func plain(text []byte) string {
	var s string
	if json.Unmarshal([]byte(`"`+string(text)+`"`), &s) != nil {
		return string(text)
	}
	return s
}

// skeleton is the text with each string empty and each number 0: what Walk
// promises to be strict about.
func skeleton(w *transport.Walk, out *bytes.Buffer) {
	comma := func(first *bool) {
		if !*first {
			out.WriteByte(',')
		}
		*first = false
	}
	first := true
	switch w.Peek() {
	case '{':
		out.WriteByte('{')
		w.Object(func([]byte) {
			comma(&first)
			out.WriteString(`"":`)
			skeleton(w, out)
		})
		out.WriteByte('}')
	case '[':
		out.WriteByte('[')
		w.Array(func() {
			comma(&first)
			skeleton(w, out)
		})
		out.WriteByte(']')
	case '"':
		w.Text()
		out.WriteString(`""`)
	default:
		w.Literal()
		out.WriteByte('0')
	}
}

// marks are the letters that make structure, outside of strings.
func marks(text []byte) string {
	var out strings.Builder
	inside := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inside && c == '\\':
			i++
		case c == '"':
			inside = !inside
		case !inside && strings.IndexByte("[]{},:", c) >= 0:
			out.WriteByte(c)
		}
	}
	return out.String()
}

// depth is how deep brackets nest outside of strings.
func depth(text []byte) (deepest int) {
	at := 0
	for _, c := range marks(text) {
		switch c {
		case '[', '{':
			at++
			deepest = max(deepest, at)
		case ']', '}':
			at--
		}
	}
	return deepest
}

func agreesOnWalk(t *testing.T, text []byte) {
	skip := transport.NewWalk(text)
	skip.Skip()
	accepted := skip.End() == nil
	if d := depth(text); d > transport.MaxDepth {
		require.False(t, accepted && d > transport.MaxDepth+2, "deeper than the bound")
		return
	}
	raw := transport.NewWalk(text)
	r := raw.Raw()
	require.Equal(t, accepted, raw.End() == nil, "Raw and Skip read the same")
	w := transport.NewWalk(text)
	got := tree(w, 0)
	require.Equal(t, accepted, w.End() == nil, "reading and skipping agree")
	if !accepted {
		require.False(t, json.Valid(text), "JSON was refused")
		return
	}
	require.Equal(t, string(bytes.Trim(text, " \n\t\r")), string(r))
	var bones bytes.Buffer
	skeleton(transport.NewWalk(text), &bones)
	require.True(t, json.Valid(bones.Bytes()), "accepted, and its structure is %s", bones.Bytes())
	require.Equal(t, marks(text), marks(bones.Bytes()))
	if json.Valid(text) {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		var want any
		require.NoError(t, d.Decode(&want))
		require.Equal(t, want, got)
	}
}

func TestWalkAgainstEncodingJSON(t *testing.T) {
	t.Parallel()
	for _, s := range texts {
		agreesOnWalk(t, []byte(s))
	}
	for _, n := range []int{transport.MaxDepth, transport.MaxDepth + 3, 20_000} {
		w := transport.NewWalk([]byte(strings.Repeat("[", n) + strings.Repeat("]", n)))
		w.Skip()
		require.Equal(t, n > transport.MaxDepth, w.End() != nil, n)
	}
}

func FuzzWalk(f *testing.F) {
	for _, s := range texts {
		f.Add([]byte(s))
	}
	f.Fuzz(agreesOnWalk)
}

// What is asked for and is not there is an error, and ends the reading.
func TestWalkAskedForSomethingElse(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func(*transport.Walk){
		"text":    func(w *transport.Walk) { w.Text() },
		"object":  func(w *transport.Walk) { w.Object(func([]byte) { t.Error("a key of a number") }) },
		"array":   func(w *transport.Walk) { w.Array(func() { t.Error("an element of a number") }) },
		"nothing": func(*transport.Walk) {},
		"fail":    func(w *transport.Walk) { w.Fail() },
		"twice":   func(w *transport.Walk) { w.Skip(); w.Skip() },
	} {
		w := transport.NewWalk([]byte("12"))
		read(w)
		require.ErrorIs(t, w.End(), chain.ErrNode, name)
	}
	w := transport.NewWalk([]byte("null"))
	w.Array(func() { t.Error("an element of null") })
	require.NoError(t, w.End(), "null is an empty array")
}

func TestUnhex(t *testing.T) {
	t.Parallel()
	var b [3]byte
	require.True(t, transport.Unhex(b[:], []byte("00fFa9")))
	require.Equal(t, [3]byte{0, 0xff, 0xa9}, b)
	for _, s := range []string{"", "00ff", "00ffa", "00ffa9a", "00ffag", "0x00ff", "00 ffa"} {
		require.False(t, transport.Unhex(b[:], []byte(s)), s)
	}
	for c := range 256 {
		want := strings.IndexByte("0123456789abcdef", bytes.ToLower([]byte{byte(c)})[0])
		if want < 0 || c > 127 {
			require.Greater(t, transport.Nibble(byte(c)), byte(15))
		} else {
			require.Equal(t, byte(want), transport.Nibble(byte(c)))
		}
	}
}
