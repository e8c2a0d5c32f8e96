package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/chain/refill"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/refund"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// answer is what a failed request gets, whatever the style.
type answer struct {
	Status  int
	Code    string
	Message string
	Details map[string]any
}

// failure is an answer that an endpoint gives itself.
type failure struct{ answer }

func (e *failure) Error() string { return "httpapi: " + e.Code + ": " + e.Message }

func fail(status int, code, message string, details map[string]any) error {
	return &failure{answer{status, code, message, details}}
}

// Fail is an answer in the interface's error form, for routes of a host.
func Fail(status int, code, message string, details map[string]any) error {
	return fail(status, code, message, details)
}

// Invalid is a request with one bad field, for routes of a host.
func Invalid(field, message string) error { return bad(field, message) }

// row is one line of the table of errors: what a room's error comes to on the
// wire. The first row that matches counts.
type row struct {
	is      func(error) bool
	status  int
	code    string
	message string // "" = made of the error by details
	details func(error) map[string]any
}

// table is the only place where errors become answers. What is not in it is an
// internal error: its text goes to the log alone.
var table = []row{
	{is: is(errTooLarge), status: http.StatusRequestEntityTooLarge, code: "invalid_request", message: "The request body is too large."},
	{is: as[*tooLongError], status: http.StatusRequestEntityTooLarge, code: "invalid_request", message: "The request has more entries than one may have.", details: longDetails},
	{is: is(errSlow), status: http.StatusRequestTimeout, code: "invalid_request", message: "The request body did not come in time."},
	{is: is(errCut), status: http.StatusBadRequest, code: "invalid_request", message: "The request body could not be read to its end."},
	{is: as[*errMedia], status: http.StatusUnsupportedMediaType, code: "invalid_request", message: "The Content-Type is not supported.", details: mediaDetails},
	{is: func(err error) bool { return invalid(err) != nil }, status: http.StatusBadRequest, code: "invalid_request", message: "The request is invalid.", details: fieldDetails},

	{is: is(storage.ErrIdempotencyMismatch), status: http.StatusUnprocessableEntity, code: "idempotency_mismatch", message: "The Idempotency-Key was used for another request."},
	{is: is(storage.ErrIdempotencyKey), status: http.StatusBadRequest, code: "invalid_request", message: "The idempotency key is too long, or not text."},
	{is: is(storage.ErrInProgress), status: http.StatusConflict, code: "idempotency_in_progress", message: "A request with this Idempotency-Key is still running."},

	{is: is(payment.ErrNotFound), status: http.StatusNotFound, code: "not_found", message: "Not found.", details: paymentMissing},
	{is: as[*payment.CurrencyError], status: http.StatusUnprocessableEntity, code: "invalid_currency", message: "The currency is not supported.", details: supported},
	{is: as[*payment.StateError], status: http.StatusConflict, code: "invalid_state", message: "The payment's state does not allow it.", details: paymentState},

	{is: is(payment.ErrNotUpgraded), status: http.StatusServiceUnavailable, code: "server_error", message: "The service is being upgraded: permanent addresses cannot be made yet. Nothing was done, send it again."},

	{is: is(withdrawal.ErrNotFound), status: http.StatusNotFound, code: "not_found", message: "The withdrawal does not exist."},
	{is: as[*withdrawal.StateError], status: http.StatusConflict, code: "invalid_state", message: "The withdrawal's state does not allow it.", details: withdrawalState},
	{is: is(withdrawal.ErrOwnRequest), status: http.StatusForbidden, code: "permission_denied", message: "Who asked for a withdrawal may not decide about it."},
	{is: is(withdrawal.ErrAltered), status: http.StatusConflict, code: "invalid_state", message: "The withdrawal's records contradict each other. Nothing was done, an operator has to look."},
	{is: as[*withdrawal.InsufficientError], status: http.StatusBadRequest, code: "insufficient_balance", message: "The balance is insufficient.", details: short},
	{is: is(withdrawal.ErrFee), status: http.StatusInternalServerError, code: "service_unavailable", message: "The network fee cannot be estimated now, try again later."},
	{is: is(withdrawal.ErrHandingOver), status: http.StatusServiceUnavailable, code: "service_unavailable", message: "The withdrawal is being handed over at this moment, ask again in a minute."},

	{is: is(refund.ErrNotFound), status: http.StatusNotFound, code: "not_found", message: "The refund does not exist."},
	{is: is(refund.ErrNoClaim), status: http.StatusNotFound, code: "not_found", message: "The link does not exist, was used, or has ended."},
	{is: is(refund.ErrNotNow), status: http.StatusConflict, code: "invalid_state", message: "The refund cannot be paid at this moment. The link stays valid: try again later, or ask the merchant."},
	{is: as[*refund.StateError], status: http.StatusConflict, code: "invalid_state", message: "The state does not allow it.", details: refundState},
	{is: is(refund.ErrAltered), status: http.StatusConflict, code: "invalid_state", message: "The refund's record was edited. Nothing was done, an operator has to look."},
	{is: is(refund.ErrNotUpgraded), status: http.StatusServiceUnavailable, code: "server_error", message: "The service is being upgraded: refunds cannot be made yet. Nothing was done, send it again."},

	{is: is(refill.ErrNotFound), status: http.StatusNotFound, code: "not_found", message: "The proposal does not exist."},
	{is: as[*refill.StateError], status: http.StatusConflict, code: "invalid_state", message: "The state of a proposal does not allow it.", details: proposalState},
	{is: is(refill.ErrAltered), status: http.StatusConflict, code: "invalid_state", message: "The proposal's record was edited. Nothing was done, an operator has to look."},
	{is: is(refill.ErrUnable), status: http.StatusConflict, code: "invalid_state", message: "No refill can be proposed of this currency.", details: why},
	{is: is(cryptopay.ErrUpgrade), status: http.StatusServiceUnavailable, code: "server_error", message: "The service is being upgraded: this cannot be done yet. Nothing was done, send it again."},
	{is: is(chain.ErrShort), status: http.StatusConflict, code: "invalid_state", message: "The address does not hold enough.", details: why},
	{is: is(chain.ErrTooDear), status: http.StatusConflict, code: "invalid_state", message: "The blockchain's fee is above what is allowed.", details: why},
	{is: is(chain.ErrOccupied), status: http.StatusConflict, code: "invalid_state", message: "A transaction of the address waits.", details: why},

	{is: is(outgoing.ErrNoIntent), status: http.StatusNotFound, code: "not_found", message: "Nothing is sent under this id on this blockchain."},
	{is: is(outgoing.ErrHelp), status: http.StatusConflict, code: "invalid_state", message: "It cannot be helped in this way.", details: why},
	{is: is(incoming.ErrNotOurs), status: http.StatusNotFound, code: "not_found", message: "The address is none of ours on this blockchain."},
	{is: is(incoming.ErrAgain), status: http.StatusConflict, code: "invalid_state", message: "It cannot be read again so.", details: why},
	{is: is(incoming.ErrHalted), status: http.StatusConflict, code: "invalid_state", message: "The blockchain is halted after a fork: resume it first."},
	{is: is(incoming.ErrForked), status: http.StatusServiceUnavailable, code: "server_error", message: "The blockchain forks at this moment. Nothing was done, send it again."},
	{is: is(treasury.ErrNoSweep), status: http.StatusNotFound, code: "not_found", message: "The sweep does not exist."},
	{is: is(treasury.ErrNotWaiting), status: http.StatusConflict, code: "invalid_state", message: "The sweep does not wait.", details: why},
	{is: is(treasury.ErrEnded), status: http.StatusConflict, code: "invalid_state", message: "The transaction has ended.", details: why},
	{is: as[*treasury.WaitError], status: http.StatusConflict, code: "invalid_state", message: "The operator's own coins do not bear it.", details: why},

	{is: is(wallet.ErrNotFound), status: http.StatusNotFound, code: "not_found", message: "The wallet does not exist."},
	{is: is(wallet.ErrNoTenant), status: http.StatusNotFound, code: "not_found", message: "The account does not exist."},
	{is: is(wallet.ErrNotEmpty), status: http.StatusConflict, code: "wallet_not_empty", message: "The wallet has a balance or something pending."},
	{is: is(wallet.ErrExternalID), status: http.StatusBadRequest, code: "duplicate_external_id", message: "The external_id is taken.", details: only("external_id", "is taken by another wallet")},
	{is: is(wallet.ErrTenantExists), status: http.StatusConflict, code: "invalid_request", message: "The account exists."},
	{is: as[*wallet.InsufficientError], status: http.StatusBadRequest, code: "insufficient_balance", message: "The balance is insufficient.", details: short},

	{is: as[*chain.AddressError], status: http.StatusBadRequest, code: "invalid_address", message: "The address is invalid.", details: address},
	{is: is(rates.ErrUnavailable), status: http.StatusServiceUnavailable, code: "server_error", message: "There is no exchange rate now, try again later."},
	{is: is(chain.ErrCurrency), status: http.StatusBadRequest, code: "invalid_currency", message: "The currency is not supported.", details: only("currency", "is not supported")},

	{is: is(webhook.ErrURL), status: http.StatusBadRequest, code: "invalid_url", message: "The callback URL is not valid.", details: urlDetails},
	{is: is(webhook.ErrSecret), status: http.StatusBadRequest, code: "invalid_request", message: "The request is invalid.", details: only("webhook_secret", "must have 16 to 128 printable characters")},
	{is: is(webhook.ErrEventType), status: http.StatusBadRequest, code: "invalid_request", message: "The request is invalid.", details: only("event_type", "is unknown; known are "+strings.Join(webhook.EventTypes(), ", "))},

	{is: is(auth.ErrNotFound), status: http.StatusNotFound, code: "not_found", message: "The application does not exist."},
	{is: is(storage.ErrUnknown), status: http.StatusServiceUnavailable, code: "server_error", message: "It is not known whether the request took effect. Send it again with the same Idempotency-Key, or look."},
	{is: is(storage.ErrConflict), status: http.StatusServiceUnavailable, code: "server_error", message: "Others kept changing the same at this moment. Nothing was done, send it again."},
	{is: is(incoming.ErrNoAddress), status: http.StatusServiceUnavailable, code: "server_error", message: "No address is ready on this blockchain now. Nothing was done, send it again."},
	{is: is(cryptopay.ErrNotReady), status: http.StatusServiceUnavailable, code: "server_error", message: "The blockchain cannot be read now. Nothing was done, send it again."},
	{is: is(chain.ErrNode), status: http.StatusServiceUnavailable, code: "server_error", message: "The blockchain's node does not answer now, try again later."},
	{is: is(context.DeadlineExceeded), status: http.StatusServiceUnavailable, code: "server_error", message: "The request took too long. Send it again with the same Idempotency-Key, or look."},
}

// internal is the answer to everything else.
var internal = answer{Status: http.StatusInternalServerError, Code: "server_error", Message: "Something went wrong on our side."}

// leftEarly is the answer to who ended the connection before his request.
var leftEarly = answer{Status: http.StatusServiceUnavailable, Code: "server_error", Message: "The connection ended before the request did."}

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func as[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}

// why is the reason of a refusal, for operators.
func why(err error) map[string]any { return map[string]any{"reason": err.Error()} }

// toAnswer turns an error into an answer; known is false for an internal one.
func toAnswer(err error) (a answer, known bool) {
	var own *failure
	if errors.As(err, &own) {
		return own.answer, true
	}
	for _, r := range table {
		if r.is(err) {
			a := answer{Status: r.status, Code: r.code, Message: r.message}
			if r.details != nil {
				a.Details = r.details(err)
			}
			return a, true
		}
	}
	return internal, false
}

func only(field, message string) func(error) map[string]any {
	return func(error) map[string]any { return map[string]any{field: []string{message}} }
}

func mediaDetails(err error) map[string]any {
	var m *errMedia
	errors.As(err, &m)
	return map[string]any{"content_type": []string{"must be " + m.want}}
}

func longDetails(err error) map[string]any {
	var e *tooLongError
	errors.As(err, &e)
	return fieldDetails(&invalidError{Fields: e.Fields})
}

func fieldDetails(err error) map[string]any {
	out := map[string]any{}
	for field, messages := range invalid(err) {
		out[field] = messages
	}
	return out
}

func paymentMissing(err error) map[string]any {
	var e *payment.NotFoundError
	if !errors.As(err, &e) {
		return nil
	}
	return map[string]any{e.Field: e.ID}
}

func paymentState(err error) map[string]any {
	var e *payment.StateError
	errors.As(err, &e)
	return map[string]any{"current_status": shownStatus(e.Status), "reason": e.Reason}
}

func refundState(err error) map[string]any {
	var e *refund.StateError
	errors.As(err, &e)
	return map[string]any{"current_status": e.Status, "reason": e.Reason}
}

func proposalState(err error) map[string]any {
	var e *refill.StateError
	errors.As(err, &e)
	return map[string]any{"current_status": e.Current, "proposal_id": e.ID}
}

func withdrawalState(err error) map[string]any {
	var e *withdrawal.StateError
	errors.As(err, &e)
	return map[string]any{"current_status": e.Current}
}

func supported(err error) map[string]any {
	var e *payment.CurrencyError
	errors.As(err, &e)
	return map[string]any{"currency": []string{"is not supported"}, "supported_currencies": e.Supported}
}

func short(err error) map[string]any {
	var (
		w *withdrawal.InsufficientError
		t *wallet.InsufficientError
	)
	if errors.As(err, &w) {
		return shortOf(w.Available, w.Requested, w.Currency)
	}
	errors.As(err, &t)
	return shortOf(t.Available, t.Requested, t.Currency)
}

func shortOf(available, requested decimal.Decimal, currency string) map[string]any {
	return map[string]any{
		"available": ledger.FixedString(available, cryptoPlaces), "requested": ledger.FixedString(requested, cryptoPlaces), "currency": currency,
	}
}

func address(err error) map[string]any {
	var e *chain.AddressError
	errors.As(err, &e)
	return map[string]any{"address": []string{e.Reason}}
}

func urlDetails(err error) map[string]any {
	return map[string]any{"callback_url": []string{strings.TrimPrefix(err.Error(), webhook.ErrURL.Error()+": ")}}
}

// cryptoPlaces and fiatPlaces are how many places amounts are shown with.
const (
	cryptoPlaces = 8
	fiatPlaces   = 2
)
