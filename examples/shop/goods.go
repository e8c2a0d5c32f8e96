package main

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// product is something to buy. Icon is its picture in goods.svg.
type product struct {
	ID, Name, About, Icon string
	Cents                 int64 // USD
}

var products = []product{
	{"mug", "Enamel mug", "Keeps coffee warm and survives a fall.", "mug", 1400},
	{"tea", "Mountain tea", "100 g, picked by hand in May.", "tea", 950},
	{"book", "Notebook", "192 pages, dotted, opens flat.", "book", 1200},
	{"lamp", "Desk lamp", "Warm light, made of ash wood.", "lamp", 8900},
}

func productOf(id string) (product, bool) {
	i := slices.IndexFunc(products, func(p product) bool { return p.ID == id })
	if i < 0 {
		return product{}, false
	}
	return products[i], true
}

// Price is what it costs, for people.
func (p product) Price() string { return dollars(p.Cents) }

// dollars writes cents, such as 14.00.
func dollars(cents int64) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }

// line is one product of a cart.
type line struct {
	product
	Count int64
}

// Sum is the price of a line.
func (l line) Sum() string { return dollars(l.Cents * l.Count) }

// cart is what a customer wants to buy. It lives in his cookie: nothing is stored until he orders.
type cart []line

const (
	cartCookie = "cart"
	mostOfOne  = 20 // of one product in a cart
)

// cartOf reads the cookie, and passes over what no page of ours has written there.
func cartOf(r *http.Request) (c cart) {
	cookie, err := r.Cookie(cartCookie)
	if err != nil {
		return nil
	}
	for _, part := range strings.Split(cookie.Value, "-") {
		id, count, _ := strings.Cut(part, ".")
		if n, err := strconv.ParseInt(count, 10, 64); err == nil {
			c = c.with(id, n)
		}
	}
	return c
}

// with is the cart with n more of a product, n below 0 for less.
func (c cart) with(id string, n int64) cart {
	p, ok := productOf(id)
	if !ok || n < -mostOfOne || n > mostOfOne {
		return c
	}
	c = slices.Clone(c)
	i := slices.IndexFunc(c, func(l line) bool { return l.ID == id })
	if i < 0 {
		c, i = append(c, line{p, 0}), len(c)
	}
	c[i].Count = min(c[i].Count+n, mostOfOne)
	return slices.DeleteFunc(c, func(l line) bool { return l.Count <= 0 })
}

// Cents is the price of all of it.
func (c cart) Cents() (sum int64) {
	for _, l := range c {
		sum += l.Cents * l.Count
	}
	return sum
}

// Total is Cents for people, and Items how many pieces it is.
func (c cart) Total() string { return dollars(c.Cents()) }

func (c cart) Items() (n int64) {
	for _, l := range c {
		n += l.Count
	}
	return n
}

// String is the cart in words, such as "2 × Enamel mug, Desk lamp".
func (c cart) String() string {
	var parts []string
	for _, l := range c {
		if l.Count == 1 {
			parts = append(parts, l.Name)
		} else {
			parts = append(parts, fmt.Sprintf("%d × %s", l.Count, l.Name))
		}
	}
	return strings.Join(parts, ", ")
}

// cookie is the cart for the customer's browser.
func (s *shop) cookie(c cart) *http.Cookie {
	var parts []string
	for _, l := range c {
		parts = append(parts, l.ID+"."+strconv.FormatInt(l.Count, 10))
	}
	out := s.ownCookie(cartCookie, strings.Join(parts, "-"))
	if out.MaxAge = 30 * 24 * 60 * 60; len(c) == 0 {
		out.MaxAge = -1
	}
	return out
}
