package checkout

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

//go:embed words/*.json
var wordFiles embed.FS

// texts are what the page says in one language, by name.
type texts struct {
	code  string
	words map[string]string
}

// Code and Name are of the language, for links to it.
func (t *texts) Code() string { return t.code }
func (t *texts) Name() string { return t.words["name"] }

// languages are all that the page speaks. The first is the default.
type languages []*texts

// speak reads the built-in languages and puts the host's own over them.
func speak(own map[string]map[string]string, first string) (languages, error) {
	files, err := wordFiles.ReadDir("words")
	if err != nil {
		return nil, err
	}
	all := map[string]map[string]string{}
	for _, f := range files {
		raw, err := wordFiles.ReadFile("words/" + f.Name())
		if err != nil {
			return nil, err
		}
		words := map[string]string{}
		if err := json.Unmarshal(raw, &words); err != nil {
			return nil, err
		}
		all[strings.TrimSuffix(path.Base(f.Name()), ".json")] = words
	}
	english := maps.Clone(all["en"])
	for code, words := range own {
		if !languageCode.MatchString(code) {
			return nil, fmt.Errorf("checkout: Options.Texts: %q is not the code of a language, such as fr or pt-BR", code)
		}
		if all[code] == nil {
			if words["name"] == "" || words["direction"] == "" {
				return nil, fmt.Errorf("checkout: Options.Texts[%q] must have name and direction: the language is not built in", code)
			}
			all[code] = maps.Clone(english)
		}
		for name, text := range words {
			if err := fits(name, text, english); err != nil {
				return nil, fmt.Errorf("checkout: Options.Texts[%q]: %w", code, err)
			}
			all[code][name] = isolated(text)
		}
	}
	if all[first] == nil {
		return nil, fmt.Errorf("checkout: Options.Language is %q: there are %s", first, strings.Join(slices.Sorted(maps.Keys(all)), ", "))
	}
	out := languages{{first, all[first]}}
	for _, code := range slices.Sorted(maps.Keys(all)) {
		if code != first {
			out = append(out, &texts{code, all[code]})
		}
	}
	return out, nil
}

var (
	languageCode = regexp.MustCompile(`^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$`)
	placeholder  = regexp.MustCompile(`\{[a-z_]*\}`)
)

// fits refuses a text that no page would show, or that would show the name of a value.
func fits(name, text string, english map[string]string) error {
	like, ok := english[name]
	switch {
	case !ok:
		return fmt.Errorf("there is no text %q", name)
	case strings.TrimSpace(text) == "" || len(text) > 1000:
		return fmt.Errorf("%s must have 1 to 1000 bytes", name)
	case name == "direction" && text != "ltr" && text != "rtl":
		return fmt.Errorf("direction must be ltr or rtl")
	}
	for _, p := range placeholder.FindAllString(text, -1) {
		if !strings.Contains(like, p) {
			return fmt.Errorf("%s has no value %s", name, p)
		}
	}
	return nil
}

// say is a text with its values. A value that might be written in the other direction than the
// sentence is isolated, so that neither turns the other (U+2068 and U+2069).
func (t *texts) say(name string, values ...string) string {
	s := t.words[name]
	if len(values) == 0 {
		return s
	}
	pairs := make([]string, 0, len(values))
	for i := 0; i+1 < len(values); i += 2 {
		value := values[i+1]
		if t.words["direction"] == "rtl" || strings.ContainsFunc(value, func(r rune) bool { return r > unicode.MaxLatin1 }) {
			value = "\u2068" + value + "\u2069"
		}
		pairs = append(pairs, "{"+values[i]+"}", value)
	}
	return strings.NewReplacer(pairs...).Replace(s)
}

// choose finds the language of a request: asked for, else preferred by the browser.
func (l languages) choose(asked, accept string) *texts {
	if t := l.find(asked); t != nil {
		return t
	}
	type wish struct {
		t *texts
		q float64
	}
	best := wish{l[0], 0}
	for i, part := range strings.Split(accept, ",") {
		if i == 32 {
			break
		}
		tag, params, _ := strings.Cut(part, ";")
		q := 1.0
		if v, ok := strings.CutPrefix(strings.TrimSpace(params), "q="); ok {
			var err error
			if q, err = strconv.ParseFloat(v, 64); err != nil {
				continue
			}
		}
		if t := l.find(strings.TrimSpace(tag)); t != nil && q > best.q {
			best = wish{t, q}
		}
	}
	return best.t
}

// find is the language of a tag: the same, or the one that it is a variant of.
func (l languages) find(tag string) *texts {
	for ; tag != ""; tag = before(tag) {
		for _, t := range l {
			if strings.EqualFold(t.code, tag) {
				return t
			}
		}
	}
	return nil
}

// before cuts the last subtag off.
func before(tag string) string {
	i := strings.LastIndexByte(tag, '-')
	return tag[:max(i, 0)]
}
