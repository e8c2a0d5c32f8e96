package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// node is one segment of the tree of paths. Fixed segments win over parameters.
type node struct {
	fixed   map[string]*node
	param   *node
	methods map[string]*Route
}

// add puts a route into the tree. Two routes for one method and path are a
// mistake of the table.
func (n *node) add(r *Route) error {
	for _, seg := range segments(r.Path) {
		next := &n.param
		if !strings.HasPrefix(seg, "{") {
			if n.fixed == nil {
				n.fixed = map[string]*node{}
			}
			child := n.fixed[seg]
			next = &child
			if child == nil {
				child = &node{}
				n.fixed[seg] = child
			}
		}
		if *next == nil {
			*next = &node{}
		}
		n = *next
	}
	if n.methods == nil {
		n.methods = map[string]*Route{}
	}
	if n.methods[r.Method] != nil {
		return fmt.Errorf("httpapi: %s %s is twice in the table", r.Method, r.Path)
	}
	n.methods[r.Method] = r
	return nil
}

// find walks a path. ok is false where no route has it; values are those of the
// path's parameters, in order.
func (n *node) find(path string) (at *node, values []string, ok bool) {
	for _, seg := range segments(path) {
		if next := n.fixed[seg]; next != nil {
			n = next
			continue
		}
		value, err := url.PathUnescape(seg)
		if n.param == nil || err != nil || value == "" {
			return nil, nil, false
		}
		n, values = n.param, append(values, value)
	}
	return n, values, len(n.methods) > 0
}

// allow lists the methods of a path, for the Allow header.
func (n *node) allow() string {
	out := make([]string, 0, len(n.methods))
	for m := range n.methods {
		out = append(out, m)
		if m == http.MethodGet {
			out = append(out, http.MethodHead)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// segments splits a path; one slash at the end does not count.
func segments(path string) []string {
	path = strings.TrimPrefix(path, "/")
	path = strings.TrimSuffix(path, "/")
	if path == "" {
		return nil
	}
	return strings.Split(path, "/")
}
