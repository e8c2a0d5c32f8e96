package manual

import (
	"maps"
	"slices"
)

// codeView is an error code, as the guide to errors lists it.
type codeView struct {
	Code       string
	Statuses   []int
	Means, Do  string
	Operations int // that answer it
}

// meanings are what an error code says, and what the caller does about it.
var meanings = map[string]struct{ means, do string }{
	"authentication_failed":   {"The credentials or the token are missing, wrong or expired.", "Ask for a new token once. If that is refused too, check the client id and secret."},
	"duplicate_external_id":   {"Another wallet of the account has this external_id.", "Use that wallet, or choose another external_id."},
	"forbidden":               {"The token lacks a scope or role. details names them.", "Ask for a token with the scope, or use an application that has the role."},
	"idempotency_in_progress": {"The first request with this Idempotency-Key is still running.", "Send the same request with the same key again, after a moment."},
	"idempotency_mismatch":    {"This Idempotency-Key was used with another body.", "A program error: give each thing that you create a key of its own."},
	"insufficient_balance":    {"The account has less than the request needs, fees included. details says how much is available and how much is asked for.", "Ask for less, or wait until money has come."},
	"invalid_address":         {"The address cannot be paid out to. details says why.", "Ask your customer for another address."},
	"invalid_amount":          {"The amount is not above 0.", "Correct the amount."},
	"invalid_client":          {"The client credentials are missing or not of a client.", "Send the client id and secret, as a Basic header or as form fields."},
	"invalid_currency":        {"The currency is unknown, or not available to the account. details may list those that are.", "Take a code that GET /currencies/ lists."},
	"invalid_grant":           {"The client id or secret is wrong.", "Check both. After several wrong ones the answer is 429 for a while."},
	"invalid_request":         {"The request is malformed. details names every bad field with its messages.", "Correct the fields. Sent again unchanged, it is refused again."},
	"invalid_scope":           {"The application does not have a scope that was asked for.", "Ask for fewer scopes; without scope the token has all that the application has."},
	"invalid_state":           {"The object is in a state in which this cannot be done any more, or not yet. details.current_status says which.", "Read the object and decide anew. Do not repeat the request."},
	"invalid_url":             {"The URL for webhooks cannot be used: not https, malformed, or private.", "Give a public https URL."},
	"maintenance":             {"Writes are closed for a while; reads go on.", "Send the same request again after Retry-After."},
	"not_found":               {"There is no such object in your account.", "Check the id. Objects of other accounts are not found either."},
	"permission_denied":       {"The token lacks a scope or role, or the caller may not decide about his own request. details names what is required.", "Ask for a token with the scope, or use an application that has the role."},
	"rate_limit_exceeded":     {"Too many requests. Nothing was done.", "Send the same request again after Retry-After seconds."},
	"server_error":            {"The service could not finish. After a request that changes something the outcome is unknown.", "Send the same request with the same Idempotency-Key again. Without a key look first whether it took effect."},
	"service_unavailable":     {"The network's fee cannot be estimated now. Nothing was created.", "Send the same request again later."},
	"unauthorized":            {"The credentials or the token are missing, wrong or expired.", "Ask for a new token once. If that is refused too, check the client id and secret."},
	"unsupported_grant_type":  {"Only client_credentials is supported.", "Send grant_type=client_credentials."},
	"wallet_not_empty":        {"The wallet still has money, or some is on its way.", "Move the balances to the master account first."},
}

// codes are those that the interface can answer, in order of the alphabet.
func (m *Manual) codes() []codeView {
	byCode := map[string]*codeView{}
	for _, g := range m.of.Groups {
		for _, op := range g.Operations {
			counted := map[string]bool{}
			for _, f := range op.Failures {
				for _, code := range f.Codes {
					v := byCode[code]
					if v == nil {
						v = &codeView{Code: code, Means: meanings[code].means, Do: meanings[code].do}
						byCode[code] = v
					}
					if !slices.Contains(v.Statuses, f.Status) {
						v.Statuses = append(v.Statuses, f.Status)
					}
					if !counted[code] {
						v.Operations, counted[code] = v.Operations+1, true
					}
				}
			}
		}
	}
	var out []codeView
	for _, code := range slices.Sorted(maps.Keys(byCode)) {
		v := byCode[code]
		slices.Sort(v.Statuses)
		out = append(out, *v)
	}
	return out
}
