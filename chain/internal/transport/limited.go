package transport

import (
	"bytes"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
)

// overload are the words of a node that is asked too often, in lower case. Each is of one
// program or service: rippled and Clio (the first three), Bitcoin Core, java-tron, TronGrid
// (the next four), and providers of JSON-RPC. A refusal for the size of what was asked
// ("limit exceeded", "more than 10000 results") is none: it is refused later, too.
var overload = [][]byte{
	[]byte("server is overloaded"), []byte("slowdown"), []byte("toobusy"),
	[]byte("work queue depth exceeded"),
	[]byte("lack of computing resources"),
	[]byte("frequency limit"), []byte("exceeded the allowed_rps"), []byte("query frequency"), []byte("too quickly"),
	[]byte("rate limit"), []byte("rate exceeded"), []byte("too many requests"), []byte("request limit reached"),
	[]byte("exceeded its compute units"), []byte("credits limited"),
}

// wait finds how long the node wants to be left alone: TronGrid and Infura say so.
var wait = regexp.MustCompile(`suspended for (\d{1,9})\s*s|"backoff_seconds":\s*(\d{1,9})`)

// Limited is a *chain.LimitedError where an answer says that the node was asked too often,
// and nil where it does not. A stranger's words are never taken for the node's: see said.
func Limited(answer []byte) error {
	code, words := said(answer)
	switch {
	case code == http.StatusPaymentRequired:
		return &chain.LimitedError{After: usedUp}
	case limitCodes[code]:
		return limitedFor(answer)
	}
	low := bytes.ToLower(words)
	if code == revertCode || bytes.Contains(low, []byte("revert")) {
		return nil // a contract chooses the text of its revert
	}
	for _, words := range overload {
		if bytes.Contains(low, words) {
			return limitedFor(answer)
		}
	}
	return nil
}

// said reads what the node itself says: all of a text, and of JSON the code and the text of
// an error. The rest of JSON may be a stranger's, such as the data of a revert, what a
// program logged, or the memo of a transaction that is sent back. Of a batch it reads the
// first answer. JSON may be cut off at its end.
func said(answer []byte) (code int64, words []byte) {
	w := NewWalk(answer)
	if c := w.Peek(); c != '{' && c != '[' {
		return 0, answer
	}
	w.Take('[')
	own := func(key []byte) {
		switch name := strings.ToLower(string(key)); {
		case name == "code":
			code, _ = strconv.ParseInt(string(w.Raw()), 10, 64)
		case (name == "error" || name == "message") && w.Peek() == '"':
			words = append(append(words, w.Text()...), '\n')
		default:
			w.Skip()
		}
	}
	w.Object(func(key []byte) {
		if strings.EqualFold(string(key), "error") && w.Peek() == '{' {
			w.Object(own)
			return
		}
		own(key)
	})
	return code, words
}

func limitedFor(answer []byte) error {
	limited := &chain.LimitedError{}
	for i, seconds := range wait.FindSubmatch(bytes.ToLower(answer)) {
		if i > 0 && len(seconds) > 0 {
			limited.After = retryAfter(string(seconds))
		}
	}
	return limited
}

// limited is Limited of an answer with a status that is not read like one.
func limited(resp *http.Response, beginning []byte) error {
	after := resp.Header.Get("Retry-After")
	if resp.StatusCode == http.StatusPaymentRequired && after == "" {
		return &chain.LimitedError{After: usedUp}
	}
	if resp.StatusCode == http.StatusPaymentRequired || resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable && after != "" {
		if after == "" {
			return limitedFor(beginning)
		}
		return &chain.LimitedError{After: retryAfter(after)}
	}
	return Limited(beginning)
}

// usedUp is how long a node is left alone that answers 402. Its allowance is used up: with Infura and
// Blockfrost that of the day.
const usedUp = 5 * time.Minute

// revertCode is geth's for a contract that reverts.
const revertCode = 3

// limitCodes are those by which JSON-RPC providers say nothing but that they were asked
// too often: HTTP's, and two made of it. -32005 and -32016 mean other things as well.
var limitCodes = map[int64]bool{http.StatusTooManyRequests: true, -32429: true, -32029: true}

// retryAfter reads seconds, at most longestRest; a date would need a clock and is none.
func retryAfter(v string) time.Duration {
	seconds, err := strconv.ParseUint(v, 10, 32)
	if err != nil {
		return 0
	}
	return min(time.Duration(seconds)*time.Second, longestRest)
}
