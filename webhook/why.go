package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
)

// Why a delivery failed, as merchants are told.
const (
	whyAnswer      = "The receiver did not answer with a status of 200 to 299."
	whyNowhere     = "The URL does not lead to a public address."
	whyLate        = "The receiver did not answer in time."
	whyCertificate = "The receiver's certificate is not valid."
	whyUnreached   = "The receiver could not be reached."
)

// Why says why a delivery failed in words of ours: a transport's error names addresses. A
// name that does not exist and one that leads to a private address, which only our own
// resolver may know, look the same: resolved is false for both.
func (r *Result) Why() (why string, resolved bool) {
	var (
		name        *net.DNSError
		certificate *tls.CertificateVerificationError
	)
	switch {
	case r.Status != 0:
		return whyAnswer, true
	case errors.Is(r.Err, ErrForbiddenAddress) || errors.As(r.Err, &name):
		return whyNowhere, false
	case errors.Is(r.Err, context.DeadlineExceeded):
		return whyLate, true
	case errors.As(r.Err, &certificate):
		return whyCertificate, true
	}
	return whyUnreached, true
}

// How Event.Error begins where it is not an attempt that failed. What stands behind names no
// address.
const (
	notTried = "webhook: not tried: "
	givenUp  = "webhook: given up: "
)

// why is Result.Why of what is stored, which is for operators and names addresses.
func (e *Event) why() string {
	has := func(part string) bool { return strings.Contains(e.Error, part) }
	switch {
	case e.Error == "":
		return ""
	case strings.HasPrefix(e.Error, notTried), strings.HasPrefix(e.Error, givenUp):
		return strings.TrimPrefix(e.Error, "webhook: ")
	case e.Response != 0:
		return whyAnswer
	case has(ErrForbiddenAddress.Error()), has("lookup "):
		return whyNowhere
	case has(context.DeadlineExceeded.Error()), has("i/o timeout"):
		return whyLate
	case has("x509: "):
		return whyCertificate
	}
	return whyUnreached
}
