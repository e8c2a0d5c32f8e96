package checkout

import (
	"fmt"
	"math"
	"strconv"
)

// colour is red, green and blue.
type colour [3]uint8

// parseColour reads #rrggbb.
func parseColour(s string) (c colour, ok bool) {
	if len(s) != 7 || s[0] != '#' {
		return c, false
	}
	n, err := strconv.ParseUint(s[1:], 16, 32)
	return colour{uint8(n >> 16), uint8(n >> 8), uint8(n)}, err == nil && s[1] != '+' //nolint:gosec // cut on purpose
}

func (c colour) String() string { return fmt.Sprintf("#%02x%02x%02x", c[0], c[1], c[2]) }

// luminance is how bright a colour is (WCAG 2.2, relative luminance).
func (c colour) luminance() float64 {
	part := func(v uint8) float64 {
		f := float64(v) / 255
		if f <= 0.04045 {
			return f / 12.92
		}
		return math.Pow((f+0.055)/1.055, 2.4)
	}
	return 0.2126*part(c[0]) + 0.7152*part(c[1]) + 0.0722*part(c[2])
}

// contrast of two colours, from 1 to 21 (WCAG 2.2, contrast ratio).
func contrast(a, b colour) float64 {
	x, y := a.luminance(), b.luminance()
	if x < y {
		x, y = y, x
	}
	return (x + 0.05) / (y + 0.05)
}

// readable is the contrast that text needs (WCAG 2.2, 1.4.3), and a little more.
const readable = 4.6

// against moves a colour towards another until it can be read on a ground.
func (c colour) against(ground, towards colour) colour {
	from := c
	for step := 1; contrast(c, ground) < readable && step <= 20; step++ {
		for i := range c {
			c[i] = uint8((int(from[i])*(20-step) + int(towards[i])*step) / 20) //nolint:gosec // between two of them
		}
	}
	return c
}

var (
	white = colour{255, 255, 255}
	black = colour{0, 0, 0}
	// The darkest ground that the light theme has text on, and the lightest of the dark theme:
	// --ground and --card of checkout.css.
	paper = colour{0xf4, 0xf4, 0xf1}
	night = colour{0x1d, 0x21, 0x24}
)

// theme is the style sheet of a merchant's colour.
func theme(c colour) []byte {
	light, dark := c.against(paper, black), c.against(night, white)
	return fmt.Appendf(nil, ":root{--accent:%s;--on-accent:%s}@media(prefers-color-scheme:dark){:root{--accent:%s;--on-accent:%s}}\n",
		light, light.ink(), dark, dark.ink())
}

// ink is black or white: what is read better on the colour.
func (c colour) ink() colour {
	if contrast(c, black) > contrast(c, white) {
		return black
	}
	return white
}
