package transport_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// node is an endpoint that answers as told, and keeps what it was asked.
type node struct {
	*transport.RPC
	answer func(w http.ResponseWriter, body []byte)
	mu     sync.Mutex
	asked  []string
	heads  []http.Header
}

func newNode(t *testing.T, batch int, answer func(w http.ResponseWriter, body []byte)) *node {
	n := &node{answer: answer}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		n.mu.Lock()
		n.asked, n.heads = append(n.asked, string(body)), append(n.heads, r.Header)
		n.mu.Unlock()
		n.answer(w, body)
	}))
	t.Cleanup(server.Close)
	n.RPC = &transport.RPC{Endpoint: transport.Endpoint{HTTP: server.Client(), Max: 1 << 10}, URL: server.URL + "/key-12345?token=secret-token", Batch: batch}
	n.Hide(n.URL)
	return n
}

func say(s string) func(http.ResponseWriter, []byte) {
	return func(w http.ResponseWriter, _ []byte) { _, _ = io.WriteString(w, s) }
}

func calls(n int) []*transport.Call {
	out := make([]*transport.Call, n)
	for i := range out {
		out[i] = transport.NewCall("m" + strconv.Itoa(i+1))
	}
	return out
}

// echo answers each call with its own method, the last one first.
func echo(w http.ResponseWriter, body []byte) {
	var asked []transport.Request
	if json.Unmarshal(body, &asked) != nil {
		asked = make([]transport.Request, 1)
		_ = json.Unmarshal(body, &asked[0])
	}
	var out []map[string]any
	for _, r := range asked {
		out = append([]map[string]any{{"jsonrpc": r.Version, "id": r.ID, "result": r.Method}}, out...)
	}
	_ = json.NewEncoder(w).Encode(out)
}

func TestDoSplitsIntoBatches(t *testing.T) {
	t.Parallel()
	for batch, requests := range map[int]int{1: 5, 2: 3, 5: 1, 9: 1} {
		n := newNode(t, batch, echo)
		all := calls(5)
		require.NoError(t, n.Do(t.Context(), all...))
		for _, k := range all {
			text, err := k.Text()
			require.NoError(t, err)
			require.Equal(t, k.Method, text)
		}
		require.Len(t, n.asked, requests)
		require.Equal(t, batch > 1, n.asked[0][0] == '[')
		require.NotContains(t, n.asked[0], "null", "no parameters are an empty list")
	}
}

func TestPostBoundsAndRefuses(t *testing.T) {
	t.Parallel()
	status := func(code int) func(http.ResponseWriter, []byte) {
		return func(w http.ResponseWriter, _ []byte) {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, `{"id":1,"error":{"code":-1,"message":"no"}}`)
		}
	}
	for name, answer := range map[string]func(http.ResponseWriter, []byte){
		"too large": say(`{"id":1,"result":"` + strings.Repeat("x", 1<<10) + `"}`),
		"too large, length untold": func(w http.ResponseWriter, _ []byte) {
			for range 20 {
				_, _ = io.WriteString(w, strings.Repeat("x", 100))
				w.(http.Flusher).Flush()
			}
		},
		"cut off": func(w http.ResponseWriter, _ []byte) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"id":1,"result":5}`)
		},
		"status": status(500), "redirect": status(302), "no JSON": say("<html>"), "nothing": say(""),
		"gone": func(http.ResponseWriter, []byte) { panic(http.ErrAbortHandler) },
	} {
		n := newNode(t, 1, answer)
		err := n.Do(t.Context(), calls(1)...)
		require.ErrorIs(t, err, chain.ErrNode, name)
		for _, secret := range []string{"127.0.0.1", "key-12345", "secret-token"} {
			require.NotContains(t, err.Error(), secret, name)
		}
	}
	n := newNode(t, 1, status(500))
	n.Refusals = []int{500}
	k := transport.NewCall("m")
	require.NoError(t, n.Do(t.Context(), k))
	require.True(t, transport.Replied(k.Err, "no"), "a status that is told of is read")
}

func TestPostSendsWhatItWasGiven(t *testing.T) {
	t.Parallel()
	n := newNode(t, 1, echo)
	n.User, n.Header = url.UserPassword("alice", "pass-word"), http.Header{"X-Api-Key": {"header-secret"}}
	n.Hide(n.URL)
	require.NoError(t, n.Do(t.Context(), transport.NewCall("m", "p", 5)))
	require.Equal(t, "header-secret", n.heads[0].Get("X-Api-Key"))
	require.Equal(t, "application/json", n.heads[0].Get("Content-Type"))
	require.True(t, strings.HasPrefix(n.heads[0].Get("Authorization"), "Basic "))
	require.JSONEq(t, `{"jsonrpc":"2.0","id":1,"method":"m","params":["p",5]}`, n.asked[0])
	require.Equal(t, "… … … and m", n.Redact("alice pass-word header-secret and m"))
	require.LessOrEqual(t, len(n.Redact(strings.Repeat("é", 500))), 310)
}

func TestPostUnreachable(t *testing.T) {
	t.Parallel()
	n := newNode(t, 1, echo)
	n.URL = "http://user:hunter22@127.0.0.1:1/secret-path"
	n.Hide(n.URL)
	err := n.Do(t.Context(), calls(1)...)
	require.ErrorIs(t, err, chain.ErrNode)
	require.NotContains(t, err.Error(), "hunter22")
	require.NotContains(t, err.Error(), "secret-path")
	require.NotContains(t, err.Error(), "127.0.0.1")
	n.URL = "http://a b/"
	require.ErrorIs(t, n.Do(t.Context(), calls(1)...), chain.ErrNode)
}

func TestCallAnswers(t *testing.T) {
	t.Parallel()
	k := transport.NewCall("m")
	for out, want := range map[string]int64{"0": 0, "7": 7, "-1": -1, `"7"`: -1, "null": -1, "7.0": -1, "9223372036854775808": -1, "": -1} {
		k.Out = []byte(out)
		got, err := k.Integer()
		require.Equal(t, want >= 0, err == nil, out)
		require.Equal(t, max(want, 0), got, out)
	}
	for out, want := range map[string]string{`"ab"`: "ab", `""`: "", `"a\n"`: "-", "5": "-", "null": "-", "": "-", `"`: "-"} {
		k.Out = []byte(out)
		got, err := k.Text()
		require.Equal(t, want != "-", err == nil, out)
		require.Equal(t, strings.Trim(want, "-"), got, out)
	}
	k.Out = []byte("null")
	require.True(t, k.Null())
	var v []int
	require.ErrorIs(t, k.Into(&v), chain.ErrNode)
	k.Out = []byte("[1,2]")
	require.NoError(t, k.Into(&v))
	require.Equal(t, []int{1, 2}, v)
	k.Err = &transport.ReplyError{Method: "m", Code: -5, Message: "Not Here"}
	_, err := k.Integer()
	require.ErrorIs(t, err, chain.ErrNode)
	_, err = k.Text()
	require.True(t, transport.Replied(err, "not here"))
	require.False(t, transport.Replied(errors.New("not here"), "not here"))
	require.Error(t, k.Into(&v))
	require.False(t, k.Null())
}

// slowSplit is Split by encoding/json: what each call gets, ok false where the
// whole answer is refused. It knows texts that are JSON.
func slowSplit(answer []byte, n int) (got []string, ok bool) {
	var items []json.RawMessage
	switch answer = bytes.Trim(answer, " \n\t\r"); answer[0] {
	case '[':
		_ = json.Unmarshal(answer, &items)
	case 'n':
		return nil, false
	default:
		items = append(items, answer)
	}
	got = make([]string, n)
	answered := 0
	for _, item := range items {
		id, out, refused, object := slowReply(item)
		if !object {
			return nil, false
		}
		switch {
		case id == 0 && refused != "":
			for i := range got {
				got[i] = refused
			}
			answered = n
			continue
		case id < 1 || id > n || got[id-1] != "" || out == "" && refused == "":
			return nil, false
		case refused != "":
			got[id-1] = refused
		default:
			got[id-1] = out
		}
		answered++
	}
	return got, answered == n
}

// slowReply reads one item; of a key that is there twice the last counts.
func slowReply(item []byte) (id int, out, refused string, object bool) {
	d := json.NewDecoder(bytes.NewReader(item))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return 0, "", "", false
	}
	for d.More() {
		key, _ := d.Token()
		var raw json.RawMessage
		_ = d.Decode(&raw)
		switch key {
		case "id":
			id, _ = strconv.Atoi(strings.Trim(string(raw), `"`))
		case "result":
			out = string(raw)
		case "error":
			var e struct {
				Code    int64  `json:"code"`
				Message string `json:"message"`
			}
			switch {
			case string(raw) == "null":
				refused = ""
			case json.Unmarshal(raw, &e) != nil:
				refused = "0 unreadable error"
			default:
				refused = strconv.FormatInt(e.Code, 10) + " " + new(transport.Endpoint).Redact(e.Message)
			}
		}
	}
	return id, out, refused, true
}

var answers = []string{
	`[{"id":1,"result":"00","error":null},{"id":2,"result":{"a":[1,"\\\""]}}]`, `{"id":null,"error":{"code":-1,"message":"x"}}`,
	`[{"id":"2","result":null},{"id":1,"error":{"code":5}}]`, `[{"id":1,"result":1},{"id":1,"result":2}]`, `[{"id":1,"result":1}]`,
	`[{"id":3,"result":1},{"id":1,"result":2}]`, `[{"id":1},{"id":2,"result":2}]`, `[{"id":1,"result":1,"result":2},{"error":7,"id":2}]`, `null`, `[]`, `[null]`,
	`[{"id":1,"result":1},{"id":null,"error":{"message":"late"}}]`, `[{"ID":1,"result":1},{"id":2,"result":2}]`, `5`,
}

func agreesOnSplit(t *testing.T, answer []byte) {
	all := calls(2)
	err := new(transport.RPC).Split(answer, all)
	if err == nil {
		for _, k := range all {
			require.True(t, k.Out != nil || k.Err != nil, "a call without an answer")
		}
	} else {
		require.ErrorIs(t, err, chain.ErrNode)
	}
	if !json.Valid(answer) || depth(answer) > transport.MaxDepth || hasEscapedKeys(answer) {
		return
	}
	want, ok := slowSplit(answer, len(all))
	require.Equal(t, ok, err == nil, "%v", err)
	if !ok {
		return
	}
	for i, k := range all {
		if k.Err == nil {
			require.Equal(t, want[i], string(k.Out))
			continue
		}
		var r *transport.ReplyError
		require.ErrorAs(t, k.Err, &r)
		require.Equal(t, k.Method, r.Method)
		require.Equal(t, want[i], strconv.FormatInt(r.Code, 10)+" "+r.Message)
	}
}

// hasEscapedKeys: a key with an escape in it is another key to Walk.
func hasEscapedKeys(answer []byte) bool { return bytes.Contains(answer, []byte(`\`)) }

func TestSplitAgainstEncodingJSON(t *testing.T) {
	t.Parallel()
	for _, s := range answers {
		agreesOnSplit(t, []byte(s))
	}
}

func FuzzSplit(f *testing.F) {
	for _, s := range answers {
		f.Add([]byte(s))
	}
	f.Fuzz(agreesOnSplit)
}
