package manual

import (
	"bytes"
	_ "embed"
	"encoding/json"
)

//go:embed answers.json
var recordedAnswers []byte

// recording is what the tests got: the values that they prepared, and the answers.
type recording struct {
	Values  map[string]string   `json:"values"`
	Answers map[string]Recorded `json:"answers"`
}

// Recorded is an answer as the tests got it: JSON, or text. Neither = it had no body.
type Recorded struct {
	Status int             `json:"status"`
	JSON   json.RawMessage `json:"json,omitempty"`
	Text   string          `json:"text,omitempty"`
}

func answers() (out recording, err error) {
	err = json.Unmarshal(recordedAnswers, &out)
	return out, err
}

func (r Recorded) text() string {
	if r.JSON == nil {
		return r.Text
	}
	var out bytes.Buffer
	if err := json.Indent(&out, r.JSON, "", "  "); err != nil {
		return ""
	}
	return out.String()
}
