package manual

// Interface is what the pages describe.
type Interface struct {
	Server   string // where it is: a URL, or a path
	Preamble string // conventions of all operations
	Groups   []*Group
	Events   []*Event
	Tokens   bool // callers may send tokens
}

// Group is operations under one heading.
type Group struct {
	Name       string
	Operations []*Operation
}

// Operation is one method of one path.
type Operation struct {
	Name, Method, Path, About string
	Access                    string   // who may call, in words
	Notes                     []string // sentences
	Once                      bool     // takes an Idempotency-Key
	PathFields, Query, Body   []Field
	BodyMedia                 string
	Status                    int // of success
	Answers                   []Answer
	Fields                    []Field  // of the answer
	Parts                     []Object // that the body is made of
	Objects                   []Object // that the answer is made of
	Failures                  []Failure
}

// Field is a member of a request or an answer. Object is the anchor of the object that it is
// made of, "" = none; Mark says whether it must be, or may not be, there.
type Field struct{ Name, Kind, Object, About, Limits, Mark string }

// Answer is one form of an answer.
type Answer struct{ Media, Kind string }

// Object is a kind of object in an answer.
type Object struct {
	Name, Anchor string
	Fields       []Field
}

// Failure is a status with the error codes that it comes with.
type Failure struct {
	Status int
	Codes  []string
}

// Event is one webhook. Example is the body that a test delivery has.
type Event struct {
	Name, About string
	Fields      []Field
	Objects     []Object
	Example     string
}
