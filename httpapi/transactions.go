package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/report"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// transactionView is one line of the unified history.
type transactionView struct {
	ID            string          `json:"id" format:"uuid"`
	Type          string          `json:"type" rule:"enum=payment|withdrawal"`
	TransactionID string          `json:"transaction_id,omitempty" format:"uuid" about:"Of payments."`
	WithdrawalID  string          `json:"withdrawal_id,omitempty" format:"uuid" about:"Of withdrawals."`
	Amount        string          `json:"amount" format:"decimal" about:"What was received, or is due before anything was; what was requested of a withdrawal."`
	Currency      string          `json:"currency"`
	Status        string          `json:"status" rule:"enum=waiting|confirming|confirmed|sending|completed|expired|failed|pending|processing|cancelled"`
	CreatedAt     string          `json:"created_at" format:"date-time"`
	UpdatedAt     string          `json:"updated_at" format:"date-time"`
	Reference     *string         `json:"reference" about:"order_id or custom_id, null where none was given."`
	Address       string          `json:"blockchain_address"`
	Hash          *string         `json:"transaction_hash"`
	Fee           string          `json:"fee_amount" format:"decimal"`
	Net           string          `json:"net_amount" format:"decimal" about:"fee_amount + net_amount = amount"`
	Metadata      json.RawMessage `json:"metadata" about:"Payments: order_id, confirmations. Withdrawals: custom_id, network_fee."`
}

var typeRaw = reflect.TypeFor[json.RawMessage]()

func viewTransaction(t *report.Transaction) transactionView {
	v := transactionView{
		ID: t.ID, Type: t.Kind, Amount: crypto(t.Amount, t.Scale), Currency: string(t.Currency), Status: t.Status,
		CreatedAt: stamp(t.CreatedAt), UpdatedAt: stamp(t.UpdatedAt), Reference: orNull(t.Reference), Address: t.Address,
		Hash: orNull(t.TxHash), Fee: crypto(t.Fee, t.Scale), Net: crypto(t.Net, t.Scale), Metadata: t.Metadata,
	}
	if t.Kind == storage.ActivityWithdrawal {
		v.WithdrawalID = t.ID
	} else {
		v.TransactionID = t.ID
	}
	if len(v.Metadata) == 0 || string(v.Metadata) == "null" {
		v.Metadata = json.RawMessage("{}")
	}
	return v
}

type transactionsInput struct {
	Page     int    `query:"page" rule:"min=1" default:"1"`
	PageSize int    `query:"page_size" rule:"min=1,max=100" default:"20"`
	Type     string `query:"type" rule:"enum=payment|withdrawal"`
	Status   string `query:"status" rule:"enum=waiting|confirming|confirmed|sending|completed|expired|failed|pending|processing|cancelled"`
	Currency string `query:"currency"`
	DateFrom string `query:"date_from" about:"Created at or after it: a datetime, or a date."`
	DateTo   string `query:"date_to" about:"Created at or before it: a datetime, or a date, which is meant whole."`
}

// filter reads what a history is filtered by; what is wrong with it is all told
// at once.
func (h *Handler) filter(kind, status, currency, from, to string) (report.Filter, error) {
	f := report.Filter{Type: kind, Status: status, Currency: currency}
	var wrong fields
	f.From, f.Before, wrong = period(from, to)
	wrong.merge(h.app.Reports.Check(f))
	if len(wrong) > 0 {
		return f, &invalidError{Fields: wrong}
	}
	return f, nil
}

// period reads date_from and date_to, which are read as the dates of lists of
// withdrawals are.
func period(from, to string) (start, before time.Time, wrong fields) {
	start, _, err := withdrawal.DateRange(from, "")
	if err != nil {
		wrong.add("date_from", "must be a date or a datetime")
	}
	if _, before, err = withdrawal.DateRange("", to); err != nil {
		wrong.add("date_to", "must be a date or a datetime")
	}
	return start, before, wrong
}

type transactionsView struct {
	Count    int64             `json:"count"`
	Next     *string           `json:"next" format:"uri-reference"`
	Previous *string           `json:"previous" format:"uri-reference"`
	Results  []transactionView `json:"results"`
}

func (h *Handler) listTransactions(ctx context.Context, c *Call, in transactionsInput) (transactionsView, error) {
	f, err := h.filter(in.Type, in.Status, in.Currency, in.DateFrom, in.DateTo)
	if err != nil {
		return transactionsView{}, err
	}
	f.Page, f.PageSize = in.Page, in.PageSize
	list, count, err := h.app.Reports.Transactions(ctx, c.Tenant(), f)
	view := transactionsView{Count: count, Results: make([]transactionView, len(list))}
	for i := range list {
		view.Results[i] = viewTransaction(&list[i])
	}
	last := int((count + int64(in.PageSize) - 1) / int64(in.PageSize))
	if in.Page < last {
		view.Next = h.link(c.Request, in.Page+1)
	}
	if in.Page > 1 {
		view.Previous = h.link(c.Request, min(in.Page-1, max(1, last)))
	}
	return view, err
}

func (h *Handler) checkTransactions(_ context.Context, _ *Call, in transactionsInput) error {
	_, err := h.filter(in.Type, in.Status, in.Currency, in.DateFrom, in.DateTo)
	return err
}

// link is another page of a request: an absolute address where there is a BaseURL, else a
// path, whatever prefix was stripped on the way here. The Host header of a request says
// nothing: a proxy may have taken it from anybody.
func (h *Handler) link(r *http.Request, page int) *string {
	query := r.URL.Query()
	query.Set("page", strconv.Itoa(page))
	s := h.address(r) + "?" + query.Encode()
	return &s
}

// address is the request's own address without its query: BaseURL and the path
// below the handler, else the path of the request line.
func (h *Handler) address(r *http.Request) string {
	path := r.URL.EscapedPath()
	if h.o.BaseURL != "" {
		return strings.TrimRight(h.o.BaseURL, "/") + path
	}
	if asked, err := url.ParseRequestURI(r.RequestURI); err == nil && strings.HasSuffix(asked.EscapedPath(), path) {
		path = asked.EscapedPath() // before a host's http.StripPrefix
	}
	return "/" + strings.TrimLeft(path, "/") // two slashes would begin a host
}

type statsInput struct {
	DateFrom string `query:"date_from" about:"Defaults to 30 days before date_to."`
	DateTo   string `query:"date_to" about:"Defaults to now."`
	Currency string `query:"currency"`
}

type periodView struct {
	DateFrom string `json:"date_from" format:"date-time"`
	DateTo   string `json:"date_to" format:"date-time"`
}

// statsView counts and values what was created in a period. Volumes are of money
// that came or goes: what was only asked for, failed or was cancelled has none.
type statsView struct {
	Period      periodView      `json:"period"`
	Payments    sideView        `json:"payments"`
	Withdrawals sideView        `json:"withdrawals"`
	ByCurrency  []currencyStats `json:"by_currency"`
}

type sideView struct {
	Count    int64                 `json:"count"`
	Volume   *string               `json:"volume_usd" format:"decimal" about:"Payments at the rate of their creation, withdrawals at the present one; null while a currency has no rate."`
	ByStatus map[string]volumeView `json:"by_status" about:"By status; those that none has are left out."`
}

type volumeView struct {
	Count  int64   `json:"count"`
	Volume *string `json:"volume" format:"decimal" about:"In USD, as volume_usd."`
}

type currencyStats struct {
	Currency    string    `json:"currency"`
	Count       int64     `json:"count"`
	Volume      string    `json:"volume" format:"decimal" about:"In the currency, payments and withdrawals together."`
	Payments    coinsView `json:"payments"`
	Withdrawals coinsView `json:"withdrawals"`
}

type coinsView struct {
	Count     int64   `json:"count"`
	Volume    string  `json:"volume" format:"decimal" about:"In the currency."`
	VolumeUSD *string `json:"volume_usd" format:"decimal"`
}

func (h *Handler) transactionStats(ctx context.Context, c *Call, in statsInput) (statsView, error) {
	f, err := h.filter("", "", in.Currency, in.DateFrom, in.DateTo)
	if err != nil {
		return statsView{}, err
	}
	s, err := h.app.Reports.Stats(ctx, c.Tenant(), report.StatsFilter{From: f.From, Before: f.Before, Currency: f.Currency})
	if err != nil {
		return statsView{}, err
	}
	view := statsView{
		Period:   periodView{stamp(s.From), stamp(s.Before.Add(-time.Millisecond))},
		Payments: viewSide(&s.Payments), Withdrawals: viewSide(&s.Withdrawals), ByCurrency: make([]currencyStats, len(s.Currencies)),
	}
	for i := range s.Currencies {
		if view.ByCurrency[i], err = viewCurrencyStats(&s.Currencies[i]); err != nil {
			return view, err
		}
	}
	return view, nil
}

func (h *Handler) checkStats(_ context.Context, _ *Call, in statsInput) error {
	_, err := h.filter("", "", in.Currency, in.DateFrom, in.DateTo)
	return err
}

func viewSide(s *report.StatsSide) sideView {
	view := sideView{Count: s.Count, Volume: dollars(s.Volume), ByStatus: make(map[string]volumeView, len(s.ByStatus))}
	for status, v := range s.ByStatus {
		view.ByStatus[status] = volumeView{v.Count, dollars(v)}
	}
	return view
}

func viewCurrencyStats(s *report.CurrencyStats) (currencyStats, error) {
	both, err := s.Payments.Amount.Add(s.Withdrawals.Amount)
	coins := func(v *report.CoinVolume) coinsView {
		return coinsView{v.Count, crypto(v.Amount, s.Scale), dollars(v.Volume)}
	}
	return currencyStats{
		Currency: s.Currency, Count: s.Payments.Count + s.Withdrawals.Count, Volume: crypto(both, s.Scale),
		Payments: coins(&s.Payments), Withdrawals: coins(&s.Withdrawals),
	}, err
}

type exportInput struct {
	Type     string `json:"type" rule:"enum=payment|withdrawal"`
	Status   string `json:"status" rule:"enum=waiting|confirming|confirmed|sending|completed|expired|failed|pending|processing|cancelled"`
	Currency string `json:"currency"`
	DateFrom string `json:"date_from" about:"Created at or after it: a datetime, or a date."`
	DateTo   string `json:"date_to" about:"Created at or before it: a datetime, or a date, which is meant whole."`
	Format   string `json:"format" rule:"enum=csv|json" default:"csv" about:"csv: RFC 4180 with a line of names; json: an array of the list's items."`
}

func (h *Handler) exportTransactions(ctx context.Context, c *Call, in exportInput) (*stream, error) {
	f, err := h.filter(in.Type, in.Status, in.Currency, in.DateFrom, in.DateTo)
	if err != nil {
		return nil, err
	}
	name := "transactions-" + c.Now.UTC().Format("20060102T150405Z") + "." + in.Format
	write, media := writeCSV, "text/csv; charset=utf-8; header=present"
	if in.Format == "json" {
		write, media = writeJSON, "application/json"
	}
	return &stream{contentType: media, filename: name, write: func(ctx context.Context, w io.Writer) error {
		list, err := h.app.Reports.Export(ctx, c.Tenant(), f)
		if err != nil {
			return err
		}
		out := bufio.NewWriterSize(w, exportBuffer)
		if err := write(out, list); err != nil {
			return err
		}
		return out.Flush()
	}}, nil
}

func (h *Handler) checkExport(_ context.Context, _ *Call, in exportInput) error {
	_, err := h.filter(in.Type, in.Status, in.Currency, in.DateFrom, in.DateTo)
	return err
}

const exportBuffer = 32 << 10

// dollars shows a volume in USD with 2 places, rounded down; null = no rate.
func dollars(v report.Volume) *string {
	if v.USD == nil {
		return nil
	}
	s := ledger.FixedString(*v.USD, fiatPlaces)
	return &s
}
