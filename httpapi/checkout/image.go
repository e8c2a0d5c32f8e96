package checkout

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	_ "image/jpeg" // a logo may be one
	_ "image/png"
	"strings"
	"unicode"

	"rsc.io/qr"
)

const (
	maxLogo  = 32 << 10 // bytes
	maxSide  = 2048     // pixels
	maxName  = 80       // characters
	maxLines = 240
)

// imageType is the media type of a logo. An SVG is none: it can carry script.
func imageType(b []byte) (string, error) {
	if len(b) > maxLogo {
		return "", errors.New("must have at most 32 KiB")
	}
	width, height, media := 0, 0, ""
	if w, h, ok := webpSize(b); ok {
		width, height, media = w, h, "image/webp"
	} else if c, format, err := image.DecodeConfig(bytes.NewReader(b)); err == nil {
		width, height, media = c.Width, c.Height, "image/"+format
	}
	switch {
	case media != "image/webp" && media != "image/png" && media != "image/jpeg":
		return "", errors.New("must be a PNG, JPEG or WebP image")
	case width < 1 || height < 1 || width > maxSide || height > maxSide:
		return "", errors.New("must have at most 2048 pixels a side")
	}
	return media, nil
}

// webpSize reads the size of a WebP image (RFC 9649, 2.4 to 2.7).
func webpSize(b []byte) (width, height int, ok bool) {
	if len(b) < 30 || string(b[:4]) != "RIFF" || string(b[8:12]) != "WEBP" {
		return 0, 0, false
	}
	switch d := b[20:]; string(b[12:16]) {
	case "VP8 ": // lossy: 14 bits each, behind the frame's tag and start code
		return int(binary.LittleEndian.Uint16(d[6:]) & 0x3fff), int(binary.LittleEndian.Uint16(d[8:]) & 0x3fff), true
	case "VP8L": // lossless: 14 bits each less one, behind the signature
		bits := binary.LittleEndian.Uint32(d[1:])
		return int(bits&0x3fff) + 1, int(bits>>14&0x3fff) + 1, true
	case "VP8X": // extended: 24 bits each less one, behind the flags
		return int(d[4]) | int(d[5])<<8 | int(d[6])<<16 + 1, int(d[7]) | int(d[8])<<8 | int(d[9])<<16 + 1, true
	}
	return 0, 0, false
}

// qrSVG draws a text as a QR code, dark on white whatever the page's colours are, with the
// quiet zone that readers need. nil if the text does not fit into one.
func qrSVG(text string) []byte {
	code, err := qr.Encode(text, qr.M)
	if err != nil {
		return nil
	}
	const quiet = 4
	var b bytes.Buffer
	side := code.Size + 2*quiet
	b.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ` + itoa(side) + " " + itoa(side) +
		`" width="` + itoa(side*8) + `" height="` + itoa(side*8) + `" shape-rendering="crispEdges"><path fill="#fff" d="M0 0h` + itoa(side) + "v" + itoa(side) + "H0z\"/><path d=\"")
	for y := range code.Size {
		for x := 0; x < code.Size; x++ {
			run := 0
			for x+run < code.Size && code.Black(x+run, y) {
				run++
			}
			if run > 0 {
				b.WriteString("M" + itoa(x+quiet) + " " + itoa(y+quiet) + "h" + itoa(run) + "v1h-" + itoa(run) + "z")
			}
			x += run
		}
	}
	b.WriteString(`"/></svg>`)
	return b.Bytes()
}

// oneLine makes of a merchant's text what can stand in a line: no control characters, nothing that
// turns the direction of what follows, and at most so many characters.
func oneLine(s string, most int) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || r == unicode.ReplacementChar || r >= 0x202a && r <= 0x202e || r == 0x200e || r == 0x200f || r == 0x061c || r == 0xfeff
	}), " ")
	if r := []rune(s); len(r) > most {
		s = string(r[:most-1]) + "…"
	}
	return isolated(s)
}

// isolated closes the isolates that a text opens, and leaves out what closes one that it did not
// open: the sentence around it stays as it is.
func isolated(s string) string {
	const first, last, pop = '\u2066', '\u2068', '\u2069'
	open := 0
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= first && r <= last:
			open++
		case r == pop && open == 0:
			return -1
		case r == pop:
			open--
		}
		return r
	}, s)
	return s + strings.Repeat(string(pop), open)
}
