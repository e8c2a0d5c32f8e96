package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Error is an answer of the service that is no success.
type Error struct {
	Status    int            // of HTTP
	Code      string         // such as insufficient_balance; the OAuth error of a token request
	Message   string         // for people
	Details   map[string]any // numbers are json.Number
	RequestID string         // to be told to the operator
	// RetryAfter is how long the service wants to be left alone, 0 = not told.
	RetryAfter time.Duration
}

func (e *Error) Error() string {
	s := fmt.Sprintf("client: %d %s: %s", e.Status, e.Code, e.Message)
	if e.RequestID != "" {
		s += " (request " + e.RequestID + ")"
	}
	return s
}

// Field is what an invalid_request says of one field, nil = nothing.
func (e *Error) Field(name string) []string {
	list, _ := e.Details[name].([]any)
	var out []string
	for _, m := range list {
		if s, ok := m.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// maxMessage is how much of an answer that is none of the interface's forms is
// repeated in an Error.
const maxMessage = 200

// refusal reads any of the interface's three forms of errors.
func (c *Client) refusal(res *http.Response, raw []byte) *Error {
	e := &Error{Status: res.StatusCode, RequestID: res.Header.Get("X-Request-Id"), RetryAfter: c.retryAfter(res.Header.Get("Retry-After"))}
	var body struct {
		Error       json.RawMessage `json:"error"`
		Description string          `json:"error_description"`
		Detail      string          `json:"detail"`
	}
	_ = json.Unmarshal(raw, &body)
	var standard struct {
		Code    string         `json:"code"`
		Message string         `json:"message"`
		Details map[string]any `json:"details"`
	}
	switch {
	case len(body.Error) > 0 && body.Error[0] == '{' && decode(body.Error, &standard) == nil:
		e.Code, e.Message, e.Details = standard.Code, standard.Message, standard.Details
	case len(body.Error) > 0 && json.Unmarshal(body.Error, &e.Code) == nil:
		e.Message = body.Description
	case body.Detail != "":
		e.Message = body.Detail
	default:
		e.Message = strings.ToValidUTF8(string(raw[:min(len(raw), maxMessage)]), "�")
	}
	if e.Code == "" {
		e.Code = strings.ReplaceAll(strings.ToLower(http.StatusText(res.StatusCode)), " ", "_")
	}
	return e
}

// retryAfter reads the header: seconds, or a time.
func (c *Client) retryAfter(s string) time.Duration {
	if n, err := strconv.Atoi(s); err == nil && n > 0 && n < 1<<30 {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(s); err == nil {
		return max(0, at.Sub(c.o.Now()))
	}
	return 0
}
