// Package docs holds the documents of the repository to the code: links resolve, Go
// blocks compile, names exist, and each kind of alert has a section in the runbook.
package docs
