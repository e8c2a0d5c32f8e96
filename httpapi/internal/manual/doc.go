// Package manual renders the reference of the REST interface for people: a page for each
// operation and event, guides, and a search that the server answers.
//
// It promises: each operation of the interface has an example request in curl, Go and
// TypeScript with the answer that the tests got to it; a page needs no script and loads
// nothing from anywhere else; and what a reader types into the search is shown as text.
//
// What is said of operations comes from the caller, who reads it from the table that is
// served. Here are the examples (examples.go, answers.json), the guides (pages) and the
// programs that receivers of webhooks copy (verify).
package manual
