package httpapi

import (
	"errors"

	"github.com/cryptopay-go/cryptopay/internal/fault"
)

// fields collects what is wrong with a request: field → messages.
type fields map[string][]string

func (f *fields) add(name, message string) {
	if *f == nil {
		*f = fields{}
	}
	(*f)[name] = append((*f)[name], message)
}

// merge takes over the fields of a domain's validation error that are not
// named yet.
func (f *fields) merge(err error) {
	for name, messages := range invalid(err) {
		if _, named := (*f)[name]; !named {
			for _, m := range messages {
				f.add(name, m)
			}
		}
	}
}

// invalid is what a validation error of any room says, nil for another error.
func invalid(err error) map[string][]string {
	var e *invalidError
	if errors.As(err, &e) {
		return e.Fields
	}
	return nil
}

// invalidError is the validation error of every room.
type invalidError = fault.InvalidError

// bad is a request with one bad field.
func bad(field, message string) error {
	return &invalidError{Fields: fields{field: {message}}}
}
