package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// early is how long before its end a token is renewed.
const early = 60 * time.Second

// tokens keeps the access token that all calls share.
type tokens struct {
	mu      sync.Mutex
	value   string
	until   time.Time     // not used from then on
	renewal chan struct{} // closed when the one that is under way has ended
}

// token is a valid access token. Of many callers one asks for it, the others
// wait for him; where his context ends, another one asks.
func (c *Client) token(ctx context.Context) (string, error) {
	t := &c.tokens
	for {
		t.mu.Lock()
		if t.value != "" && c.o.Now().Before(t.until) {
			defer t.mu.Unlock()
			return t.value, nil
		}
		if t.renewal == nil {
			t.renewal = make(chan struct{})
			t.mu.Unlock()
			return c.renew(ctx)
		}
		underWay := t.renewal
		t.mu.Unlock()
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-underWay:
		}
	}
}

// renew asks for a token and lets those who wait go on, whatever comes of it.
func (c *Client) renew(ctx context.Context) (value string, err error) {
	var until time.Time
	t := &c.tokens
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if err == nil {
			t.value, t.until = value, until
		}
		close(t.renewal)
		t.renewal = nil
	}()
	for attempt := 1; ; attempt++ {
		asked := c.o.Now()
		var life time.Duration
		value, life, err = c.requestToken(ctx)
		if err == nil {
			until = asked.Add(max(life-early, life/2)) // a short-lived one is used for half its life
			return value, nil
		}
		after, ok := c.retry(ctx, err, true, attempt)
		if !ok {
			return "", err
		}
		if err = c.o.Wait(ctx, after); err != nil {
			return "", err
		}
	}
}

func (c *Client) requestToken(ctx context.Context) (string, time.Duration, error) {
	form := url.Values{"grant_type": {"client_credentials"}}
	if c.o.Scope != "" {
		form.Set("scope", c.o.Scope)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/o/token/", strings.NewReader(form.Encode()))
	if err != nil {
		return "", 0, fmt.Errorf("client: %w", err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(url.QueryEscape(c.o.ClientID), url.QueryEscape(c.o.ClientSecret))
	raw, err := c.exchange(r)
	if err != nil {
		return "", 0, err
	}
	var answer struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"`
	}
	if err := decode(raw, &answer); err != nil {
		return "", 0, err
	}
	if answer.AccessToken == "" {
		return "", 0, errors.New("client: the service gave no access token")
	}
	return answer.AccessToken, time.Duration(answer.ExpiresIn) * time.Second, nil
}

// forget gives up a token that was refused, unless there is a newer one.
func (t *tokens) forget(value string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.value == value {
		t.value = ""
	}
}
