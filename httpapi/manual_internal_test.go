package httpapi

import "github.com/cryptopay-go/cryptopay/httpapi/internal/manual"

// Manual is for the tests that send its examples.
func (h *Handler) Manual() *manual.Manual { return h.manual }
