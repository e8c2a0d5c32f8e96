package client

import (
	"context"
	"errors"
	"net/http"
	"strings"
)

// Call sends a request of an operation that has no method here, such as one of the host's
// own. path begins with a slash and may have a query; its values are escaped by the caller. in
// becomes the JSON body; nil = none. The answer is decoded into out: a pointer, or a *[]byte
// for the answer as it came; nil = it is not looked at. Only GET is sent again after a
// failure.
func (c *Client) Call(ctx context.Context, method, path string, in, out any) error {
	if !strings.HasPrefix(path, "/") {
		return errors.New("client: the path of a call must begin with a slash")
	}
	return c.do(ctx, call{method: method, path: path, body: in, again: method == http.MethodGet}, out)
}
