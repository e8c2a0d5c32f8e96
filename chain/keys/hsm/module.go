//go:build cgo

package hsm

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/miekg/pkcs11"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/internal/secret"
)

// Module is a keys.Maker. After an error of the module it starts the library anew, so that a
// module that was gone serves again when it is back. Safe for concurrent use. A process has
// one Module of a library at a time: PKCS#11 has one state for all of it.
type Module struct {
	cfg Config
	pin secret.Secret
	lib *pkcs11.Ctx

	mu      sync.RWMutex // held for reading while the token is used
	in      *token       // nil: not open
	refused error        // the module's word on the PIN: it is not tried again
}

// atOnce is how many sessions are open, and so how many signatures are made at once: as many
// as a signerd.Server answers questions.
const atOnce = 4

// token is an open token.
type token struct {
	lib      *pkcs11.Ctx
	slot     uint
	sessions chan pkcs11.SessionHandle
	making   sync.Mutex
	mu       sync.Mutex
	pairs    map[chain.KeyRef][]pair
}

// pair is a key pair with a name.
type pair struct {
	public  chain.PublicKey
	private pkcs11.ObjectHandle
	fixed   bool // it was made in the module, and the module keeps it
}

// Open opens the token. It reads the names of all its keys, which takes a moment for each.
func Open(ctx context.Context, cfg Config) (*Module, error) {
	if cfg.Library == "" || cfg.Token == "" || len(cfg.PIN) == 0 {
		return nil, errors.New("hsm: Config: Library, Token and PIN are required")
	}
	m := &Module{cfg: cfg, pin: secret.New(slices.Clone(cfg.PIN)), lib: pkcs11.New(cfg.Library)}
	m.cfg.PIN = nil
	if m.lib == nil {
		return nil, fmt.Errorf("hsm: %s is no PKCS#11 library that can be loaded", cfg.Library)
	}
	if err := m.open(ctx); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// Close logs out of the token. The Module is of no use after it.
func (m *Module) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lib == nil {
		return nil
	}
	m.leave()
	m.lib.Destroy()
	m.lib = nil
	return nil
}

// leave forgets the open token; m.mu is held.
func (m *Module) leave() {
	if m.in != nil {
		_ = m.lib.Finalize() // it closes the sessions; an error of it comes again at the next Initialize
		m.in = nil
	}
}

func (m *Module) open(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.lib == nil:
		return errors.New("hsm: the module is closed")
	case m.in != nil || m.refused != nil:
		return m.refused
	}
	if err := m.lib.Initialize(); err != nil {
		return fmt.Errorf("hsm: the library does not start: %w", err)
	}
	t, err := m.enter(ctx)
	if err != nil {
		_ = m.lib.Finalize() // the first error is told
		return err
	}
	m.in = t
	return nil
}

// enter finds the token and logs in.
func (m *Module) enter(ctx context.Context) (*token, error) {
	slot, err := m.slot()
	if err != nil {
		return nil, err
	}
	t := &token{lib: m.lib, slot: slot, sessions: make(chan pkcs11.SessionHandle, atOnce)}
	var s pkcs11.SessionHandle
	for range atOnce {
		if s, err = m.lib.OpenSession(slot, pkcs11.CKF_SERIAL_SESSION|pkcs11.CKF_RW_SESSION); err != nil {
			return nil, fmt.Errorf("hsm: no session: %w", err)
		}
		t.sessions <- s
	}
	if err := m.lib.Login(s, pkcs11.CKU_USER, string(m.pin.Reveal())); err != nil { // for all sessions
		err = fmt.Errorf("hsm: no login to token %q: %w", m.cfg.Token, err)
		for _, last := range []pkcs11.Error{pkcs11.CKR_PIN_INCORRECT, pkcs11.CKR_PIN_INVALID, pkcs11.CKR_PIN_LEN_RANGE, pkcs11.CKR_PIN_EXPIRED, pkcs11.CKR_PIN_LOCKED} {
			if errors.Is(err, last) {
				m.refused = err
			}
		}
		return nil, err
	}
	t.pairs, err = t.read(ctx, s, "")
	return t, err
}

func (m *Module) slot() (found uint, err error) {
	slots, err := m.lib.GetSlotList(true)
	if err != nil {
		return 0, fmt.Errorf("hsm: slots: %w", err)
	}
	n := 0
	for _, slot := range slots {
		info, err := m.lib.GetTokenInfo(slot)
		if err == nil && strings.TrimRight(info.Label, " ") == m.cfg.Token && info.Flags&pkcs11.CKF_TOKEN_INITIALIZED != 0 {
			found, n = slot, n+1
		}
	}
	if n != 1 {
		return 0, fmt.Errorf("hsm: %d tokens are labelled %q, not one", n, m.cfg.Token)
	}
	return found, nil
}

// use gives a session of the open token to do. An error of the module closes the token: the
// next call opens it again.
func (m *Module) use(ctx context.Context, do func(*token, pkcs11.SessionHandle) error) error {
	m.mu.RLock()
	for m.in == nil {
		m.mu.RUnlock()
		if err := m.open(ctx); err != nil {
			return err
		}
		m.mu.RLock()
	}
	t := m.in
	var err error
	select {
	case s := <-t.sessions:
		err = do(t, s)
		t.sessions <- s
	case <-ctx.Done():
		err = ctx.Err()
	}
	m.mu.RUnlock()
	if of := pkcs11.Error(0); errors.As(err, &of) || errors.Is(err, errNoKey) { // a token that is gone may look empty
		m.mu.Lock()
		if m.in == t {
			m.leave()
		}
		m.mu.Unlock()
	}
	return err
}

// Ready reports whether the token answers.
func (m *Module) Ready(ctx context.Context) error {
	return m.use(ctx, func(t *token, s pkcs11.SessionHandle) error {
		_, err := t.lib.GetSessionInfo(s)
		return err
	})
}

// Public implements keys.Holder.
func (m *Module) Public(ctx context.Context, ref chain.KeyRef) (pub chain.PublicKey, err error) {
	err = m.use(ctx, func(t *token, s pkcs11.SessionHandle) error {
		p, err := t.find(ctx, s, ref)
		pub = p.public
		return err
	})
	return pub, err
}

// Sign implements keys.Holder.
func (m *Module) Sign(ctx context.Context, ref chain.KeyRef, message []byte) (sig []byte, err error) {
	err = m.use(ctx, func(t *token, s pkcs11.SessionHandle) error {
		p, err := t.find(ctx, s, ref)
		if err == nil {
			sig, err = t.sign(s, p, message)
		}
		return err
	})
	return sig, err
}

// Make implements keys.Maker.
func (m *Module) Make(ctx context.Context, ref chain.KeyRef) (pub chain.PublicKey, err error) {
	err = m.use(ctx, func(t *token, s pkcs11.SessionHandle) error {
		t.making.Lock()
		defer t.making.Unlock()
		p, err := t.find(ctx, s, ref)
		if errors.Is(err, errNoKey) {
			p, err = t.make(ctx, s, ref)
		}
		if err == nil {
			err = t.prove(s, ref, p)
		}
		pub = p.public
		return err
	})
	return pub, err
}

// Try proves that the module signs on the curve of a name, with a key that is gone then.
func (m *Module) Try(ctx context.Context, ref chain.KeyRef) error {
	onEdwards, err := keys.CheckRef(ref)
	if err != nil {
		return err
	}
	return m.use(ctx, func(t *token, s pkcs11.SessionHandle) error {
		if err := t.can(curveOf(onEdwards)); err != nil {
			return err
		}
		public, private, err := t.generate(s, curveOf(onEdwards), "", nil, false)
		if err != nil {
			return fmt.Errorf("hsm: no key on this curve: %w", err)
		}
		pub, err := t.point(s, public, curveOf(onEdwards))
		if err == nil {
			err = t.prove(s, ref, pair{pub, private, true})
		}
		return errors.Join(err, t.lib.DestroyObject(s, public), t.lib.DestroyObject(s, private))
	})
}

// errNoKey: the module may be an older one that was put back, so nobody's request is to blame.
var errNoKey = errors.New("hsm: the module has no key of this name")

// find is the key pair of a name. One that another process made since is looked for.
func (t *token) find(ctx context.Context, s pkcs11.SessionHandle, ref chain.KeyRef) (pair, error) {
	if _, err := keys.CheckRef(ref); err != nil {
		return pair{}, err
	}
	t.mu.Lock()
	found := t.pairs[ref]
	t.mu.Unlock()
	if len(found) == 0 {
		var err error
		if found, err = t.look(ctx, s, ref); err != nil {
			return pair{}, err
		}
	}
	switch {
	case len(found) == 0:
		return pair{}, fmt.Errorf("%w: %s", errNoKey, ref)
	case len(found) > 1:
		return pair{}, fmt.Errorf("hsm: %d keys are labelled %s: nobody knows which is shown", len(found), ref)
	case !found[0].fixed:
		return pair{}, fmt.Errorf("hsm: key %s is refused: it was not made in the module, or the module gives it away", ref)
	default:
		return found[0], nil
	}
}

// look reads the pairs of a name from the module.
func (t *token) look(ctx context.Context, s pkcs11.SessionHandle, ref chain.KeyRef) ([]pair, error) {
	all, err := t.read(ctx, s, ref)
	if found := all[ref]; err == nil && len(found) > 0 {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.pairs[ref] = found
	}
	return all[ref], err
}

func (t *token) sign(s pkcs11.SessionHandle, p pair, message []byte) ([]byte, error) {
	if err := t.lib.SignInit(s, []*pkcs11.Mechanism{pkcs11.NewMechanism(curveOf(len(p.public) == 32).signs, nil)}, p.private); err != nil {
		return nil, fmt.Errorf("hsm: sign: %w", err)
	}
	sig, err := t.lib.Sign(s, message)
	if err != nil {
		return nil, fmt.Errorf("hsm: sign: %w", err)
	}
	return sig, nil
}

// prove has a key sign what is no transaction.
func (t *token) prove(s pkcs11.SessionHandle, ref chain.KeyRef, p pair) error {
	message := []byte("cryptopay proves the key " + string(ref))
	if len(p.public) != 32 {
		hash := sha256.Sum256(message)
		message = hash[:]
	}
	sig, err := t.sign(s, p, message)
	if err == nil {
		_, err = keys.Finish(p.public, message, sig)
	}
	return err
}
