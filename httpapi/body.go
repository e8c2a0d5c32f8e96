package httpapi

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// What becomes of a body that cannot be had whole: above Options.MaxBody, not
// there at the request's deadline, or broken off.
var (
	errTooLarge = errors.New("httpapi: request body too large")
	errSlow     = errors.New("httpapi: request body too slow")
	errCut      = errors.New("httpapi: request body broken off")
)

// tooLongError is a request with a list of more entries than it may have: as a body that is too
// large, it can be sent in parts.
type tooLongError struct{ Fields fields }

func (e *tooLongError) Error() string { return "httpapi: a list of the request is too long" }

// errMedia is a body of another media type than the route takes.
type errMedia struct{ want string }

func (e *errMedia) Error() string { return "httpapi: Content-Type must be " + e.want }

// The media types of bodies.
const (
	mediaJSON = "application/json"
	mediaCSV  = "text/csv"
)

// readBody reads the whole body, which ServeHTTP has bounded, and says of which of the media
// types it is. A body of another type is refused before it is read; one without a type is
// taken for the first.
func readBody(r *http.Request, want ...string) (body []byte, media string, err error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, "", nil
	}
	media, wanted := want[0], strings.Join(want, " or ")
	if given := r.Header.Get("Content-Type"); given != "" {
		named, params, err := mime.ParseMediaType(given)
		charset := strings.ToLower(params["charset"])
		if err != nil || !slices.Contains(want, named) || charset != "" && charset != "utf-8" {
			return nil, "", &errMedia{wanted}
		}
		media = named
	}
	if e := r.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return nil, "", &errMedia{wanted + " without Content-Encoding"}
	}
	body, err = io.ReadAll(r.Body)
	var large *http.MaxBytesError
	switch {
	case err == nil:
		return body, media, nil
	case errors.As(err, &large):
		return nil, "", errTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, "", errSlow
	}
	return nil, "", errCut
}

// members walks a JSON object strictly (RFC 8259 with the rules of I-JSON, RFC
// 7493: valid UTF-8, unique names at every depth, no lone surrogates; and no
// NUL), and calls each with every member of the top level. What is wrong with
// the whole is the returned message, with the field it is at, "" = none.
func members(body []byte, each func(name string, value jsontext.Value)) (at, message string) {
	if bytes.Contains(body, []byte(`\u0000`)) && holdsNUL(body) {
		return "body", "must not contain a NUL"
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(body))
	first, err := d.ReadToken()
	if err != nil {
		return explain(err)
	}
	if first.Kind() != '{' {
		return "body", "must be a JSON object"
	}
	for d.PeekKind() != '}' {
		token, err := d.ReadToken()
		if err != nil {
			return explain(err)
		}
		name := token.String()
		value, err := d.ReadValue()
		if err != nil {
			return explain(err)
		}
		each(name, value)
	}
	if _, err := d.ReadToken(); err != nil {
		return explain(err)
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return "body", "must be one JSON object without anything after it"
	}
	return "", ""
}

// explain says what is wrong with a text that is not JSON, without repeating it.
func explain(err error) (at, message string) {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) && errors.Is(syntax.Err, jsontext.ErrDuplicateName) {
		if name := syntax.JSONPointer.LastToken(); name != "" {
			return name, "is given twice"
		}
		return "body", "has a name twice"
	}
	return "body", "must be a JSON object in UTF-8"
}

// holdsNUL looks for a NUL in any string of the body. What is no JSON is found
// by who reads it next.
func holdsNUL(body []byte) bool {
	d := jsontext.NewDecoder(bytes.NewBuffer(body))
	for {
		token, err := d.ReadToken()
		if err != nil {
			return false
		}
		if token.Kind() == '"' && strings.Contains(token.String(), "\x00") {
			return true
		}
	}
}
