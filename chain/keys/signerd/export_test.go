package signerd

// What the tests may see of the inside.

// Paths and bounds of the wire.
const (
	SignPath    = signPath
	MaxBody     = maxBody
	MaxRequests = maxRequests
)

// File is what a Log does with its file.
type File = file

// Through lets the log write through another file.
func (l *Log) Through(wrap func(File) File) { l.file = wrap(l.file) }

// Torn is how many bytes of a cut line were taken away.
func (l *Log) Torn() int64 { return l.torn }
