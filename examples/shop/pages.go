package main

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"html/template"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/httpapi/limit"
	"github.com/cryptopay-go/cryptopay/payment"
)

const colour = "#0f5f4c" // of buttons and links

//go:embed pages/*.html
var pageFiles embed.FS

//go:embed static/*
var staticFiles embed.FS

func readTemplates() (*template.Template, error) {
	return template.New("").Funcs(template.FuncMap{"file": fileName}).ParseFS(pageFiles, "pages/*.html")
}

// fileName is the path of a static file, with a hash of its content: browsers keep it for good.
func fileName(name string) (string, error) {
	b, err := staticFiles.ReadFile("static/" + name)
	sum := sha256.Sum256(b)
	return "/static/" + hex.EncodeToString(sum[:6]) + "/" + name, err
}

// page is what every template gets.
type page struct {
	Shop, Title string
	Staff       string // who is logged in, "" = a customer
	Cart        cart
	Simulated   bool
	Told        string // what went wrong, for who reads the page
	Data        any
}

func (s *shop) routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", s.showGoods)
	mux.HandleFunc("GET /cart", s.showCart)
	mux.HandleFunc("POST /cart", s.changeCart)
	mux.HandleFunc("POST /orders", s.order)
	mux.HandleFunc("GET /orders/{number}", s.showOrder)
	mux.HandleFunc("POST /orders/{number}/claim", s.claim)
	mux.HandleFunc("POST /orders/{number}/customer", s.customer)
	mux.HandleFunc("GET /login", s.showLogin)
	mux.HandleFunc("POST /login", s.doLogin)
	mux.HandleFunc("POST /logout", s.doLogout)
	mux.HandleFunc("GET /desk", s.staffOnly(s.showDesk))
	mux.HandleFunc("GET /desk/{number}", s.staffOnly(s.showDeskOrder))
	mux.HandleFunc("POST /desk/{number}/refund", s.staffOnly(s.refund))
	mux.HandleFunc("GET /static/{hash}/{name}", s.static)
	mux.HandleFunc("/", s.nothing)
}

// policy lets a page load what is the shop's own, and run nothing at all.
const policy = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// guarded gives every answer the headers that keep it to itself, and bounds what is sent.
func (s *shop) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
		next.ServeHTTP(w, r)
	})
}

// show renders a page whole before it answers.
func (s *shop) show(w http.ResponseWriter, r *http.Request, status int, name, title, told string, data any) {
	staff, err := s.staff(r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	var b bytes.Buffer
	err = s.templates.ExecuteTemplate(&b, name+".html", page{s.title(), title, staff, cartOf(r), s.world.simulated(), told, data})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
}

func (s *shop) title() string { return name }

// fail answers what is nobody's mistake but ours: with nothing of the cause.
func (s *shop) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() == nil {
		s.log.ErrorContext(r.Context(), "request_failed", slog.String("path", r.URL.Path), slog.Any("error", err))
	}
	http.Error(w, "Something went wrong here. Look at your order before you try again: it may have been done.", http.StatusInternalServerError)
}

// answered reports whether there is no order to go on with, and then answers: it could not be
// read, or is not there.
func (s *shop) answered(w http.ResponseWriter, r *http.Request, found bool, err error) bool {
	switch {
	case err != nil:
		s.fail(w, r, err)
	case !found:
		s.nothing(w, r)
	}
	return err != nil || !found
}

func (s *shop) nothing(w http.ResponseWriter, r *http.Request) {
	s.show(w, r, http.StatusNotFound, "nothing", "There is no such page", "", nil)
}

func (s *shop) static(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	b, err := fs.ReadFile(staticFiles, "static/"+name)
	if at, _ := fileName(name); err != nil || at != r.URL.Path {
		s.nothing(w, r)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Header().Set("Content-Type", map[string]string{".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}[path.Ext(name)])
	_, _ = w.Write(b)
}

// limited refuses who asks for the same too often.
func (s *shop) limited(w http.ResponseWriter, r *http.Request, what string, perMinute int) bool {
	from, _, _ := net.SplitHostPort(r.RemoteAddr)
	state, err := s.limits.Take(r.Context(), what+" "+from, time.Now(), limit.Rule{Name: what, Max: perMinute, Window: time.Minute})
	if err == nil && state.Allowed {
		return false
	}
	w.Header().Set("Retry-After", "60")
	s.show(w, r, http.StatusTooManyRequests, "nothing", "Too many requests", "That was often. Please wait a minute.", nil)
	return true
}

func (s *shop) showGoods(w http.ResponseWriter, r *http.Request) {
	s.show(w, r, http.StatusOK, "goods", "Things for every day", "", products)
}

// cartData is what the page of the cart shows.
type cartData struct {
	Coins  []coin
	Number string // of the order that the form makes
	Coin   string // that was chosen
}

func (s *shop) showCart(w http.ResponseWriter, r *http.Request) {
	s.cartPage(w, r, http.StatusOK, "", "")
}

func (s *shop) cartPage(w http.ResponseWriter, r *http.Request, status int, coin, told string) {
	s.show(w, r, status, "cart", "Your cart", told, cartData{s.world.coins(), newNumber(), coin})
}

func (s *shop) changeCart(w http.ResponseWriter, r *http.Request) {
	n := map[string]int64{"add": 1, "less": -1, "drop": -mostOfOne}[r.PostFormValue("do")]
	http.SetCookie(w, s.cookie(cartOf(r).with(r.PostFormValue("product"), n)))
	http.Redirect(w, r, "/cart", http.StatusSeeOther)
}

// order takes what is in the cart, and sends the customer to the order's page.
func (s *shop) order(w http.ResponseWriter, r *http.Request) {
	if s.limited(w, r, "order", 20) {
		return
	}
	c, number, currency := cartOf(r), r.PostFormValue("number"), r.PostFormValue("coin")
	buyer := s.buyer(w, r)
	if _, found, err := s.orderOf(r.Context(), number, buyer); err != nil {
		s.fail(w, r, err)
		return
	} else if found { // the form was sent twice
		http.Redirect(w, r, "/orders/"+number, http.StatusSeeOther)
		return
	}
	if len(c) == 0 || !numbers.MatchString(number) {
		s.cartPage(w, r, http.StatusBadRequest, currency, "There is nothing to order. Please choose something first.")
		return
	}
	_, err := s.place(r.Context(), order{Number: number, Buyer: buyer, Goods: c.String(), Cents: c.Cents(), Currency: currency})
	var coin errCoin
	if errors.As(err, &coin) {
		s.cartPage(w, r, http.StatusBadRequest, currency, coin.Error())
		return
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	http.SetCookie(w, s.cookie(nil))
	http.Redirect(w, r, "/orders/"+number, http.StatusSeeOther)
}

// orderData is what the page of an order shows its customer.
type orderData struct {
	Order     order
	Coin      string
	PayLink   string // "" = there is nothing to pay any more
	Page      string // of the payment
	Claim     *claimData
	Customers []customer // that buttons play
	Pending   bool       // something is on its way
	Partly    bool       // a part of it has come
	Returning bool       // a refund is on its way
}

func (s *shop) showOrder(w http.ResponseWriter, r *http.Request) {
	s.orderPage(w, r, http.StatusOK, "")
}

func (s *shop) orderPage(w http.ResponseWriter, r *http.Request, status int, told string) {
	o, found, err := s.orderOf(r.Context(), r.PathValue("number"), buyerOf(r))
	if s.answered(w, r, found, err) {
		return
	}
	p, err := s.app.Payments.Get(r.Context(), tenant, o.Payment)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	d := orderData{Order: o, Coin: s.world.name(o.Currency), Page: s.pay.URL(tenant, o.Payment)}
	d.Pending = o.State == open_ && p.Status != payment.Waiting && p.Status != payment.PartiallyPaid
	if o.State == open_ && !d.Pending {
		d.PayLink, d.Partly = d.Page, p.Status == payment.PartiallyPaid
	}
	if d.Claim, d.Returning, err = s.refundsOf(r.Context(), &p); err != nil {
		s.fail(w, r, err)
		return
	}
	if s.world.simulated() {
		d.Customers = customers
	}
	s.show(w, r, status, "order", "Order "+o.Number, told, d)
}

// customer plays one, on simulated networks.
func (s *shop) customer(w http.ResponseWriter, r *http.Request) {
	if !s.world.simulated() {
		s.nothing(w, r)
		return
	}
	o, found, err := s.orderOf(r.Context(), r.PathValue("number"), buyerOf(r))
	if s.answered(w, r, found, err) {
		return
	}
	if err := s.world.play(r.Context(), s.app, r.PostFormValue("who"), o.Payment); err != nil {
		s.orderPage(w, r, http.StatusBadRequest, "That did not work: "+err.Error())
		return
	}
	http.Redirect(w, r, "/orders/"+o.Number, http.StatusSeeOther)
}

func (s *shop) showLogin(w http.ResponseWriter, r *http.Request) {
	s.show(w, r, http.StatusOK, "login", "Log in", "", owner)
}

func (s *shop) doLogin(w http.ResponseWriter, r *http.Request) {
	if s.limited(w, r, "login", 10) {
		return
	}
	secret, err := s.login(r.Context(), r.PostFormValue("email"), r.PostFormValue("password"))
	if errors.Is(err, errLogin) {
		s.show(w, r, http.StatusUnauthorized, "login", "Log in", "The email address or the password is wrong.", r.PostFormValue("email"))
		return
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	cookie := s.ownCookie(sessionCookie, secret)
	cookie.MaxAge = int(sessionTime / time.Second)
	http.SetCookie(w, cookie)
	to := r.PostFormValue("next")
	if !strings.HasPrefix(to, "/desk") { // never to another site
		to = "/desk"
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

func (s *shop) doLogout(w http.ResponseWriter, r *http.Request) {
	if err := s.logout(r); err != nil {
		s.fail(w, r, err)
		return
	}
	cookie := s.ownCookie(sessionCookie, "")
	cookie.MaxAge = -1
	http.SetCookie(w, cookie)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// staffOnly sends everybody else to the login.
func (s *shop) staffOnly(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch who, err := s.staff(r); {
		case err != nil:
			s.fail(w, r, err)
		case who == "":
			http.Redirect(w, r, "/login", http.StatusSeeOther)
		default:
			next(w, r)
		}
	}
}
