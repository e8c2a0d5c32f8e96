// Package operator is a command for the person on call. It shows and mends what an App
// keeps, from a terminal, beside the processes that do the work.
//
// It promises:
//   - A command does what the method of the App does that it names, and nothing else. What
//     the method checks and records is checked and recorded.
//   - A command that writes needs a reason, and says who gave it. Those of App.Operate keep
//     both in the table of operations. The others write them to the App's log, as
//     operator_commanded, once they are done.
//   - A dry run checks everything and writes nothing.
//   - Results go to standard output: tables for people, or JSON for programs. Progress goes to standard error.
//   - No command shows a secret, but one that makes it: it does so once.
//
// A host mounts the Command in a program of its own, which knows how to open its App.
package operator
