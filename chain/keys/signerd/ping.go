package signerd

import (
	"context"
	"fmt"
	"net/http"
)

// Ping implements chain.Pinger: it asks the Server whether it is there, and for nothing else.
func (c *Client) Ping(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.cfg.URL+healthPath, nil)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("signerd: no answer from the signer: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("signerd: the signer answers with status %d", resp.StatusCode)
	}
	return nil
}
