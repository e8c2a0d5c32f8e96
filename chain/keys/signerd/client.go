package signerd

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/safehttp"
)

// ClientConfig wires a Client. URL, TLS and KeyOf are required.
type ClientConfig struct {
	URL string      // https://host:port of the Server
	TLS *tls.Config // with a client certificate, see Files
	// KeyOf names the key of an address of ours, as a directory has it: App.KeyOf. The
	// Server takes it as a hint.
	KeyOf func(ctx context.Context, n chain.Network, a chain.Address) (chain.KeyRef, bool, error)
	// Timeout bounds one exchange. Defaults to 15 seconds.
	Timeout time.Duration
}

// Client is a Signer that asks a Server: a chain.ManySigner. Safe for concurrent use.
type Client struct {
	cfg  ClientConfig
	http *http.Client
}

// NewClient checks the configuration. It does no I/O.
func NewClient(cfg ClientConfig) (*Client, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || strings.Trim(u.Path, "/") != "" {
		return nil, errors.New("signerd: URL must be such as https://signer.internal:8443")
	}
	if cfg.TLS == nil || cfg.KeyOf == nil || len(cfg.TLS.Certificates) == 0 && cfg.TLS.GetClientCertificate == nil {
		return nil, errors.New("signerd: ClientConfig: TLS with a client certificate and KeyOf are required")
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 15 * time.Second
	}
	cfg.URL = "https://" + u.Host
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{cfg, safehttp.Client(&http.Client{CheckRedirect: stay, Transport: &http.Transport{
		DialContext:     (&net.Dialer{Timeout: cfg.Timeout}).DialContext,
		TLSClientConfig: cfg.TLS.Clone(), TLSHandshakeTimeout: cfg.Timeout, MaxIdleConnsPerHost: atOnce, IdleConnTimeout: time.Minute,
		MaxResponseHeaderBytes: 16 << 10,
	}}, cfg.Timeout)}, nil
}

// Sign asks for one; see chain.Signer.
func (c *Client) Sign(ctx context.Context, r chain.SignRequest) ([]chain.Signature, error) {
	sigs, errs := c.SignMany(ctx, []chain.SignRequest{r})
	return sigs[0], errs[0]
}

// SignMany asks for each, as many at once as the Server takes; see chain.ManySigner. A
// request that is larger than a Server takes is refused unasked.
func (c *Client) SignMany(ctx context.Context, rs []chain.SignRequest) ([][]chain.Signature, []error) {
	sigs, errs := make([][]chain.Signature, len(rs)), make([]error, len(rs))
	var lot []int
	var q question
	size, said := 0, hints{}
	var silent error // once the signer did not answer it is not asked for the rest
	send := func() {
		if len(lot) > 0 {
			silent = c.exchange(ctx, &q, lot, sigs, errs, silent)
		}
		lot, q, size, said = nil, question{}, 0, hints{}
	}
	for i := range rs {
		one, err := c.hints(ctx, &rs[i])
		if err != nil {
			errs[i] = err
			continue
		}
		wire := toWire(rs[i])
		text, err := json.Marshal(question{Requests: []request{wire}, Hints: one})
		if err != nil {
			errs[i] = fmt.Errorf("signerd: %w", err)
			continue
		}
		if len(text) > maxBody {
			errs[i] = fmt.Errorf("%w: the request has %d bytes, a signer takes %d", chain.ErrRefused, len(text), maxBody)
			continue
		}
		if len(lot) == maxRequests || size+len(text) > maxBody {
			send()
		}
		lot, size = append(lot, i), size+len(text)
		q.Requests = append(q.Requests, wire)
		for _, h := range one {
			at := place{h.Network, h.Address}
			if _, known := said[at]; !known {
				said[at] = h.Key
				q.Hints = append(q.Hints, h)
			}
		}
	}
	send()
	return sigs, errs
}

// hints names the keys of the addresses of ours that a payload pays. The recipient of a
// withdrawal is looked up only where it is paid more than once: what else it gets may be
// change.
func (c *Client) hints(ctx context.Context, r *chain.SignRequest) (out []hint, err error) {
	paid := map[chain.Address]int{}
	for _, o := range r.Unsigned.Outputs {
		paid[o.To]++
	}
	for _, in := range append([]chain.Intent{r.Intent}, r.Also...) {
		if in.Purpose == chain.ForWithdrawal {
			paid[in.To]--
		}
	}
	for _, d := range r.Unsigned.Digests {
		paid[d.From] = 0 // the signer knows its key
	}
	for _, o := range r.Unsigned.Outputs {
		if paid[o.To] <= 0 {
			continue
		}
		paid[o.To] = 0
		ref, ok, err := c.cfg.KeyOf(ctx, r.Intent.Network, o.To)
		if err != nil {
			return nil, fmt.Errorf("signerd: key of an address: %w", err)
		}
		if ok {
			out = append(out, hint{r.Intent.Network, o.To, ref})
		}
	}
	return out, nil
}

// exchange asks a question, and once more where no answer came: the same question has the
// same answer. It returns why no answer came; err is why none came before.
func (c *Client) exchange(ctx context.Context, q *question, lot []int, sigs [][]chain.Signature, errs []error, err error) error {
	var out reply
	var body []byte
	if err == nil {
		body, err = json.Marshal(q)
	}
	if err == nil {
		if out, err = c.ask(ctx, body); err != nil && ctx.Err() == nil {
			out, err = c.ask(ctx, body)
		}
	}
	if err == nil && len(out.Answers) != len(lot) {
		err = errors.New("it gave another number of answers")
	}
	for n, i := range lot {
		if err != nil {
			errs[i] = fmt.Errorf("signerd: no answer from the signer: %w", err)
			continue
		}
		switch a := out.Answers[n]; {
		case a.Refused != "":
			errs[i] = fmt.Errorf("%w: %s", chain.ErrRefused, strings.TrimPrefix(a.Refused, chain.ErrRefused.Error()+": "))
		case a.Failed != "" || len(a.Signatures) == 0:
			errs[i] = fmt.Errorf("signerd: the signer failed: %s", a.Failed)
		default:
			for _, sig := range a.Signatures {
				sigs[i] = append(sigs[i], sig)
			}
		}
	}
	return err
}

// ask does one exchange. Its errors are unknown outcomes.
func (c *Client) ask(ctx context.Context, body []byte) (out reply, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.cfg.URL+signPath, bytes.NewReader(body))
	if err != nil {
		return out, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return out, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return out, err
	case len(text) > maxAnswer:
		return out, errors.New("the answer is too long")
	case resp.StatusCode != http.StatusOK:
		return out, fmt.Errorf("status %d: %.200q", resp.StatusCode, text)
	}
	return out, json.Unmarshal(text, &out)
}
