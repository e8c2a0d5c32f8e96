package httpapi

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// failed lists every error answer of a route: its own and those of its kind.
func (d *reference) failed(r *Route) []*answerDoc {
	byStatus := map[int][]string{}
	for _, f := range slices.Concat(r.Errors, commonFailures(r)) {
		code := f.Code
		if r.Style == Classic {
			code = classic(answer{Status: f.Status, Code: f.Code})
		}
		if !slices.Contains(byStatus[f.Status], code) {
			byStatus[f.Status] = append(byStatus[f.Status], code)
		}
	}
	var out []*answerDoc
	for _, status := range slices.Sorted(maps.Keys(byStatus)) {
		codes := byStatus[status]
		slices.Sort(codes)
		out = append(out, d.failure(r, status, codes))
	}
	return out
}

// commonFailures are the failures of every route of a kind.
func commonFailures(r *Route) []Failure {
	out := []Failure{{http.StatusBadRequest, "invalid_request"}, {http.StatusInternalServerError, "server_error"}, {http.StatusServiceUnavailable, "server_error"}}
	if r.Access == Bearer || r.Access == BearerOrKey {
		out = append(out, Failure{http.StatusUnauthorized, "authentication_failed"}, Failure{http.StatusForbidden, "permission_denied"})
	}
	if r.Limit != LimitNone {
		out = append(out, Failure{http.StatusTooManyRequests, "rate_limit_exceeded"})
	}
	if r.Method != http.MethodGet {
		out = append(out, Failure{http.StatusRequestTimeout, "invalid_request"}, Failure{http.StatusRequestEntityTooLarge, "invalid_request"}, Failure{http.StatusUnsupportedMediaType, "invalid_request"})
	}
	if r.Writes {
		out = append(out, Failure{http.StatusServiceUnavailable, "maintenance"})
	}
	if r.Once {
		out = append(out, inProgress, mismatch)
	}
	return out
}

// failure is the component of one error answer.
func (d *reference) failure(r *Route, status int, codes []string) *answerDoc {
	headers := headersOf(r, status)
	name := strconv.Itoa(status)
	if r.Limit == LimitNone {
		name = "unlimited." + name
	}
	if r.Style != Standard && r.Style != Classic {
		name = string(r.Style) + "." + name
	}
	if r.Style != Detail {
		name += "." + strings.Join(codes, ".")
	}
	if made := d.failures[name]; made != nil {
		return made
	}
	made := &answerDoc{Name: name, Status: status, About: http.StatusText(status) + ".", Headers: headers, Codes: codes}
	var body *schema
	switch r.Style {
	case OAuth:
		body = d.component("OAuthError", func() *schema {
			return fieldsOf("error", &schema{Types: "string"}, "error_description", &schema{Types: "string"})
		}, "error")
	case Detail:
		body, made.Codes = d.component("DetailError", func() *schema { return fieldsOf("detail", &schema{Types: "string"}) }, "detail"), nil
	default:
		for _, code := range codes {
			one := d.errorOf(code)
			switch {
			case body == nil:
				body = one
			case body.Ref != "":
				body = &schema{AnyOf: []*schema{body, one}}
			default:
				body.AnyOf = append(body.AnyOf, one)
			}
		}
	}
	made.Contents = []contentDoc{{"application/json", body}}
	d.failures[name] = made
	return made
}

// component makes a named schema once.
func (d *reference) component(name string, build func() *schema, required ...string) *schema {
	if d.byName[name] == nil {
		made := build()
		made.Required = required
		d.byName[name] = made
	}
	return component(name)
}

// fieldsOf is an object of members given as name, schema, name, schema …
func fieldsOf(pairs ...any) *schema {
	out := &schema{Types: "object", Properties: map[string]*schema{}}
	for i := 0; i < len(pairs); i += 2 {
		name := pairs[i].(string)
		out.order, out.Properties[name] = append(out.order, name), pairs[i+1].(*schema)
	}
	return out
}

// errorOf is the body of one error code of the standard form.
func (d *reference) errorOf(code string) *schema {
	name := "Error." + code
	return d.component(name, func() *schema {
		details := d.component("Details."+detailsName(code), func() *schema { return detailsOf(code) })
		inside := fieldsOf("code", &schema{Types: "string", Const: code}, "message", &schema{Types: "string"}, "details", details)
		inside.Required = []string{"code", "message"}
		return fieldsOf("error", inside)
	}, "error")
}

func detailsName(code string) string {
	if detailed[code] == nil {
		return "other"
	}
	return code
}

// detailsOf is what an error code's details hold. An object without properties
// promises nothing about its members.
func detailsOf(code string) *schema {
	build := detailed[code]
	if build == nil {
		return &schema{Types: "object"}
	}
	return build()
}

func listOfTexts() *schema { return &schema{Types: "array", Items: &schema{Types: "string"}} }

func textSchema() *schema { return &schema{Types: "string"} }

// detailed are the details of the codes that the interface describes.
var detailed = map[string]func() *schema{
	"invalid_request": func() *schema {
		return &schema{Types: "object", Extra: listOfTexts(), About: "Field name to messages: every bad field."}
	},
	"permission_denied": func() *schema {
		return fieldsOf("required_scopes", listOfTexts(), "token_scopes", listOfTexts(), "required_roles", listOfTexts())
	},
	"forbidden": func() *schema {
		return fieldsOf("required_scopes", listOfTexts(), "token_scopes", listOfTexts(), "required_roles", listOfTexts())
	},
	"authentication_failed": func() *schema { return fieldsOf("hint", textSchema()) },
	"unauthorized":          func() *schema { return fieldsOf("hint", textSchema()) },
	"rate_limit_exceeded": func() *schema {
		s := fieldsOf("retry_after", &schema{Types: "integer", About: "seconds"})
		s.Required = s.order
		return s
	},
	"insufficient_balance": func() *schema {
		amount := &schema{Types: "string", Format: "decimal", Pattern: decimalPattern}
		s := fieldsOf("available", amount, "requested", amount, "currency", textSchema())
		s.Required = s.order
		return s
	},
	"invalid_currency": func() *schema { return fieldsOf("currency", listOfTexts(), "supported_currencies", listOfTexts()) },
	"invalid_address":  func() *schema { return fieldsOf("address", listOfTexts()) },
	"invalid_url":      func() *schema { return fieldsOf("callback_url", listOfTexts(), "webhook_url", listOfTexts()) },
	"server_error":     func() *schema { return fieldsOf("request_id", textSchema()) },
}
