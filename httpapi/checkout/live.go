package checkout

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/refund"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/stream"
)

const (
	readTimeout  = 10 * time.Second
	writeTimeout = 10 * time.Second
	beatEvery    = 20 * time.Second // a comment on each stream: proxies close what is silent
	maxBeats     = 180              // then a stream ends, and the browser opens another
	pageSize     = 500              // payments whose progress is read together
	shareOfOne   = 100              // one payment has at most this part of MaxViewers,
	leastOfOne   = 30               // and may have as many as this
	readers      = 4                // payments of a tenant that are read side by side,
	visits       = 8                // and tenants that are looked at
)

// hub holds the payments that somebody looks at. Its goroutine runs while there are any.
type hub struct {
	h *Handler

	mu      sync.Mutex
	shops   map[string]*shop // by tenant
	viewers int
	running bool
	closed  bool
	ended   chan struct{} // closed by close
	beat    chan struct{} // closed and replaced at each beat

	slots chan struct{} // of tenants that are looked at
}

// shop is a tenant with open pages.
type shop struct {
	tenant string
	seen   int64 // the last event of the tenant that its rooms know of
	known  bool  // seen was read
	busy   bool  // it is looked at, or about to be
	rooms  map[string]*room
}

// room is a payment that somebody looks at. What it shows is the same for all of one language.
type room struct {
	of      ref
	token   string
	viewers map[*texts]int
	all     int // of viewers

	loading sync.Mutex
	facts   *facts
	news    int64     // how often facts were to be read again
	read    int64     // news when the facts were read: behind it they are stale
	again   time.Time // when it is looked at without news; zero = never
	now     *showing
}

// showing is what a room shows, until changed is closed.
type showing struct {
	version string
	gone    bool              // there is no page any more
	frames  map[*texts][]byte // made when somebody needs one, and forgotten after a beat
	changed chan struct{}
}

func newHub(h *Handler) *hub {
	return &hub{h: h, shops: map[string]*shop{}, ended: make(chan struct{}), beat: make(chan struct{}), slots: make(chan struct{}, visits)}
}

func (b *hub) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.closed = true
		close(b.ended)
	}
}

// enter adds a viewer, and begins to work with the first. ok is false where there are too many.
func (b *hub) enter(of ref, token string, w *texts) (r *room, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.viewers >= b.h.o.MaxViewers {
		return nil, false
	}
	s := b.shops[of.tenant]
	if s != nil && s.rooms[of.payment] != nil && s.rooms[of.payment].all >= max(b.h.o.MaxViewers/shareOfOne, leastOfOne) {
		return nil, false // who has one link must not take the streams of all others
	}
	b.viewers++
	if s == nil {
		s = &shop{tenant: of.tenant, rooms: map[string]*room{}}
		b.shops[of.tenant] = s
	}
	if r = s.rooms[of.payment]; r == nil {
		r = &room{of: of, token: token, viewers: map[*texts]int{}}
		s.rooms[of.payment] = r
	}
	r.viewers[w]++
	r.all++
	if !b.running {
		b.running = true
		go b.run()
	}
	return r, true
}

func (b *hub) leave(r *room, w *texts) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.viewers--
	r.all--
	if r.viewers[w]--; r.viewers[w] == 0 {
		delete(r.viewers, w)
	}
	s := b.shops[r.of.tenant]
	if len(r.viewers) == 0 && s != nil && s.rooms[r.of.payment] == r {
		if delete(s.rooms, r.of.payment); len(s.rooms) == 0 {
			delete(b.shops, r.of.tenant)
		}
	}
}

// showing is what a room shows now; nil where it cannot be read.
func (b *hub) showing(r *room) *showing {
	b.mu.Lock()
	now := r.now
	b.mu.Unlock()
	if now == nil {
		aside(func() {
			ctx, cancel := detached()
			defer cancel()
			b.load(ctx, r, false)
		})
		b.mu.Lock()
		defer b.mu.Unlock()
		now = r.now
	}
	return now
}

// frame is what a viewer is sent of what a room shows, and its version: the room may show
// something newer by now. nil where it cannot be made.
func (b *hub) frame(r *room, w *texts) (frame []byte, version string) {
	b.mu.Lock()
	frame, version = r.now.frames[w], r.now.version
	b.mu.Unlock()
	if frame == nil {
		aside(func() { frame, version = b.draw(r, w) })
	}
	return frame, version
}

// aside does what needs much of a stack in a goroutine of its own, whose stack is given back:
// those of ten thousand viewers stay small.
func aside(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	<-done
}

// draw makes the frame of a room in a language, and keeps it for others who look.
func (b *hub) draw(r *room, w *texts) ([]byte, string) {
	b.mu.Lock()
	f := r.facts
	b.mu.Unlock()
	if f == nil {
		return nil, ""
	}
	v := b.h.view(r.token, f, w)
	part, err := b.h.render(v)
	if err != nil {
		b.h.o.Log.Error("checkout_page_failed", slog.String("page", "part.html"), slog.Any("error", err))
		return nil, ""
	}
	made := event(v.Version, part)
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := r.now; now != nil && now.version == v.Version && r.viewers[w] > 1 {
		if now.frames == nil {
			now.frames = map[*texts][]byte{}
		}
		now.frames[w] = made
	}
	return made, v.Version
}

// load reads what a room shows. Who comes while another reads takes what that one finds,
// unless it has to be newer.
func (b *hub) load(ctx context.Context, r *room, newer bool) {
	r.loading.Lock()
	defer r.loading.Unlock()
	b.mu.Lock()
	there, news := r.now != nil, r.news // what comes from now on may not be in what is read
	b.mu.Unlock()
	if there && !newer {
		return
	}
	if err := b.begin(ctx, r.of.tenant); err != nil {
		b.h.o.Log.LogAttrs(ctx, slog.LevelWarn, "checkout_stream_failed", slog.String("tenant", r.of.tenant), slog.Any("error", err))
		return
	}
	f, err := b.h.read(ctx, r.of)
	switch {
	case errors.Is(err, errUnknown):
		b.mu.Lock()
		defer b.mu.Unlock()
		r.read, r.again = news, time.Time{}
		b.change(r, &showing{gone: true})
	case err != nil:
		b.h.o.Log.LogAttrs(ctx, slog.LevelWarn, "checkout_stream_failed", slog.String("tenant", r.of.tenant), slog.Any("error", err))
		b.mu.Lock()
		defer b.mu.Unlock()
		r.news++
	default:
		f.merchant.Logo = nil // pages have it
		b.show(r, f, news)
	}
}

// begin notes where the events of a tenant are, before the first of its payments is read.
func (b *hub) begin(ctx context.Context, tenant string) error {
	b.mu.Lock()
	s := b.shops[tenant]
	known := s == nil || s.known
	b.mu.Unlock()
	if known {
		return nil
	}
	last, err := b.last(ctx, tenant)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !s.known {
		s.seen, s.known = last, true
	}
	return nil
}

func (b *hub) last(ctx context.Context, tenant string) (int64, error) {
	v, _, _, err := storage.Streams.One(ctx, b.h.app.Config().Store, storage.Tenant(tenant), storage.StreamID)
	return v.Last, err
}

// show puts up what a room shows of facts, where that has changed. news is that of the room when
// the facts were read.
func (b *hub) show(r *room, f *facts, news int64) {
	version := b.h.view(r.token, f, b.h.languages[0]).Version
	b.mu.Lock()
	defer b.mu.Unlock()
	r.facts, r.read, r.again = f, news, f.again(b.h.now())
	if r.now == nil || r.now.version != version {
		b.change(r, &showing{version: version})
	}
}

// change puts up what a room shows and wakes its viewers. The lock is held.
func (b *hub) change(r *room, next *showing) {
	next.changed = make(chan struct{})
	if r.now != nil {
		close(r.now.changed)
	}
	r.now = next
}

// event is one server-sent event.
func event(version string, part []byte) []byte {
	var out bytes.Buffer
	out.WriteString("id: " + version + "\nevent: part\n")
	for line := range bytes.Lines(part) {
		out.WriteString("data: ")
		out.Write(line)
	}
	out.WriteString("\n")
	return out.Bytes()
}

// run looks after the rooms until there are none, or the hub is closed.
func (b *hub) run() {
	tick := time.NewTicker(b.h.o.Poll) //nolint:forbidigo // viewers wait by the wall's clock, whatever the App's does
	defer tick.Stop()
	beat := time.NewTicker(beatEvery) //nolint:forbidigo // as above
	defer beat.Stop()
	for {
		select {
		case <-b.ended:
			return
		case <-beat.C:
			b.onBeat()
		case <-tick.C:
			if !b.visitAll() {
				return
			}
		}
	}
}

// visitAll has all tenants with open pages looked at, some side by side: what is slow for one, such
// as the host's Merchant, holds no other. One that is still looked at is left out. more is false
// where there are none.
func (b *hub) visitAll() (more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.shops) == 0 {
		b.running = false
		return false
	}
	for _, s := range b.shops {
		if s.busy {
			continue
		}
		s.busy = true
		go func() {
			b.slots <- struct{}{}
			b.visit(s)
			<-b.slots
			b.mu.Lock()
			defer b.mu.Unlock()
			s.busy = false
		}()
	}
	return true
}

func (b *hub) onBeat() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.beat)
	b.beat = make(chan struct{})
	for _, s := range b.shops {
		for _, r := range s.rooms {
			if r.now != nil {
				r.now.frames = nil
			}
		}
	}
}

// visit brings the rooms of a tenant up to date.
func (b *hub) visit(s *shop) {
	err := b.news(s)
	now := b.h.now()
	b.mu.Lock()
	var stale, due []*room
	for _, r := range s.rooms {
		switch {
		case r.read < r.news:
			stale = append(stale, r)
		case r.facts != nil && !r.again.IsZero() && !now.Before(r.again):
			due = append(due, r)
		}
	}
	b.mu.Unlock()
	var all errgroup.Group
	all.SetLimit(readers)
	for _, r := range stale {
		all.Go(func() error {
			ctx, cancel := detached()
			defer cancel()
			b.load(ctx, r, true)
			return nil
		})
	}
	err = errors.Join(err, all.Wait())
	for page := range slices.Chunk(due, pageSize) {
		err = errors.Join(err, b.recount(s.tenant, page))
	}
	if err != nil {
		b.h.o.Log.Warn("checkout_stream_failed", slog.String("tenant", s.tenant), slog.Any("error", err))
	}
}

// errRead ends the reading of a stream: there is nothing more now.
var errRead = errors.New("checkout: all was read")

// news marks the payments that the tenant's new events are about.
func (b *hub) news(s *shop) error {
	ctx, cancel := detached()
	defer cancel()
	b.mu.Lock()
	known, seen := s.known, s.seen
	b.mu.Unlock()
	if !known {
		return nil
	}
	last, err := b.last(ctx, s.tenant)
	if err != nil || last == seen {
		return err
	}
	f := stream.Filter{Partition: storage.Tenant(s.tenant), After: seen, Kinds: []string{payment.Changed{}.EventKind(), payment.DepositChanged{}.EventKind(), refund.Changed{}.EventKind(), refund.WaitChanged{}.EventKind()}}
	read := seen
	for e, err := range b.h.app.Events.Follow(ctx, f, func(context.Context) error { return errRead }) {
		if errors.Is(err, errRead) {
			break
		}
		if errors.Is(err, stream.ErrMissed) {
			b.mark(s, func(*room) bool { return true })
			break
		}
		if err != nil {
			return err
		}
		read = e.Number
		switch body := e.Body.(type) {
		case payment.Changed:
			b.markPayment(s, body.PaymentID)
		case refund.Changed:
			b.markPayment(s, body.PaymentID)
			b.mark(s, func(r *room) bool { return r.got(body.DepositID) })
		case refund.WaitChanged:
			b.markPayment(s, body.PaymentID)
		case payment.DepositChanged:
			b.mark(s, func(r *room) bool { return r.of.payment == body.PaymentID || r.at(body.Network, body.Address) })
		}
	}
	err = ctx.Err() // Follow ends with it, and says nothing: the rest is read next time
	if err != nil {
		last = read
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s.seen = last
	return err
}

// markPayment notes that the room of a payment has to be read again, where there is one.
func (b *hub) markPayment(s *shop, id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := s.rooms[id]; r != nil {
		r.news++
	}
}

// mark notes which rooms have to be read again.
func (b *hub) mark(s *shop, is func(*room) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range s.rooms {
		if is(r) {
			r.news++
		}
	}
}

// at reports whether a room's payment has an address.
func (r *room) at(network, address string) bool {
	return r.facts != nil && r.facts.payment.Network == network && r.facts.payment.Address == address
}

// got reports whether a deposit is among what came for a room's payment.
func (r *room) got(deposit string) bool {
	return deposit != "" && r.facts != nil && slices.ContainsFunc(r.facts.arrivals, func(a payment.Arrival) bool { return a.ID == deposit })
}

// recount reads the confirmations of payments of one tenant together.
func (b *hub) recount(tenant string, rooms []*room) error {
	ctx, cancel := detached()
	defer cancel()
	page, was, news := make([]payment.Payment, len(rooms)), make([]*facts, len(rooms)), make([]int64, len(rooms))
	b.mu.Lock()
	for i, r := range rooms {
		was[i], news[i] = r.facts, r.read
		page[i] = r.facts.payment
	}
	b.mu.Unlock()
	progress, err := b.h.app.Payments.Progress(ctx, tenant, page)
	if err != nil {
		return err
	}
	for i, r := range rooms {
		f := *was[i]
		f.progress = progress[i]
		b.show(r, &f, news[i])
	}
	return nil
}

// stream is the live part of a page: server-sent events, one whenever what is shown changes.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request, of ref, token string) {
	if r.Method == http.MethodHead { // would be held open to say nothing
		lighten(w.Header())
		return
	}
	words := h.language(r)
	room, ok := h.live.enter(of, token, words)
	if !ok {
		w.Header().Set("Retry-After", "5")
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	defer h.live.leave(room, words)
	now := h.live.showing(room)
	if now == nil || now.gone {
		h.refuseStream(w, now)
		return
	}
	sent := r.Header.Get("Last-Event-ID")
	if sent == "" {
		sent = r.URL.Query().Get("v")
	}
	lighten(w.Header())
	conn := http.NewResponseController(w)
	_ = conn.SetReadDeadline(time.Time{}) // where deadlines are not supported none is there to lift
	if send(w, conn, []byte("retry: 3000\n\n")) != nil {
		return
	}
	for beats := 0; beats < maxBeats && !now.gone; {
		if sent != now.version {
			data, version := h.live.frame(room, words)
			if data == nil || send(w, conn, data) != nil {
				return
			}
			sent = version
		}
		select {
		case <-now.changed:
			now = h.live.showing(room)
		case <-h.live.nextBeat():
			if beats++; send(w, conn, []byte(":\n\n")) != nil {
				return
			}
		case <-r.Context().Done():
			return
		case <-h.live.ended:
			return
		}
	}
}

// lighten leaves a stream with the headers that mean something for one: they are kept as
// long as it is open, ten thousand times.
func lighten(hd http.Header) {
	for name := range hd {
		if name != "X-Content-Type-Options" && name != "Cache-Control" && name != "Cross-Origin-Resource-Policy" {
			delete(hd, name)
		}
	}
	hd["Content-Type"] = streamType
	hd["X-Accel-Buffering"] = unbuffered // a proxy must not wait for more
}

var streamType, unbuffered = []string{"text/event-stream"}, []string{"no"}

// refuseStream answers where there is nothing to stream: the page finds out what there is.
func (h *Handler) refuseStream(w http.ResponseWriter, now *showing) {
	if now != nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Retry-After", "5")
	w.WriteHeader(http.StatusServiceUnavailable)
}

func (b *hub) nextBeat() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.beat
}

// send writes and flushes within a time of its own: a viewer that takes nothing is let go.
func send(w http.ResponseWriter, conn *http.ResponseController, b []byte) error {
	_ = conn.SetWriteDeadline(time.Now().Add(writeTimeout)) //nolint:forbidigo // of a connection, by the wall's clock
	if _, err := w.Write(b); err != nil {
		return err
	}
	return conn.Flush()
}
